package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
)

// TestStagesEndInOrder holds that each stage ends only after the one that uses it has returned.
func TestStagesEndInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var order []string
		slow := func(name string, d time.Duration) stage {
			return stage{name, func(ctx context.Context) error {
				<-ctx.Done()
				time.Sleep(d)
				mu.Lock()
				defer mu.Unlock()
				order = append(order, name)
				return context.Cause(ctx)
			}}
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Minute, cancel)
		err := runStages(ctx, zap.NewNop(), []stage{slow("http", 3*time.Second), slow("router", time.Second), slow("store", 0)})
		if err != nil || !slices.Equal(order, []string{"http", "router", "store"}) {
			t.Fatalf("%v, %v", order, err)
		}
	})
}

// TestStageThatFails holds that one stage's failure ends the others and is what is reported.
func TestStageThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := false
		err := runStages(t.Context(), zap.NewNop(), []stage{
			{"http", func(ctx context.Context) error { <-ctx.Done(); ended = true; return errors.New("closing went wrong") }},
			{"store", func(context.Context) error { time.Sleep(time.Second); return errors.New("the lease is lost") }},
		})
		if !ended || err == nil || !strings.HasPrefix(err.Error(), "store: the lease is lost") {
			t.Fatalf("ended %t, %v", ended, err)
		}
	})
}

// TestStageThatEnds holds that a stage that ends before it is told to has failed, also without an error of its own.
func TestStageThatEnds(t *testing.T) {
	for _, own := range []error{nil, context.Canceled} {
		err := runStages(t.Context(), zap.NewNop(), []stage{{"store", func(context.Context) error { return own }}})
		if err == nil || !strings.HasPrefix(err.Error(), "store: ") {
			t.Errorf("ended with %v, reported as %v", own, err)
		}
	}
}
