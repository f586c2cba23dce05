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
	"maps"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"golang.org/x/time/rate"

	"switchboard/handoff"
	"switchboard/servers"
)

// A Record is a machine in the store.
type Record struct {
	Key    []byte
	Name   string
	Joined time.Time
	Body   []byte
}

// Store keeps machines, by their keys.
type Store interface {
	// ChangeMachine stores a machine if what is stored is still as it was read, and reports whether it did. The zero
	// Record stands for none.
	ChangeMachine(ctx context.Context, was, is Record) (bool, error)
	Machines(ctx context.Context) ([]Record, error)
	DropMachine(ctx context.Context, key []byte) (bool, error)
}

// Invitations stores invitations until they are used. All instances of the service share them.
type Invitations interface {
	// PutInvitation stores an invitation. If there are more than [MaxInvitations], it drops the oldest.
	PutInvitation(ctx context.Context, i Invited) error
	// Invitation returns the invitation with a sum.
	Invitation(ctx context.Context, sum [sha256.Size]byte) (_ Invited, found bool, err error)
	// SpendInvitation removes the invitation with a sum. Only one of several concurrent calls finds it.
	SpendInvitation(ctx context.Context, sum [sha256.Size]byte) (found bool, err error)
}

// An Invited is an unused invitation in the store.
type Invited struct {
	Sum   [sha256.Size]byte // of its secret
	Name  string            // of the machine
	Until time.Time         // the end of its validity
}

// Fleet is the part of the fleet that Machines change: the agents of machines are servers there.
type Fleet interface {
	Check(drop []string, put []servers.Spec) error
	Change(drop []string, put []servers.Spec) error
	Retry(server string)
}

// Config is what [Open] needs.
type Config struct {
	Key     ed25519.PrivateKey // of the service: invitations have its fingerprint
	Store   Store
	Invited Invitations
	Shared  bool // other instances of the service, with the same key, use the store too
	Fleet   Fleet
	// Spec makes the server of an agent. It fails if the kind is unknown or the name is taken.
	Spec    func(s Server) (servers.Spec, error)
	Auditor handoff.Auditor
	Log     *zap.Logger
}

// A Server is an agent of a machine that joined, as one of the fleet.
type Server struct {
	Name    string   // in the fleet
	Aliases []string // its former names, and other ways to say its name
	Machine string
	Agent   Agent
	Ceiling string // the loosest sandbox that the machine's owner allows; "": any
}

// Machines are the machines that joined. They are safe for concurrent use.
type Machines struct {
	cfg      Config             // Set once
	tls      *tls.Config        // Set once
	changing chan struct{}      // a semaphore of 1: its holder changes the set of machines, also in the store
	rejected map[string]string  // Owned by the holder of changing: records that cannot be used here, by key in hex
	unread   bool               // Owned by the holder of changing: the store did not answer when it was read last
	visits   uint64             // Owned by the holder of changing: how many visits were let in, or refused
	open     sync.WaitGroup     // handshakes and lines; added to under mu unless ended
	life     context.Context    // Set once: its end ends all lines
	end      context.CancelFunc // Set once: ends life

	counts counts

	mu       sync.Mutex
	ended    bool                // Guarded by mu: lines are no longer taken
	guests   lobby               // Guarded by mu
	all      map[string]*machine // Guarded by mu: by key in hex
	refusals []time.Time         // Guarded by mu: those that were audited in the last hour
}

// A machine is a machine that joined. It is replaced, never changed.
type machine struct {
	Record
	details details
	reports *rate.Limiter // of all its lines
	line    *line         // nil: it is not connected
	seen    time.Time     // when its last line was lost; zero: it had none since the service started
	// connecting is closed when the handshake that changed the machine has led to a line or failed; nil: no handshake
	// has changed it.
	connecting <-chan struct{}
}

// details are the content of a record's body.
type details struct {
	Former  []string          `json:"former,omitempty"` // its earlier names, at most maxFormer
	Servers map[string]string `json:"servers"`          // by agent: the suffix of its server's name; "": none
	About   About             `json:"about"`
}

// counts are the values of the metrics.
type counts struct {
	lines   atomic.Int64
	opened  atomic.Uint64
	refused atomic.Uint64
	dropped atomic.Uint64
}

const (
	maxFormer   = 8
	maxMachines = 100
	maxRefusals = 30 // audited and logged in an hour, beyond which they are only counted
)

// Bounds of what a machine reports.
const (
	reportsAtOnce = 5 // and then one each reportsEvery
	reportsEvery  = 10 * time.Second
	maxNames      = 64 // of the servers of its agents, also of those that it has no more
)

func newReports() *rate.Limiter { return rate.NewLimiter(rate.Every(reportsEvery), reportsAtOnce) }

var machineName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,39}$`)

// Open reads the machines in the store. Their agents are reached by lines. Lines are taken until [Machines.Run] has
// ended.
func Open(ctx context.Context, cfg Config, lines *Lines) (*Machines, error) {
	own, err := certificate(cfg.Key)
	if err != nil {
		return nil, err
	}
	m := &Machines{
		// TLS takes any key: an unknown one is refused after the hello, with a reason.
		cfg: cfg, tls: tlsConfig(own, func(ed25519.PublicKey) error { return nil }),
		changing: make(chan struct{}, 1), rejected: map[string]string{}, all: map[string]*machine{},
	}
	m.life, m.end = context.WithCancel(context.Background())
	records, err := cfg.Store.Machines(ctx)
	if err != nil {
		return nil, err
	}
	for _, r := range records {
		one := &machine{Record: r, reports: newReports()}
		if err := json.Unmarshal(r.Body, &one.details); err != nil {
			return nil, fmt.Errorf("what is known of the machine %s cannot be read: %w", r.Name, err)
		}
		m.all[hex.EncodeToString(r.Key)] = one
	}
	lines.machines.Store(m)
	return m, nil
}

// specs returns the servers of agents.
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

// sorted returns copies of the machines, in the order in which they joined.
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

// serversOf returns the servers of a machine's agents. The server of the first agent that a machine ever had has the
// machine's name; each other one has the agent's name as a suffix. A server keeps its name when other agents come and
// go.
func (m *Machines) serversOf(one *machine) []Server {
	var all []Server
	for _, a := range one.details.About.Agents {
		name := func(machine string) string {
			if suffix := one.details.Servers[a.Name]; suffix != "" {
				return machine + "-" + suffix
			}
			return machine
		}
		s := Server{Name: name(one.Name), Machine: one.Name, Agent: a, Ceiling: one.details.About.Ceiling}
		for _, former := range one.details.Former {
			s.Aliases = append(s.Aliases, name(former))
		}
		if one.details.Servers[a.Name] != "" {
			s.Aliases = append(s.Aliases, a.Name+" on "+one.Name)
		}
		all = append(all, s)
	}
	return all
}

// withAgents returns details with another About, and with names for the servers of new agents.
func (d details) withAgents(about About) details {
	servers := map[string]string{}
	taken := false // a server has the machine's own name
	for agent, suffix := range d.Servers {
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
	for _, agent := range slices.Sorted(maps.Keys(servers)) { // those that are gone lose their names
		gone := !slices.ContainsFunc(about.Agents, func(a Agent) bool { return a.Name == agent })
		if gone && len(servers) > maxNames && servers[agent] != "" {
			delete(servers, agent)
		}
	}
	d.Servers, d.About = servers, about
	return d
}

// exclusively runs a change of the set of machines, one at a time. If ctx ends before the change begins, it returns the
// cause.
func (m *Machines) exclusively(ctx context.Context, change func() error) error {
	select {
	case m.changing <- struct{}{}:
		defer func() { <-m.changing }()
		return change()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Settle runs a change of other servers of the fleet while the set of machines does not change. It passes the servers
// of the machines, in the order in which these joined.
func (m *Machines) Settle(ctx context.Context, change func(all []Server) error) error {
	return m.exclusively(ctx, func() error {
		var all []Server
		for _, one := range m.sorted() {
			all = append(all, m.serversOf(one)...)
		}
		return change(all)
	})
}

// replace replaces a machine in the fleet, here and in the store, or nowhere. It fails if another instance
// has changed or removed the machine since it was read here. before, if it is not nil, is called right before the
// machine is stored. It is called in exclusively.
func (m *Machines) replace(ctx context.Context, was *machine, is machine, before func() error) error {
	var err error
	if is.Body, err = json.Marshal(is.details); err != nil {
		return err
	}
	var read Record
	if was != nil {
		read = was.Record
	}
	changed := true
	err = m.install(was, is, func() error {
		if before != nil {
			if err := before(); err != nil {
				return err
			}
		}
		changed, err = m.cfg.Store.ChangeMachine(ctx, read, is.Record)
		if err == nil && !changed {
			err = handoff.Fault(handoff.CodeTakenOver, is.Name, "the machine was changed or removed meanwhile")
		}
		return err
	})
	if !changed {
		m.read(ctx)
	}
	return err
}

// install is like replace, but calls keep to store the machine. It is called in exclusively.
func (m *Machines) install(was *machine, is machine, keep func() error) error {
	var drop []string
	if was != nil {
		drop = namesOf(m.serversOf(was))
	}
	all := m.serversOf(&is)
	if err := m.checkNames(&is, all); err != nil {
		return err
	}
	specs, err := m.specs(all)
	if err != nil {
		return err
	}
	m.put(is.Key, &is) // before Change, after which the fleet dials
	if err := m.cfg.Fleet.Change(drop, specs); err != nil {
		m.put(is.Key, was)
		return nameTaken(is.Name, err)
	}
	if err := keep(); err != nil {
		var back []servers.Spec
		if was != nil {
			back, _ = m.specs(m.serversOf(was)) // they were made before
		}
		m.put(is.Key, was)
		return errors.Join(err, m.cfg.Fleet.Change(namesOf(all), back))
	}
	return nil
}

// put puts a machine in the place of the one with its key, whose line it gets; nil: there is none any more.
func (m *Machines) put(key []byte, one *machine) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.all[hex.EncodeToString(key)]
	if one == nil {
		delete(m.all, hex.EncodeToString(key))
		return
	}
	is := *one
	if now != nil { // its line may have changed meanwhile
		is.line, is.seen = now.line, now.seen
	}
	m.all[hex.EncodeToString(key)] = &is
}

// namesOf returns the names of servers.
func namesOf(all []Server) (names []string) {
	for _, s := range all {
		names = append(names, s.Name)
	}
	return names
}

// checkNames returns an error if another machine has a name of this machine or of its servers. In the fleet, this
// machine would replace the other one.
func (m *Machines) checkNames(is *machine, all []Server) error {
	for _, other := range m.sorted() {
		if bytes.Equal(other.Key, is.Key) {
			continue
		}
		if other.Name == is.Name || slices.Contains(other.details.Former, is.Name) {
			return nameTaken(is.Name, errors.New("another machine has it"))
		}
		for _, theirs := range m.serversOf(other) {
			if slices.ContainsFunc(all, func(own Server) bool { return own.Name == theirs.Name }) {
				return nameTaken(theirs.Name, errors.New("another machine has it"))
			}
		}
	}
	return nil
}

// nameTaken returns the error for a name that is taken.
func nameTaken(name string, why error) error {
	return handoff.Malformed("name", "the name "+name+" is taken: "+why.Error())
}

// find returns the machine with a key, or nil.
func (m *Machines) find(key []byte) *machine {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.all[hex.EncodeToString(key)]
}

// machineNamed returns the machine of a name. The name of an agent's server is an error, since the caller means to
// change the machine with all its agents.
func (m *Machines) machineNamed(name string) (*machine, error) {
	for _, one := range m.sorted() {
		if one.Name == name {
			return one, nil
		}
	}
	missing := "machine " + handoff.Clip(name, 80) + " that joined"
	if to, _, known := m.withServer(name); known {
		missing += ": " + name + " is an agent of " + to.Name
	}
	return nil, handoff.Fault(handoff.CodeNotFound, missing, "")
}

// Invite makes and stores an invitation for a machine that will have a name, and returns its text.
func (m *Machines) Invite(ctx context.Context, by handoff.Caller, name string) (string, error) {
	if !machineName.MatchString(name) {
		return "", handoff.Malformed("name",
			"a machine's name is at most 40 of A-Z a-z 0-9 . _ -, beginning with a letter or figure")
	}
	all := m.sorted()
	if slices.ContainsFunc(all, func(one *machine) bool {
		return one.Name == name || slices.Contains(one.details.Former, name)
	}) {
		return "", nameTaken(name, errors.New("a machine that joined has it"))
	}
	if len(all) >= maxMachines {
		return "", handoff.Fault(handoff.CodeLimited, "100 machines", "")
	}
	// A clash with other servers of the fleet is reported now, while the person is here, and not when the machine
	// joins.
	if err := m.exclusively(ctx, func() error {
		spec, err := m.cfg.Spec(Server{Name: name, Machine: name})
		if err != nil {
			return err
		}
		if err := m.cfg.Fleet.Check(nil, []servers.Spec{spec}); err != nil {
			return nameTaken(name, err)
		}
		return nil
	}); err != nil {
		return "", err
	}
	i := Invitation{Fingerprint: Fingerprint(m.cfg.Key.Public().(ed25519.PublicKey))}
	_, _ = rand.Read(i.Secret[:]) // never fails
	if err := m.audit(ctx, by.String(), name, "invited"); err != nil {
		return "", err
	}
	invited := Invited{sha256.Sum256(i.Secret[:]), name, time.Now().Add(InvitationLife)}
	return i.String(), m.cfg.Invited.PutInvitation(ctx, invited)
}

// invitation returns the invitation of a secret; false: there is none, or it has ended. Without a secret there is none.
func (m *Machines) invitation(ctx context.Context, secret []byte) (Invited, bool, error) {
	if secret == nil {
		return Invited{}, false, nil
	}
	i, ok, err := m.cfg.Invited.Invitation(ctx, sha256.Sum256(secret))
	return i, ok && time.Now().Before(i.Until), err
}
