package simulator

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

// afterDone calls fn when ctx ends, unless stop is called before. Stop waits for a call under way.
func afterDone(ctx context.Context, fn func()) (stop func()) {
	done := make(chan struct{})
	cancel := context.AfterFunc(ctx, func() { defer close(done); fn() })
	return func() {
		if !cancel() {
			<-done
		}
	}
}

// Run runs all machines until ctx ends, for those who serve their [World.Handler]s themselves. Machines
// that are served already are left alone.
func (w *World) Run(ctx context.Context) error {
	var work sync.WaitGroup
	for _, m := range w.machines {
		if m.begin() {
			work.Go(func() { m.loop(ctx) })
		}
	}
	work.Wait()
	return nil
}

// Serve runs one machine and serves it on a listener until ctx ends. It closes the listener and returns
// nil when every connection has ended. Served again, the machine is as after a crash: its threads are
// there, its running turns were interrupted. Of a machine that leaves the listener is closed when it is lost.
func (w *World) Serve(ctx context.Context, machine string, ln net.Listener) error {
	m := w.find(machine)
	if m == nil {
		return errors.Join(fmt.Errorf("there is no simulated machine %q", machine), ln.Close())
	}
	whole := ctx
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var work sync.WaitGroup
	defer work.Wait()
	if m.begin() {
		work.Go(func() { m.loop(ctx) })
	}
	work.Go(func() {
		select {
		case <-m.lost:
			cancel()
			<-whole.Done()
		case <-ctx.Done():
		}
	})
	visitors := &gate{handler: w.Handler(machine), empty: make(chan struct{})}
	server := &http.Server{
		Handler:           visitors,
		ReadHeaderTimeout: 5 * time.Second,
		BaseContext:       func(net.Listener) context.Context { return ctx },
	}
	stop := afterDone(ctx, func() { _ = server.Close() })
	defer stop()
	err := server.Serve(ln)
	cancel()
	visitors.close()
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// A gate counts those inside, so that Serve can wait for them: an HTTP server forgets upgraded
// connections.
type gate struct {
	handler http.Handler  // Set once
	empty   chan struct{} // closed when the last has left after close
	mu      sync.Mutex
	inside  int  // Guarded by mu
	closed  bool // Guarded by mu
}

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		return
	}
	g.inside++
	g.mu.Unlock()
	defer func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.inside--; g.inside == 0 && g.closed {
			close(g.empty)
		}
	}()
	g.handler.ServeHTTP(w, r)
}

// close lets nobody in any more and waits until all have left.
func (g *gate) close() {
	g.mu.Lock()
	g.closed = true
	inside := g.inside
	g.mu.Unlock()
	if inside > 0 {
		<-g.empty
	}
}
