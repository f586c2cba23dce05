package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"go.uber.org/zap"
)

// A stage is a part of the service that runs until its context ends.
type stage struct {
	name string
	run  func(context.Context) error
}

// runStages runs all stages until ctx or one of them ends. Then it stops the stages in order, each after the one before
// it has returned. A stage must therefore be listed before the stages that it uses. runStages returns the error of the
// stage that failed first. A stage that ends before it is told to has failed, whatever it returns.
func runStages(ctx context.Context, log *zap.Logger, stages []stage) error {
	type end struct {
		index int
		err   error
	}
	ends := make(chan end, len(stages))
	cancels := make([]context.CancelFunc, len(stages))
	for i, s := range stages {
		own, cancel := context.WithCancel(context.WithoutCancel(ctx))
		cancels[i] = cancel
		go func() { ends <- end{i, s.run(own)} }() // the loop below takes each end
	}
	ended := make([]bool, len(stages))
	var first error
	take := func(e end) {
		ended[e.index] = true
		if e.err != nil && !errors.Is(e.err, context.Canceled) && first == nil {
			first = fmt.Errorf("%s: %w", stages[e.index].name, e.err)
		}
	}
	select {
	case <-ctx.Done():
	case e := <-ends:
		ended[e.index] = true
		first = fmt.Errorf("%s: %w", stages[e.index].name, cmp.Or(e.err, errors.New("it ended by itself")))
	}
	for i, s := range stages {
		log.Debug("stopping", zap.String("stage", s.name))
		cancels[i]()
		for !ended[i] {
			take(<-ends)
		}
	}
	return first
}
