package redis

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
	"switchboard/sessions"
)

var (
	takeScript   = script("take")
	assertScript = script("assert")
	leaveScript  = script("leave")
	forgetScript = script("forget")
)

// freeFor is how long the epoch of a home is kept that nobody has: longer than anybody who had it may still write.
const freeFor = 24 * time.Hour

// homesPage is how many homes are asked for at once.
const homesPage = 500

// Homes keeps which instance has which caller, and an index of the callers of each life of the service, by which those
// of a life that is gone are found. A caller is in the index of a life before anything of them is written, and is taken
// out after everything is. It is safe for concurrent use.
type Homes struct{ *engine }

// Homes returns what keeps who has which caller.
func (s *Store) Homes() Homes { return Homes{s.engine} }

// held are the callers whom this life has.
type held struct {
	mu sync.Mutex
	of map[string]*heldHome // Guarded by mu: by name
}

// A heldHome is a caller whom this life has.
type heldHome struct {
	epoch int64         // Guarded by the mu of held: of the home; 0: it was never taken
	left  chan struct{} // Guarded by the mu of held: closed once the caller was let go of; nil: that has not begun
}

// homeKey names who has a caller: the epoch, a space, the id of the instance or "".
func (e *engine) homeKey(name string) string { return e.key(name, "home") }

// beatsKey names the beats of the lives, by id. A life writes its beat before its index of callers.
func (e *engine) beatsKey() string { return e.key("m", "beats") }

// indexKey names the callers of a life.
func (e *engine) indexKey(id string) string { return e.prefix + ":homes:" + id }

// formerKey names the callers who had anything open in versions before there were homes.
func (e *engine) formerKey() string { return e.prefix + ":open-callers" }

// fence returns the key of the newest epoch that may write of a caller, and the epoch of this life: those of the store
// where one life at a time uses it, else those of the home.
func (e *engine) fence(name string) (key string, epoch int64, err error) {
	if !e.shared {
		return e.epochKey(), e.lease.epoch, nil
	}
	e.held.mu.Lock()
	defer e.held.mu.Unlock()
	h := e.held.of[name]
	if h == nil {
		return "", 0, e.elsewhere()
	}
	return e.homeKey(name), h.epoch, nil
}

// enter sees to it that a caller is in the index before anything of theirs is written.
func (e *engine) enter(ctx context.Context, name string) error {
	for {
		e.held.mu.Lock()
		h := e.held.of[name]
		var left chan struct{}
		if h != nil {
			left = h.left
		}
		e.held.mu.Unlock()
		switch {
		case h != nil && left == nil:
			return nil
		case h != nil:
			select {
			case <-left:
				continue
			case <-ctx.Done():
				return e.fault(ctx.Err())
			}
		case e.shared:
			return e.elsewhere()
		}
		if err := e.client.SAdd(ctx, e.indexKey(e.id), name).Err(); err != nil {
			return e.fault(err)
		}
		e.hold(name, 0)
	}
}

// hold notes that this life has a caller. Of two epochs the newer one holds.
func (e *engine) hold(name string, epoch int64) {
	e.held.mu.Lock()
	defer e.held.mu.Unlock()
	h := e.held.of[name]
	if h == nil || h.left != nil {
		h = &heldHome{}
		e.held.of[name] = h
	}
	h.epoch = max(h.epoch, epoch)
}

// names are the callers whom this life has.
func (e *engine) names() []string {
	e.held.mu.Lock()
	defer e.held.mu.Unlock()
	return slices.Sorted(maps.Keys(e.held.of))
}

// index writes the index of this life anew where the Redis does not know this life: it may have come back empty. With
// all it writes it in any case: it may have come back as it was a while ago.
func (e *engine) index(ctx context.Context, all bool) error {
	limited, cancel := context.WithTimeout(ctx, e.within)
	lost, err := e.client.HSetNX(limited, e.beatsKey(), e.id, handoff.Encode(ledger.Beat{})).Result()
	cancel()
	if err != nil || !lost && !all {
		return e.fault(err)
	}
	for names := range slices.Chunk(e.names(), homesPage) {
		ctx, cancel := context.WithTimeout(ctx, e.within)
		err := e.client.SAdd(ctx, e.indexKey(e.id), names).Err()
		cancel()
		if err != nil {
			return e.fault(err)
		}
	}
	return nil
}

// ID is of this life of the instance.
func (h Homes) ID() string { return h.id }

// Beat writes what this instance says of itself.
func (h Homes) Beat(ctx context.Context, b ledger.Beat) error {
	ctx, cancel := context.WithTimeout(ctx, h.within)
	defer cancel()
	return h.fault(h.client.HSet(ctx, h.beatsKey(), h.id, handoff.Encode(b)).Err())
}

// Beats returns what all instances say of themselves, those that are gone among them.
func (h Homes) Beats(ctx context.Context) ([]ledger.Beat, error) {
	ctx, cancel := context.WithTimeout(ctx, h.within)
	defer cancel()
	fields, err := h.client.HGetAll(ctx, h.beatsKey()).Result()
	if err != nil {
		return nil, h.fault(err)
	}
	all := make([]ledger.Beat, 0, len(fields))
	for _, id := range slices.Sorted(maps.Keys(fields)) {
		b := ledger.Beat{ID: id}
		if json.Unmarshal([]byte(fields[id]), &b) != nil { // whose callers are found all the same
			h.badEntry(h.beatsKey())
		}
		all = append(all, b)
	}
	return all, nil
}

// Take takes a caller's home, unless an instance has it that is not the dead one; "" is none. It returns who has it
// then.
func (h Homes) Take(ctx context.Context, c handoff.Caller, dead string) (ledger.Claim, error) {
	name, err := sessions.CallerName(c)
	if err != nil {
		return ledger.Claim{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, h.within)
	defer cancel()
	found, err := h.claims(ctx, []handoff.Caller{c})
	if err != nil {
		return ledger.Claim{}, err
	}
	if id := found[0].ID; id != "" && id != h.id && id != dead {
		return found[0], nil
	}
	return h.take(ctx, name, dead)
}

// take puts a caller into the index and takes their home.
func (h Homes) take(ctx context.Context, name, dead string) (ledger.Claim, error) {
	index := h.indexKey(h.id)
	if err := h.first(ctx, index, func(p goredis.Pipeliner) { p.SAdd(ctx, index, name) }); err != nil {
		return ledger.Claim{}, h.fault(err)
	}
	reply, err := h.promised(ctx, takeScript, []string{h.homeKey(name)}, h.id, dead).Slice()
	if err != nil {
		return ledger.Claim{}, h.fault(err)
	}
	var found ledger.Claim
	if !replied(reply, &found.ID, &found.Epoch) {
		return ledger.Claim{}, unexpected("home")
	}
	if found.ID == h.id {
		h.hold(name, found.Epoch)
	}
	return found, nil
}

// Claims returns who has the homes of callers, in their order.
func (h Homes) Claims(ctx context.Context, of []handoff.Caller) ([]ledger.Claim, error) {
	all := make([]ledger.Claim, 0, len(of))
	for page := range slices.Chunk(of, homesPage) {
		claims, err := h.claims(ctx, page)
		if err != nil {
			return nil, err
		}
		all = append(all, claims...)
	}
	return all, nil
}

func (h Homes) claims(ctx context.Context, of []handoff.Caller) ([]ledger.Claim, error) {
	ctx, cancel := context.WithTimeout(ctx, h.within)
	defer cancel()
	asked := make([]*goredis.StringCmd, len(of))
	_, err := h.client.Pipelined(ctx, func(p goredis.Pipeliner) error {
		for i, c := range of {
			name, err := sessions.CallerName(c)
			if err != nil {
				return err
			}
			asked[i] = p.Get(ctx, h.homeKey(name))
		}
		return nil
	})
	if err != nil && !errors.Is(err, goredis.Nil) {
		return nil, h.fault(err)
	}
	all := make([]ledger.Claim, len(of))
	for i, one := range asked {
		text, err := one.Result()
		switch {
		case errors.Is(err, goredis.Nil):
			continue
		case err != nil:
			return nil, h.fault(err)
		}
		epoch, id, _ := strings.Cut(text, " ")
		all[i].ID = id
		if all[i].Epoch, err = strconv.ParseInt(epoch, 10, 64); err != nil {
			return nil, unexpected("home")
		}
	}
	return all, nil
}

// Assert tells the store who has a caller, where it has lost that or is as it was a while ago.
func (h Homes) Assert(ctx context.Context, c handoff.Caller, mine ledger.Claim) error {
	name, err := sessions.CallerName(c)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, h.within)
	defer cancel()
	err = h.client.SAdd(ctx, h.indexKey(h.id), name).Err()
	if err == nil {
		err = assertScript.Run(ctx, h.client, []string{h.homeKey(name)}, mine.ID, mine.Epoch).Err()
	}
	return h.fault(err)
}

// Lose ends that this instance writes of a caller, whom another one has.
func (h Homes) Lose(c handoff.Caller) {
	name, err := sessions.CallerName(c)
	if err != nil {
		return // whom nobody ever had
	}
	h.held.mu.Lock()
	defer h.held.mu.Unlock()
	delete(h.held.of, name)
}

// Callers returns the callers whom a life has, or had, and perhaps some whom others have by now.
func (h Homes) Callers(ctx context.Context, id string) ([]handoff.Caller, error) {
	names, err := h.indexed(ctx, id)
	all := make([]handoff.Caller, 0, len(names))
	for _, name := range names {
		c, ok := sessions.NamedCaller(name)
		if !ok {
			h.badEntry(h.indexKey(id))
			continue
		}
		all = append(all, c)
	}
	return all, err
}

func (e *engine) indexed(ctx context.Context, id string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, e.within)
	defer cancel()
	names, err := e.client.SMembers(ctx, e.indexKey(id)).Result()
	return names, e.fault(err)
}

// Forget forgets a life that is gone, with callers whom others have by now, unless it has been heard of since.
func (h Homes) Forget(ctx context.Context, gone ledger.Beat, had []handoff.Caller) error {
	names := make([]string, 0, len(had))
	for _, c := range had {
		name, err := sessions.CallerName(c)
		if err != nil {
			return err
		}
		names = append(names, name)
	}
	return h.forget(ctx, gone, names)
}

func (e *engine) forget(ctx context.Context, gone ledger.Beat, names []string) error {
	for page := range slices.Chunk(names, homesPage) {
		ctx, cancel := context.WithTimeout(ctx, e.within)
		err := e.client.SRem(ctx, e.indexKey(gone.ID), page).Err()
		cancel()
		if err != nil {
			return e.fault(err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, e.within)
	defer cancel()
	if left, err := e.client.Exists(ctx, e.indexKey(gone.ID)).Result(); err != nil || left > 0 {
		return e.fault(err)
	}
	return e.fault(forgetScript.Run(ctx, e.client, []string{e.beatsKey()}, gone.ID, gone.N).Err())
}

// former moves what versions before there were homes wrote of who has anything open: a life that is gone has it.
func (e *engine) former(ctx context.Context) error {
	names, err := e.client.SMembers(ctx, e.formerKey()).Result()
	if err != nil || len(names) == 0 {
		return e.fault(err)
	}
	const id = "former"
	err = e.client.HSet(ctx, e.beatsKey(), id, handoff.Encode(ledger.Beat{})).Err()
	if err == nil {
		err = e.client.SAdd(ctx, e.indexKey(id), names).Err()
	}
	if err == nil {
		err = e.client.Del(ctx, e.formerKey()).Err()
	}
	return e.fault(err)
}

// Leave lets go of a caller of whom nothing is written any more: from the call on what is written of them waits for
// what it returns. Their home is free then. One of whom anything is open, or whose call the voice model's server
// carries, stays in the index of this life, so that whoever sees that it drains or is gone takes that up.
func (s handoffs) Leave(c handoff.Caller) (done func(context.Context) error) {
	nothing := func(context.Context) error { return nil }
	name, err := sessions.CallerName(c)
	if err != nil {
		return nothing
	}
	s.held.mu.Lock()
	defer s.held.mu.Unlock()
	had := s.held.of[name]
	if had == nil || had.left != nil {
		return nothing
	}
	had.left = make(chan struct{})
	return func(ctx context.Context) error { return s.leave(ctx, name, had) }
}

func (s handoffs) leave(ctx context.Context, name string, had *heldHome) error {
	ctx, cancel := context.WithTimeout(ctx, s.within)
	defer cancel()
	defer func() {
		s.held.mu.Lock()
		defer s.held.mu.Unlock()
		if s.held.of[name] == had {
			delete(s.held.of, name)
		}
		close(had.left)
	}()
	keys := []string{s.homeKey(name), s.key(name, openKey), s.attachedKey(name)}
	free, err := leaveScript.Run(ctx, s.client, keys, s.id, had.epoch, freeFor.Milliseconds()).Int()
	if err == nil && free == 1 {
		err = s.client.SRem(ctx, s.indexKey(s.id), name).Err()
	}
	return s.fault(err)
}
