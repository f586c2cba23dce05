package redis

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
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

var takeScript = script("take")

// freeFor is how long the epoch of a home without an owner is kept: longer than a former owner may still try to write.
const freeFor = 24 * time.Hour

// homesPage is how many callers one command names.
const homesPage = 500

// Homes stores which instance has which caller, and for each life of the service an index of its callers, by which the
// callers of a dead life are found. A caller is put into the index before anything is written for them, and is taken
// out after everything is written. It is safe for concurrent use.
type Homes struct{ *engine }

// Homes returns the [Homes] of a store.
func (s *Store) Homes() Homes { return Homes{s.engine} }

// A homeSet is the homes of the callers whom this life has.
type homeSet struct {
	mu     sync.Mutex
	byName map[string]*home // Guarded by mu: by the name of the caller
}

// A home is the home of a caller whom this life has.
type home struct {
	epoch    int64         // Guarded by mu of the homeSet: epoch of the home; 0 if it was never taken
	released chan struct{} // Guarded by mu of the homeSet: closed when a Leave is done; nil before a Leave
}

// homeKey holds who has a caller; see [claimText].
func (e *engine) homeKey(name string) string { return e.key(name, "home") }

// claimText returns a claim as it is stored: the epoch, a space, and the id of the instance or "".
func claimText(c ledger.Claim) string { return fmt.Sprint(c.Epoch, " ", c.ID) }

// parseClaim is the reverse of claimText; the zero Claim of "".
func parseClaim(text string) (c ledger.Claim, err error) {
	if text == "" {
		return c, nil
	}
	epoch, id, _ := strings.Cut(text, " ")
	if c.Epoch, err = strconv.ParseInt(epoch, 10, 64); err != nil {
		return c, unexpected("home")
	}
	c.ID = id
	return c, nil
}

// beatsKey holds the newest beat of each life, by its id. A life writes a beat before its index of callers.
func (e *engine) beatsKey() string { return e.key("m", "beats") }

// indexKey holds the names of the callers of a life.
func (e *engine) indexKey(id string) string { return e.prefix + ":homes:" + id }

// fence returns the fence of a caller's data: the lease where one life at a time uses the store, else the caller's
// home.
func (e *engine) fence(name string) (fence, error) {
	if !e.shared {
		return fence{e.epochKey(), e.lease.epoch}, nil
	}
	e.homes.mu.Lock()
	defer e.homes.mu.Unlock()
	h := e.homes.byName[name]
	if h == nil {
		return fence{}, elsewhere()
	}
	return fence{e.homeKey(name), h.epoch}, nil
}

// enter puts a caller into the index of this life, unless they are there, before anything is written for them. It
// waits for a Leave of the caller that is going on. Where several instances use the store, it fails unless this one has
// the caller's home.
func (e *engine) enter(ctx context.Context, name string) error {
	for {
		e.homes.mu.Lock()
		h := e.homes.byName[name]
		var released chan struct{}
		if h != nil {
			released = h.released
		}
		e.homes.mu.Unlock()
		switch {
		case h != nil && released == nil:
			return nil
		case h != nil:
			select {
			case <-released:
				continue
			case <-ctx.Done():
				return e.fault(ctx.Err())
			}
		case e.shared:
			return elsewhere()
		}
		if err := e.client.SAdd(ctx, e.indexKey(e.id), name).Err(); err != nil {
			return e.fault(err)
		}
		e.hold(name, 0)
	}
}

// hold notes that this life has a caller, in the newer one of two epochs.
func (e *engine) hold(name string, epoch int64) {
	e.homes.mu.Lock()
	defer e.homes.mu.Unlock()
	h := e.homes.byName[name]
	if h == nil || h.released != nil {
		h = &home{}
		e.homes.byName[name] = h
	}
	h.epoch = max(h.epoch, epoch)
}

// names returns the names of the callers whom this life has.
func (e *engine) names() []string {
	e.homes.mu.Lock()
	defer e.homes.mu.Unlock()
	return slices.Sorted(maps.Keys(e.homes.byName))
}

// index rewrites the index of this life if the Redis does not know this life, as after it came back empty. With all it
// rewrites the index in any case, as the Redis may have come back in an older state.
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

// ID returns the id of this life of the instance.
func (h Homes) ID() string { return h.id }

// Beat stores the beat of this instance.
func (h Homes) Beat(ctx context.Context, b ledger.Beat) error {
	ctx, cancel := context.WithTimeout(ctx, h.within)
	defer cancel()
	return h.fault(h.client.HSet(ctx, h.beatsKey(), h.id, handoff.Encode(b)).Err())
}

// Beats returns the newest beats of all instances, including those that have ended.
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
		if json.Unmarshal([]byte(fields[id]), &b) != nil { // the id is enough to find its callers
			h.badEntry(h.beatsKey())
		}
		all = append(all, b)
	}
	return all, nil
}

// Take takes a caller's home, unless an instance other than the dead one has it. dead is "" for none. It returns who
// has the home then.
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

// take puts a caller into the index of this life and takes their home.
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

// Claims returns who has the homes of callers, in the order of the callers.
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
	replies := make([]*goredis.StringCmd, len(of))
	_, err := h.client.Pipelined(ctx, func(p goredis.Pipeliner) error {
		for i, c := range of {
			name, err := sessions.CallerName(c)
			if err != nil {
				return err
			}
			replies[i] = p.Get(ctx, h.homeKey(name))
		}
		return nil
	})
	if err != nil && !errors.Is(err, goredis.Nil) {
		return nil, h.fault(err)
	}
	all := make([]ledger.Claim, len(of))
	for i, reply := range replies {
		text, err := reply.Result()
		if err = unlessNil(err); err != nil {
			return nil, h.fault(err)
		}
		if all[i], err = parseClaim(text); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// Assert writes that this instance has a caller, into a store that lost it or came back in an older state.
func (h Homes) Assert(ctx context.Context, c handoff.Caller, mine ledger.Claim) error {
	name, err := sessions.CallerName(c)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, h.within)
	defer cancel()
	if err := h.client.SAdd(ctx, h.indexKey(h.id), name).Err(); err != nil {
		return h.fault(err)
	}
	return h.alter(ctx, h.homeKey(name), 0, func(was string) (string, bool) {
		stored, err := parseClaim(was)
		return claimText(mine), err == nil && stored.Epoch < mine.Epoch
	})
}

// Lose notes that another instance has a caller: this one writes nothing more for them.
func (h Homes) Lose(c handoff.Caller) {
	name, err := sessions.CallerName(c)
	if err != nil {
		return // no instance can have such a caller
	}
	h.homes.mu.Lock()
	defer h.homes.mu.Unlock()
	delete(h.homes.byName, name)
}

// Callers returns the callers in the index of a life. Other instances may have some of them by now.
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

// indexed returns the names in the index of a life.
func (e *engine) indexed(ctx context.Context, id string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, e.within)
	defer cancel()
	names, err := e.client.SMembers(ctx, e.indexKey(id)).Result()
	return names, e.fault(err)
}

// Forget drops callers whom other instances have by now from the index of a dead life, and the life itself unless it
// has beaten again or has callers left.
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
	return e.decided(ctx, fence{}, func(c *change) error {
		text, err := e.readField(ctx, c, e.beatsKey(), gone.ID)
		var last ledger.Beat
		if json.Unmarshal([]byte(text), &last) == nil && last.N == gone.N {
			c.do("HDEL", e.beatsKey(), gone.ID)
		}
		return err
	})
}

// Leave releases a caller for whom nothing is written any more. From now on writes for them wait until done, which
// frees their home, has returned. A caller with open entries, or with a call that the voice model's server carries,
// stays in the index of this life, so that an instance which sees this one drain or die takes the work or the call
// over.
func (s callers) Leave(c handoff.Caller) (done func(context.Context) error) {
	nothing := func(context.Context) error { return nil }
	name, err := sessions.CallerName(c)
	if err != nil {
		return nothing
	}
	s.homes.mu.Lock()
	defer s.homes.mu.Unlock()
	h := s.homes.byName[name]
	if h == nil || h.released != nil {
		return nothing
	}
	h.released = make(chan struct{})
	return func(ctx context.Context) error { return s.leave(ctx, name, h) }
}

func (s callers) leave(ctx context.Context, name string, h *home) error {
	ctx, cancel := context.WithTimeout(ctx, s.within)
	defer cancel()
	defer func() {
		s.homes.mu.Lock()
		defer s.homes.mu.Unlock()
		if s.homes.byName[name] == h {
			delete(s.homes.byName, name)
		}
		close(h.released)
	}()
	had := true // a home that is not stored needs no freeing
	if err := s.alter(ctx, s.homeKey(name), freeFor, func(was string) (string, bool) {
		mine := was == claimText(ledger.Claim{ID: s.id, Epoch: h.epoch})
		had = mine || was == ""
		return claimText(ledger.Claim{Epoch: h.epoch}), mine
	}); err != nil || !had {
		return err
	}
	open, err := s.hasDocument(ctx, name, ledger.HandoffDoc)
	calls, errCalls := s.client.Exists(ctx, s.attachedKey(name)).Result()
	if err = cmp.Or(err, errCalls); err == nil && !open && calls == 0 {
		err = s.client.SRem(ctx, s.indexKey(s.id), name).Err()
	}
	return s.fault(err)
}
