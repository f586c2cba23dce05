package servers

import (
	"context"
	"slices"
	"time"

	"switchboard/handoff"
)

// Bounds of asking servers for their threads.
const (
	listTimeout  = 2 * time.Second        // a server that needs longer is named in Errors
	workTimeout  = 700 * time.Millisecond // for who works on what, which is only nice to know
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
	// the next one.
	lateTimeout = time.Minute

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

// list asks a server for its newest threads.
func (f *Fleet) list(ctx context.Context, k *connector, timeout time.Duration) ([]named, *handoff.Error) {
	began := time.Now()
	list, fault := f.ask(ctx, k, listWindow, timeout)
	if fault != nil && time.Since(began) >= listTimeout && !k.removed.Load() {
		f.mu.Lock()
		defer f.mu.Unlock()
		last := f.lists[k.spec.Name]
		last.silent = time.Now()
		f.lists[k.spec.Name] = last
	}
	return list, fault
}

// listed returns the newest threads of a server. One that was silent lately is not waited for again: while it is
// silent its last list comes with the fault.
func (f *Fleet) listed(ctx context.Context, k *connector) ([]named, *handoff.Error) {
	last := f.cached(k.spec.Name)
	timeout := listTimeout
	if time.Since(last.silent) < silentFor {
		timeout = silentTimeout
	}
	list, fault := f.list(ctx, k, timeout)
	if fault != nil && k.now.Load().health == handoff.HealthUp {
		return f.cached(k.spec.Name).threads, fault
	}
	return list, fault
}

// widen adds to the newest threads of a server those before them, as they were listed last when they cannot be had
// now. patient is whether they are waited for.
func (f *Fleet) widen(ctx context.Context, k *connector, newest []named, patient bool) []named {
	if len(newest) < listWindow {
		return newest
	}
	f.mu.Lock()
	all := f.wider[k.spec.Name]
	f.mu.Unlock()
	fresh := searchFreshFor
	if link := k.now.Load().link; link != nil && link.Changed != nil {
		fresh = toldFreshFor
	}
	if time.Since(all.at) > fresh {
		timeout := searchTimeout
		if !patient {
			timeout = silentTimeout
		}
		if list, fault := f.ask(ctx, k, searchWindow, timeout); fault == nil {
			all.threads = list
		}
	}
	known := make(map[string]bool, len(newest))
	for _, t := range newest {
		known[t.ID] = true
	}
	older := slices.DeleteFunc(slices.Clone(all.threads), func(t named) bool { return known[t.ID] })
	return slices.Concat(newest, older)
}

// ask asks a server for so many threads. What it returns was asked for after ask was called: it holds every thread
// that was made before.
func (f *Fleet) ask(ctx context.Context, k *connector, window int, timeout time.Duration) ([]named, *handoff.Error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	link, fault := k.link(ctx, false)
	if fault != nil {
		return nil, fault
	}
	f.mu.Lock()
	before := f.newest
	f.mu.Unlock()
	for {
		a := f.asking(ctx, k, link.Catalog, window)
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
			return nil, f.name(a.err, handoff.Target{Server: k.spec.Name})
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
// ctx ends. It is nil when [Fleet.Run] does not run.
func (f *Fleet) asking(ctx context.Context, k *connector, c Catalog, window int) *asking {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.start == nil {
		return nil
	}
	key := askedFor{k, window}
	a := f.underway[key]
	if a == nil {
		f.newest++
		a = &asking{connector: k, window: window, number: f.newest, at: time.Now(), done: make(chan struct{})}
		f.underway[key] = a
		f.asks.Go(func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lateTimeout)
			defer cancel()
			threads, err := c.List(ctx, window)
			a.threads, a.err = k.spec.name(threads), err
			f.keep(a)
			close(a.done)
		})
	}
	return a
}

// keep keeps what a request has brought, unless something changed there since it began.
func (f *Fleet) keep(a *asking) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.underway, askedFor{a.connector, a.window})
	name, kept := a.connector.spec.Name, f.lists
	if a.window > listWindow {
		kept = f.wider
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

// outdate marks what is known of a server's threads as old, as something changed there. Callers hold mu.
func (f *Fleet) outdate(server string) {
	f.lists[server], f.wider[server] = listing{changed: time.Now()}, listing{changed: time.Now()}
}

// silent is the fault of a server that did not answer in time.
func (k *connector) silent() *handoff.Error {
	return k.spec.Explain(&handoff.Error{
		Code: handoff.CodeUnreachable, Subject: k.spec.Name,
		Detail: "it did not answer in time", Reason: handoff.ReasonSilent,
	}, time.Time{})
}

func (f *Fleet) cached(server string) listing {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lists[server]
}
