package joined

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/servers"
)

// A Record is a machine as it is kept. Its fields are those of a machine in the store.
type Record struct {
	Key    []byte
	Name   string
	Joined time.Time
	Body   []byte
}

// Store keeps machines, by their keys.
type Store interface {
	PutMachine(ctx context.Context, r Record) error
	Machines(ctx context.Context) ([]Record, error)
	DropMachine(ctx context.Context, key []byte) (bool, error)
}

// Invitations keeps invitations until they are used, at whichever instance of the service.
type Invitations interface {
	// PutInvitation keeps one. Of more than [MaxInvitations] that wait, the oldest goes.
	PutInvitation(ctx context.Context, i Invited) error
	// SpendInvitation uses up the one with a sum, and returns it; of several who ask at once, one gets it.
	SpendInvitation(ctx context.Context, sum [sha256.Size]byte) (_ Invited, found bool, err error)
}

// An Invited is an invitation that waits.
type Invited struct {
	Sum   [sha256.Size]byte // of its secret
	Name  string            // of the machine
	Until time.Time         // when it ends
}

// Fleet is where the agents of machines are servers.
type Fleet interface {
	Check(drop []string, put []servers.Spec) error
	Change(drop []string, put []servers.Spec) error
	Retry(server string)
}

// Config is what [Machines] are made of.
type Config struct {
	Key     ed25519.PrivateKey // the service's own, which invitations name
	Store   Store
	Invited Invitations
	Shared  bool // other instances of the service, which have the same key, keep machines in the store too
	Fleet   Fleet
	// Spec makes the server of an agent. An error says that there is none of that kind, or that its name is taken.
	Spec    func(s Server) (servers.Spec, error)
	Auditor handoff.Auditor
	Log     *zap.Logger
}

// A Server is an agent of a machine that joined, as one of the fleet.
type Server struct {
	Name    string   // in the fleet
	Aliases []string // what it was called before, and how else it is said
	Machine string
	Agent   Agent
	Ceiling string // the loosest sandbox that the machine's owner allows; "": any
}

// Machines are those that joined. They are safe for concurrent use.
type Machines struct {
	cfg   Config
	tls   *tls.Config        // Set once
	lines *Lines             // Set once: what agents are dialled through
	turn  chan struct{}      // holds one while nobody changes which machines there are: that asks the store
	bad   map[string]string  // Owned by who changes that: bodies of records that cannot be had here, by key, in hex
	open  sync.WaitGroup     // lines; entered under mu unless ended
	life  context.Context    // Set once: ends when lines must
	end   context.CancelFunc // Set once: ends life

	counts counts

	mu      sync.Mutex
	ended   bool                // Guarded by mu: no line is taken any more
	shaking int                 // Guarded by mu: handshakes under way
	all     map[string]*machine // Guarded by mu: by key, in hex
	told    []time.Time         // Guarded by mu: when refusals were audited lately
}

// A machine is one that joined.
type machine struct {
	Record
	kept kept
	line *line     // nil: it is not connected
	seen time.Time // when its last line was lost; zero: it had none in this life
	// coming is closed when the handshake that made this of it has led to a line, or to none; nil: none did.
	coming <-chan struct{}
}

// kept is what the body of a record has.
type kept struct {
	Former  []string          `json:"former,omitempty"` // names that it had, at most maxFormer
	Servers map[string]string `json:"servers"`          // by agent: its name without the machine's; "": just that
	About   About             `json:"about"`
}

// counts are for operators.
type counts struct {
	lines   atomic.Int64
	opened  atomic.Uint64
	refused atomic.Uint64
}

const (
	maxFormer   = 8
	maxMachines = 100
	maxShaking  = 32
	maxRefusals = 30 // audited in an hour, beyond which they are only counted
)

var machineName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,39}$`)

// Open reads which machines joined. Their lines are taken until [Machines.Run] has ended.
func Open(ctx context.Context, cfg Config, lines *Lines) (*Machines, error) {
	own, err := certificate(cfg.Key)
	if err != nil {
		return nil, err
	}
	m := &Machines{
		cfg: cfg, tls: secured(own, func(ed25519.PublicKey) error { return nil }), // the hello tells who is refused, and why
		lines: lines, turn: make(chan struct{}, 1), bad: map[string]string{}, all: map[string]*machine{},
	}
	m.life, m.end = context.WithCancel(context.Background())
	m.turn <- struct{}{}
	records, err := cfg.Store.Machines(ctx)
	if err != nil {
		return nil, err
	}
	for _, r := range records {
		one := &machine{Record: r}
		if err := json.Unmarshal(r.Body, &one.kept); err != nil {
			return nil, fmt.Errorf("what is known of the machine %s cannot be read: %w", r.Name, err)
		}
		m.all[hex.EncodeToString(r.Key)] = one
		lines.put(m.serversOf(one), nil, nil)
	}
	return m, nil
}

// Specs are the servers of the machines that joined. One that cannot be made is left out, and logged.
func (m *Machines) Specs() []servers.Spec {
	var all []servers.Spec
	for _, one := range m.sorted() {
		specs, err := m.specs(m.serversOf(one))
		if err != nil {
			m.cfg.Log.Warn("a machine is left out", zap.String("machine", one.Name), zap.Error(err))
			continue
		}
		all = append(all, specs...)
	}
	return all
}

func (m *Machines) specs(all []Server) ([]servers.Spec, error) {
	var specs []servers.Spec
	for _, s := range all {
		spec, err := m.cfg.Spec(s)
		if err != nil {
			return nil, err
		}
		specs = append(specs, spec)
	}
	return specs, nil
}

// sorted returns copies of the machines, the one that joined first first.
func (m *Machines) sorted() []*machine {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []*machine
	for _, one := range m.all {
		clone := *one
		all = append(all, &clone)
	}
	slices.SortFunc(all, func(a, b *machine) int { return a.Joined.Compare(b.Joined) })
	return all
}

// serversOf are the servers that a machine's agents are. The first agent that a machine ever had is called as the
// machine is; each other one has its own name behind that. An agent keeps its name when others come and go.
func (m *Machines) serversOf(one *machine) []Server {
	var all []Server
	for _, a := range one.kept.About.Agents {
		name := func(machine string) string {
			if suffix := one.kept.Servers[a.Name]; suffix != "" {
				return machine + "-" + suffix
			}
			return machine
		}
		s := Server{Name: name(one.Name), Machine: one.Name, Agent: a, Ceiling: one.kept.About.Ceiling}
		for _, former := range one.kept.Former {
			s.Aliases = append(s.Aliases, name(former))
		}
		if one.kept.Servers[a.Name] != "" {
			s.Aliases = append(s.Aliases, a.Name+" on "+one.Name)
		}
		all = append(all, s)
	}
	return all
}

// named gives the agents of a machine their names.
func (k kept) named(about About) kept {
	servers := map[string]string{}
	taken := false // the machine's own name
	for agent, suffix := range k.Servers {
		servers[agent] = suffix
		taken = taken || suffix == ""
	}
	for _, a := range about.Agents {
		if _, known := servers[a.Name]; known {
			continue
		}
		servers[a.Name] = a.Name
		if !taken {
			servers[a.Name], taken = "", true
		}
	}
	k.Servers, k.About = servers, about
	return k
}

// changes runs one change of which machines there are at a time. None is begun once ctx has ended.
func (m *Machines) changes(ctx context.Context, change func() error) error {
	select {
	case <-m.turn:
		defer func() { m.turn <- struct{}{} }()
		return change()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Settle runs a change of other servers of the fleet while no machine comes or goes. It gets the servers of those that
// there are, the one that joined first first.
func (m *Machines) Settle(ctx context.Context, change func(all []Server) error) error {
	return m.changes(ctx, func() error {
		var all []Server
		for _, one := range m.sorted() {
			all = append(all, m.serversOf(one)...)
		}
		return change(all)
	})
}

// replace puts what is known of a machine into the place of what was, everywhere or nowhere. It is called in changes.
func (m *Machines) replace(ctx context.Context, was *machine, is machine) error {
	var err error
	if is.Body, err = json.Marshal(is.kept); err != nil {
		return err
	}
	return m.place(was, is, func() error { return m.cfg.Store.PutMachine(ctx, is.Record) })
}

// place is replace with its own way to keep the machine: keep writes it, or does nothing where the store has it
// already. It is called in changes.
func (m *Machines) place(was *machine, is machine, keep func() error) error {
	var drop []string
	if was != nil {
		for _, s := range m.serversOf(was) {
			drop = append(drop, s.Name)
		}
	}
	all := m.serversOf(&is)
	if err := m.free(&is, all); err != nil {
		return err
	}
	specs, err := m.specs(all)
	if err != nil {
		return err
	}
	m.mu.Lock()
	var line *line
	if now := m.all[hex.EncodeToString(is.Key)]; now != nil {
		line = now.line
	}
	m.lines.put(all, line, is.coming) // the fleet dials at once
	m.mu.Unlock()
	if err := m.cfg.Fleet.Change(drop, specs); err != nil {
		m.lines.drop(others(all, drop))
		return taken(is.Name, err)
	}
	if err := keep(); err != nil {
		var back []servers.Spec
		if was != nil {
			back, _ = m.specs(m.serversOf(was)) // they could be made before
		}
		err = errors.Join(err, m.cfg.Fleet.Change(others(all, nil), back))
		m.lines.drop(others(all, drop))
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lines.drop(slices.DeleteFunc(drop, func(name string) bool {
		return slices.ContainsFunc(all, func(s Server) bool { return s.Name == name })
	}))
	if now := m.all[hex.EncodeToString(is.Key)]; now != nil { // its line may be another one than when this began
		is.line, is.seen = now.line, now.seen
	}
	m.lines.put(all, is.line, is.coming)
	m.all[hex.EncodeToString(is.Key)] = &is
	return nil
}

// others returns the names of servers that are not among those.
func others(all []Server, those []string) (names []string) {
	for _, s := range all {
		if !slices.Contains(those, s.Name) {
			names = append(names, s.Name)
		}
	}
	return names
}

// free reports whether another machine has a name that this one would have: in the fleet it would be put in the place
// of that.
func (m *Machines) free(is *machine, all []Server) error {
	for _, other := range m.sorted() {
		if bytes.Equal(other.Key, is.Key) {
			continue
		}
		if other.Name == is.Name || slices.Contains(other.kept.Former, is.Name) {
			return taken(is.Name, errors.New("another machine has it"))
		}
		for _, theirs := range m.serversOf(other) {
			if slices.ContainsFunc(all, func(own Server) bool { return own.Name == theirs.Name }) {
				return taken(theirs.Name, errors.New("another machine has it"))
			}
		}
	}
	return nil
}

// taken says that a name cannot be had.
func taken(name string, why error) error {
	return handoff.Malformed("name", "the name "+name+" is taken: "+why.Error())
}

// find returns the machine that has a key, or nil. What it points to is replaced, never changed.
func (m *Machines) find(key []byte) *machine {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.all[hex.EncodeToString(key)]
}

// called returns the machine of a name, or that has a server of that name.
func (m *Machines) called(name string) (*machine, error) {
	for _, one := range m.sorted() {
		is := func(s Server) bool { return s.Name == name }
		if one.Name == name || slices.ContainsFunc(m.serversOf(one), is) {
			return one, nil
		}
	}
	return nil, handoff.Fault(handoff.CodeNotFound, "machine "+handoff.Clip(name, 80)+" that joined", "")
}

// itself returns the machine of a name, which is not that of one of its agents: what is done with the machine is done
// with all of them.
func (m *Machines) itself(name string) (*machine, error) {
	one, err := m.called(name)
	if err == nil && one.Name != name {
		return nil, handoff.Fault(handoff.CodeNotFound, "machine "+name+" that joined: "+name+" is an agent of "+one.Name, "")
	}
	return one, err
}

// Invite makes an invitation for a machine that will have a name.
func (m *Machines) Invite(ctx context.Context, by handoff.Caller, name string) (Invitation, error) {
	if !machineName.MatchString(name) {
		return Invitation{}, handoff.Malformed("name",
			"a machine's name is at most 40 of A-Z a-z 0-9 . _ -, beginning with a letter or figure")
	}
	all := m.sorted()
	if slices.ContainsFunc(
		all,
		func(one *machine) bool { return one.Name == name || slices.Contains(one.kept.Former, name) },
	) {
		return Invitation{}, taken(name, errors.New("a machine that joined has it"))
	}
	if len(all) >= maxMachines {
		return Invitation{}, handoff.Fault(handoff.CodeLimited, "100 machines", "")
	}
	// Whether the rest of the fleet leaves it the name is tried now, when somebody sees the answer.
	spec, err := m.cfg.Spec(Server{Name: name, Machine: name, Agent: Agent{Name: "codex", Kind: "codex"}})
	if err != nil {
		return Invitation{}, err
	}
	if err := m.cfg.Fleet.Check(nil, []servers.Spec{spec}); err != nil {
		return Invitation{}, taken(name, err)
	}
	i := Invitation{Fingerprint: Fingerprint(m.cfg.Key.Public().(ed25519.PublicKey))}
	_, _ = rand.Read(i.Secret[:]) // it never fails
	if err := m.audit(ctx, by.String(), name, "invited"); err != nil {
		return Invitation{}, err
	}
	return i, m.cfg.Invited.PutInvitation(ctx, Invited{sha256.Sum256(i.Secret[:]), name, time.Now().Add(InvitationLife)})
}

// spend uses an invitation up, and returns the name that it is for.
func (m *Machines) spend(ctx context.Context, secret []byte) (name string, ok bool, err error) {
	i, ok, err := m.cfg.Invited.SpendInvitation(ctx, sha256.Sum256(secret))
	return i.Name, ok && time.Now().Before(i.Until), err
}
