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
	workTimeout  = 700 * time.Millisecond // for the working threads, which may be left out
	nameTimeout  = 10 * time.Second       // to find a thread by its name, for which work waits
	readTimeout  = 30 * time.Second       // to read a thread, for which a server may begin a process and load it
	listWindow   = 100                    // newest threads of each server that are listed by default
	listFreshFor = 2 * time.Second        // a list this young is good enough for the working threads

	// Older threads than those of the window are listed only for a search, or when somebody pages so far. A Codex lists
	// 5,000 in a second.
	searchWindow   = handoff.MaxSessionsBack
	searchTimeout  = 2500 * time.Millisecond
	searchFreshFor = 10 * time.Second // a list of older threads this young is used: they change seldom
	// reportedFreshFor is searchFreshFor of a server that reports changes. It may not know those of other programs.
	reportedFreshFor = time.Minute

	// lateTimeout bounds a request for a list. There is at most one for each server and window at a time: a slow server
	// with several would get slower, and in the end answer none. An answer that comes too late for its caller is stored
	// for the next one. A Codex with 250 sessions took 18 s on a busy machine.
	lateTimeout = 3 * time.Minute

	// A server that did not answer in listTimeout is given only silentTimeout for as long as silentFor; meanwhile its
	// last list is used.
	silentTimeout = 200 * time.Millisecond
	silentFor     = 30 * time.Second
)

// A listing is the last list of a server.
type listing struct {
	at      time.Time // zero: there is none, or it is incomplete
	threads []namedThread
	changed time.Time // the last change there: lists that were requested before are dropped
	silent  time.Time // when it did not answer in listTimeout; zero: it has answered since
}

// lists are the last lists of all servers.
type lists struct {
	mu       sync.Mutex
	open     bool                     // Guarded by mu: requests are allowed, while [Fleet.Run] runs
	newest   map[string]listing       // Guarded by mu: the newest threads of each server, by name
	wider    map[string]listing       // Guarded by mu: all threads of each server, by name, as far as requested
	underway map[listKey]*listRequest // Guarded by mu
	last     uint64                   // Guarded by mu: the number of the newest request
	asks     sync.WaitGroup           // requests that are going on; added to while open
}

// setOpen allows or forbids requests.
func (s *lists) setOpen(open bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open = open
}

// list requests the newest threads of a server, and notes whether the server is silent.
func (s *lists) list(ctx context.Context, k *connector, timeout time.Duration) ([]namedThread, *handoff.Error) {
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

// listed returns the newest threads of a server. A silent server gets less time; its last list comes with the error.
func (s *lists) listed(ctx context.Context, k *connector) ([]namedThread, *handoff.Error) {
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

// widen adds the older threads of a server to its newest ones. If they cannot be listed within timeout, it uses the
// last list of them. It returns an error only if there are older threads and none is known.
func (s *lists) widen(
	ctx context.Context, k *connector, newest []namedThread, timeout time.Duration,
) ([]namedThread, *handoff.Error) {
	if len(newest) < listWindow {
		return newest, nil
	}
	s.mu.Lock()
	all := s.wider[k.spec.Name]
	s.mu.Unlock()
	fresh := searchFreshFor
	if link := k.now.Load().link; link != nil && link.Changed != nil {
		fresh = reportedFreshFor
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
	older := slices.DeleteFunc(slices.Clone(all.threads), func(t namedThread) bool { return known[t.ID] })
	return slices.Concat(newest, older), nil
}

// ask returns the newest threads of a server, at most window. They are requested after the call, so that threads that
// were made before it are among them.
func (s *lists) ask(
	ctx context.Context, k *connector, window int, timeout time.Duration,
) ([]namedThread, *handoff.Error) {
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
		a := s.request(ctx, k, link.Catalog, window)
		if a == nil {
			return nil, k.unreachable(k.now.Load(), "")
		}
		select {
		case <-a.done:
		case <-ctx.Done():
			return nil, k.unreachable(&view{}, "it did not answer in time")
		}
		switch {
		case a.number <= before: // it was requested before the call
		case a.err == nil || window > listWindow && len(a.threads) > 0: // a part of the older threads is better than none
			return a.threads, nil
		default:
			return nil, s.name(a.err, handoff.Target{Server: k.spec.Name})
		}
	}
}

// A listRequest is one request for a server's threads. Owned by its goroutine until done is closed.
type listRequest struct {
	connector *connector    // Set once
	window    int           // Set once
	number    uint64        // Set once: of all requests, this one
	at        time.Time     // Set once: when it began
	done      chan struct{} // Set once
	threads   []namedThread
	err       error
}

// A listKey identifies a request. At most one of each is going on.
type listKey struct {
	connector *connector
	window    int
}

// request returns the request for a list that is going on, or else begins one. The request goes on for [lateTimeout],
// also when ctx ends. It is nil while requests are not allowed.
func (s *lists) request(ctx context.Context, k *connector, c Catalog, window int) *listRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.open {
		return nil
	}
	key := listKey{k, window}
	a := s.underway[key]
	if a == nil {
		s.last++
		a = &listRequest{connector: k, window: window, number: s.last, at: time.Now(), done: make(chan struct{})}
		s.underway[key] = a
		s.asks.Go(func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lateTimeout)
			defer cancel()
			threads, err := c.List(ctx, window)
			a.threads, a.err = k.spec.name(threads), err
			s.store(a)
			close(a.done)
		})
	}
	return a
}

// store stores the list of a request, unless something has changed on the server since the request began.
func (s *lists) store(a *listRequest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.underway, listKey{a.connector, a.window})
	name, kept := a.connector.spec.Name, s.newest
	if a.window > listWindow {
		kept = s.wider
	}
	last := kept[name]
	switch {
	case a.connector.removed.Load() || a.at.Before(last.changed):
	case a.err == nil:
		kept[name] = listing{at: time.Now(), threads: a.threads}
	case a.window > listWindow && len(a.threads) > len(last.threads): // incomplete, but longer than the last
		kept[name] = listing{threads: a.threads}
	}
}

// outdate drops the lists of a server after a change.
func (s *lists) outdate(server string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.newest[server], s.wider[server] = listing{changed: time.Now()}, listing{changed: time.Now()}
}

// outdateOlder marks the list of a server's older threads as outdated. It is used until there is a new one.
func (s *lists) outdateOlder(server string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wider[server] = listing{threads: s.wider[server].threads, changed: time.Now()}
}

func (s *lists) cached(server string) listing {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.newest[server]
}

// sources returns the sources of a server's threads that are copies, as far as its last lists have them.
func (s *lists) sources(server string) map[string]string {
	s.mu.Lock()
	newest, wider := s.newest[server].threads, s.wider[server].threads
	s.mu.Unlock()
	return sources(newest, wider)
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

// name sets the subject of an error to a name that can be spoken. Kinds do not know the names of their servers, and
// ids of threads cannot be spoken.
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
