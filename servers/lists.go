package servers

import (
	"context"
	"slices"
	"sync"
	"time"

	"switchboard/handoff"
)

// Bounds of asking servers for their threads.
const (
	listTimeout  = 2 * time.Second        // a server that needs longer is named in Errors
	workTimeout  = 700 * time.Millisecond // for who works on what, which is only nice to know
	nameTimeout  = 10 * time.Second       // to find a session by its name: work waits for it
	listWindow   = 100                    // threads asked of each server: more than anybody looks through
	listFreshFor = 2 * time.Second        // a list this young is not asked for again to see who works

	// Beyond the window threads are looked for only by name, or when somebody pages so far. A codex lists 5,000 in a
	// second.
	searchWindow   = handoff.MaxSessionsBack
	searchTimeout  = 2500 * time.Millisecond
	searchFreshFor = 10 * time.Second // what is older than the window changes seldom
	toldFreshFor   = time.Minute      // where the server tells of changes; another program at the same files may not

	// A server is asked for its newest threads, and for all of them, once at a time: a slow one that is asked again
	// before it has answered gets slower, and in the end answers nobody. What comes too late for who asked is kept for
	// the next one. A codex with 250 sessions took 18 s on a busy machine.
	lateTimeout = 3 * time.Minute

	// A server that did not answer is waited for less, and listed as it was, until it is given its full time again.
	silentTimeout = 200 * time.Millisecond
	silentFor     = 30 * time.Second
)

// A listing is what a server answered last.
type listing struct {
	at      time.Time // zero: none did, or not to its end
	threads []named
	changed time.Time // when something changed there: what was asked for before is not kept
	silent  time.Time // when it was asked with its full time and did not answer in it; zero: it answered since
}

// lists are the threads of each server, as it answered last.
type lists struct {
	mu       sync.Mutex
	open     bool                 // Guarded by mu: servers may be asked, which is while [Fleet.Run] runs
	newest   map[string]listing   // Guarded by mu: the newest threads of each server, by name
	wider    map[string]listing   // Guarded by mu: all threads of a server, as far as they were looked through lately
	underway map[askedFor]*asking // Guarded by mu
	last     uint64               // Guarded by mu: the number of the newest of them
	asks     sync.WaitGroup       // the requests that are under way; added to while open
}

// mayAsk says whether servers may be asked.
func (s *lists) mayAsk(open bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open = open
}

// list asks a server for its newest threads.
func (s *lists) list(ctx context.Context, k *connector, timeout time.Duration) ([]named, *handoff.Error) {
	began := time.Now()
	list, fault := s.ask(ctx, k, listWindow, timeout)
	if fault != nil && time.Since(began) >= listTimeout && !k.removed.Load() {
		s.mu.Lock()
		defer s.mu.Unlock()
		last := s.newest[k.spec.Name]
		last.silent = time.Now()
		s.newest[k.spec.Name] = last
	}
	return list, fault
}

// listed returns the newest threads of a server. One that was silent lately is not waited for again: while it is
// silent its last list comes with the fault.
func (s *lists) listed(ctx context.Context, k *connector) ([]named, *handoff.Error) {
	last := s.cached(k.spec.Name)
	timeout := listTimeout
	if time.Since(last.silent) < silentFor {
		timeout = silentTimeout
	}
	list, fault := s.list(ctx, k, timeout)
	if fault != nil && k.now.Load().health == handoff.HealthUp {
		return s.cached(k.spec.Name).threads, fault
	}
	return list, fault
}

// widen adds to the newest threads of a server those before them, as they were listed last when they cannot be had
// now, within timeout. The fault says that there are older ones, and none of them is known.
func (s *lists) widen(
	ctx context.Context, k *connector, newest []named, timeout time.Duration,
) ([]named, *handoff.Error) {
	if len(newest) < listWindow {
		return newest, nil
	}
	s.mu.Lock()
	all := s.wider[k.spec.Name]
	s.mu.Unlock()
	fresh := searchFreshFor
	if link := k.now.Load().link; link != nil && link.Changed != nil {
		fresh = toldFreshFor
	}
	if time.Since(all.at) > fresh {
		list, fault := s.ask(ctx, k, searchWindow, timeout)
		switch {
		case fault == nil:
			all.threads = list
		case len(all.threads) == 0:
			return newest, fault
		}
	}
	known := make(map[string]bool, len(newest))
	for _, t := range newest {
		known[t.ID] = true
	}
	older := slices.DeleteFunc(slices.Clone(all.threads), func(t named) bool { return known[t.ID] })
	return slices.Concat(newest, older), nil
}

// ask asks a server for so many threads. What it returns was asked for after ask was called: it holds every thread
// that was made before.
func (s *lists) ask(ctx context.Context, k *connector, window int, timeout time.Duration) ([]named, *handoff.Error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	link, fault := k.link(ctx, false)
	if fault != nil {
		return nil, fault
	}
	s.mu.Lock()
	before := s.last
	s.mu.Unlock()
	for {
		a := s.asking(ctx, k, link.Catalog, window)
		if a == nil {
			return nil, k.unreachable(k.now.Load(), "")
		}
		select {
		case <-a.done:
		case <-ctx.Done():
			return nil, k.silent()
		}
		switch {
		case a.number <= before: // it was under way already
		case a.err == nil || window > listWindow && len(a.threads) > 0: // some of the older ones are better than none
			return a.threads, nil
		default:
			return nil, s.name(a.err, handoff.Target{Server: k.spec.Name})
		}
	}
}

// An asking is one request for a server's threads. Owned by its goroutine until done is closed.
type asking struct {
	connector *connector    // Set once
	window    int           // Set once
	number    uint64        // Set once: of all requests, this one
	at        time.Time     // Set once: when it began
	done      chan struct{} // Set once
	threads   []named
	err       error
}

// An askedFor is what at most one request is under way for.
type askedFor struct {
	connector *connector
	window    int
}

// asking returns the request for a list that is under way, else begins it. It goes on for [lateTimeout], also when
// ctx ends. It is nil while servers may not be asked.
func (s *lists) asking(ctx context.Context, k *connector, c Catalog, window int) *asking {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.open {
		return nil
	}
	key := askedFor{k, window}
	a := s.underway[key]
	if a == nil {
		s.last++
		a = &asking{connector: k, window: window, number: s.last, at: time.Now(), done: make(chan struct{})}
		s.underway[key] = a
		s.asks.Go(func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lateTimeout)
			defer cancel()
			threads, err := c.List(ctx, window)
			a.threads, a.err = k.spec.name(threads), err
			s.keep(a)
			close(a.done)
		})
	}
	return a
}

// keep keeps what a request has brought, unless something changed there since it began.
func (s *lists) keep(a *asking) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.underway, askedFor{a.connector, a.window})
	name, kept := a.connector.spec.Name, s.newest
	if a.window > listWindow {
		kept = s.wider
	}
	last := kept[name]
	switch {
	case a.connector.removed.Load() || a.at.Before(last.changed):
	case a.err == nil:
		kept[name] = listing{at: time.Now(), threads: a.threads}
	case a.window > listWindow && len(a.threads) > len(last.threads): // all of them take it too long
		kept[name] = listing{threads: a.threads}
	}
}

// outdate marks what is known of a server's threads as old, as something changed there.
func (s *lists) outdate(server string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.newest[server], s.wider[server] = listing{changed: time.Now()}, listing{changed: time.Now()}
}

// outdateOlder has the older threads of a server listed anew. Until they are, what is known of them is better than
// nothing.
func (s *lists) outdateOlder(server string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wider[server] = listing{threads: s.wider[server].threads, changed: time.Now()}
}

// silent is the fault of a server that did not answer in time.
func (k *connector) silent() *handoff.Error {
	return k.spec.Explain(&handoff.Error{
		Code: handoff.CodeUnreachable, Subject: k.spec.Name,
		Detail: "it did not answer in time", Reason: handoff.ReasonSilent,
	}, time.Time{})
}

func (s *lists) cached(server string) listing {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.newest[server]
}

// forget forgets the threads of a server that was removed. What it still answers is not kept.
func (s *lists) forget(server string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.newest, server)
	delete(s.wider, server)
}

// title returns what can be said of a target's thread.
func (s *lists) title(t handoff.Target) string {
	for _, known := range s.cached(t.Server).threads {
		if known.ID == t.Thread && known.Title != "" {
			return sayable(known.Title)
		}
	}
	return "on " + t.Server
}

// name completes an error with names that can be said: kinds of servers do not know what theirs is
// called, and a thread's id cannot be said.
func (s *lists) name(err error, t handoff.Target) *handoff.Error {
	fault := *handoff.AsError(err)
	switch fault.Code {
	case handoff.CodeSessionGone, handoff.CodeSessionArchived, handoff.CodeSessionInUse, handoff.CodeUnknownSession:
		if fault.Subject == "" || fault.Subject == t.Thread {
			fault.Subject = s.title(t)
		}
	default:
		if fault.Subject == "" || fault.Subject == t.Thread {
			fault.Subject = t.Server
		}
	}
	return &fault
}
