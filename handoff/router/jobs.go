package router

import (
	"context"
	"sync"
)

// maxEarly bounds the jobs that wait for [Router.Run] to begin.
const maxEarly = 1000

// A job runs under [Router.Run] until it is done or the process ends.
type job func(ctx context.Context)

// jobs runs jobs under [Router.Run].
type jobs struct {
	running sync.WaitGroup

	mu     sync.Mutex
	ctx    context.Context // Guarded by mu: of Run; nil before it
	closed bool            // Guarded by mu: no more jobs are taken
	early  []job           // Guarded by mu: jobs that wait for Run
	open   int             // Guarded by mu: number of running jobs
}

// runLocked begins a job.
func (s *jobs) runLocked(ctx context.Context, j job) {
	s.open++
	s.running.Go(func() {
		j(ctx)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.open--
	})
}

// start begins a job. It returns false if the job will never run, because the process ends.
func (s *jobs) start(j job) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed, s.ctx == nil && len(s.early) >= maxEarly:
		return false
	case s.ctx == nil:
		s.early = append(s.early, j)
	default:
		s.runLocked(s.ctx, j)
	}
	return true
}

// finally begins a job that must run also when the process ends. Then the job is called with a context that has ended
// and makes one short try: beside the jobs that still run, or else before finally returns.
func (s *jobs) finally(j job) {
	if s.start(j) {
		return
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	s.mu.Lock()
	beside := s.open > 0
	if beside {
		s.runLocked(ended, j)
	}
	s.mu.Unlock()
	if !beside {
		j(ended)
	}
}

// isClosed reports whether no more jobs are taken.
func (s *jobs) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// refuse takes no more jobs.
func (s *jobs) refuse() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
}

// run begins the first jobs and the early ones, and returns when ctx has ended and every job is done.
func (s *jobs) run(ctx context.Context, first ...job) {
	s.mu.Lock()
	s.ctx = ctx
	early := s.early
	s.early = nil
	s.mu.Unlock()
	for _, j := range append(first, early...) {
		s.start(j)
	}
	<-ctx.Done()
	s.refuse()
	s.running.Wait()
}
