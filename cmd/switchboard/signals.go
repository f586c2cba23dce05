package main

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"go.uber.org/zap"
)

// outlive lets the process live on when the terminal that it was started from closes, and when nobody reads
// any more what it prints: either would end it, with every call in it. The signals are caught and not
// ignored, because what is ignored stays so in the programs that it starts. There is nothing to read anew on
// SIGHUP: secrets are read at each use, and the rest takes a restart. It returns what waits for its end.
func outlive(ctx context.Context, log *zap.Logger) (wait func()) {
	signals := make(chan os.Signal, 1) // one of each kind says it all
	signal.Notify(signals, syscall.SIGHUP, syscall.SIGPIPE)
	var waiting sync.WaitGroup
	waiting.Go(func() {
		for {
			select {
			case s := <-signals:
				if s == syscall.SIGHUP {
					log.Info("terminal closed, going on")
				}
			case <-ctx.Done():
				return // the signals stay caught: the end takes its time
			}
		}
	})
	return waiting.Wait
}
