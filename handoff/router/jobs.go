package router

import (
	"context"
	"sync"
)

// maxEarly bounds the jobs that wait for [Router.Run] to begin.
const maxEarly = 1000

// A job runs under [Router.Run] until it is done or the process ends.
type job func(ctx context.Context)

// jobs are what runs under [Router.Run].
type jobs struct {
	all sync.WaitGroup

	mu     sync.Mutex
	ctx    context.Context // Guarded by mu: of Run; nil before it
	closed bool            // Guarded by mu: no more are taken
	early  []job           // Guarded by mu: given before Run
	open   int             // Guarded by mu: begun and not done
}

// goLocked begins a job.
func (s *jobs) goLocked(ctx context.Context, j job) {
	s.open++
	s.all.Go(func() {
		j(ctx)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.open--
	})
}

// start begins a job. False means that the process ends and the job will never run.
func (r *Router) start(j job) bool {
	s := &r.jobs
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed, s.ctx == nil && len(s.early) >= maxEarly:
		return false
	case s.ctx == nil:
		s.early = append(s.early, j)
	default:
		s.goLocked(s.ctx, j)
	}
	return true
}

// finally begins a job that matters also when the process ends: then it gets one short try, beside what is still to
// end, or else here.
func (r *Router) finally(j job) {
	if r.start(j) {
		return
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	s := &r.jobs
	s.mu.Lock()
	beside := s.open > 0
	if beside {
		s.goLocked(ended, j)
	}
	s.mu.Unlock()
	if !beside {
		j(ended)
	}
}

// Run starts and awaits everything that outlives a call. It is called once. When ctx ends, every open run gets its
// outcome and Run returns after the last one.
func (r *Router) Run(ctx context.Context) error {
	s := &r.jobs
	s.mu.Lock()
	s.ctx = ctx
	early := s.early
	s.early = nil
	s.mu.Unlock()
	if r.ledger != nil {
		r.start(r.recover)
		r.start(r.repeat)
	}
	for _, j := range early {
		r.start(j)
	}
	<-ctx.Done()
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.all.Wait()
	r.counts.remove(r)
	return nil
}
