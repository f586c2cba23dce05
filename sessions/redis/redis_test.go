package redis_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"switchboard/handoff"
	"switchboard/sessions/redis"
	"switchboard/sessions/sessionstest"
)

// unreachable fails the test unless err has code unreachable, names the address and hides the password.
func unreachable(t *testing.T, err error, addr string) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	e := handoff.AsError(err)
	if e.Code != handoff.CodeUnreachable || !strings.Contains(err.Error(), addr) {
		t.Fatalf("error %v, want unreachable at %q", err, addr)
	}
	if strings.Contains(err.Error()+e.Spoken(), "s3cret") {
		t.Fatalf("the password is told: %v", err)
	}
}

func TestURLThatIsNone(t *testing.T) {
	for url, addr := range map[string]string{
		"127.0.0.1:6379":                        "",
		"http://user:s3cret@127.0.0.1:6379":     "127.0.0.1:6379",
		"redis://user:s3cret@127.0.0.1:port/0":  "Redis",
		"redis://:s3cret#s3cret@127.0.0.1:7/0":  "127.0.0.1:7",
		"redis://:s3cret/s3cret@127.0.0.1:7/0":  "127.0.0.1:7",
		"redis://:s3cret?s3cret@[::1]:7/0":      "Redis",
		"redis://u:s3cret@127.0.0.1:7/s3cret":   "127.0.0.1:7",
		"redis://u:s3cret@127.0.0.1:7/0?x=s3cr": "127.0.0.1:7",
		"redis://:s3cret":                       "Redis",
		"redis://u:s3cret%zz@127.0.0.1:7":       "127.0.0.1:7",
	} {
		_, err := redis.Open(t.Context(), redis.Config{URL: url})
		unreachable(t, err, addr)
	}
}

func TestNobodyAnswers(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0") // the kernel accepts; nobody answers
	must(t, err)
	defer func() { _ = silent.Close() }()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	must(t, closed.Close())
	for name, addr := range map[string]string{"silent": silent.Addr().String(), "closed": closed.Addr().String()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			_, err := redis.Open(ctx, redis.Config{URL: "redis://u:s3cret@" + addr + "/0"})
			unreachable(t, err, addr)
			if ctx.Err() != nil {
				t.Fatal("only the caller's own time limit ended it")
			}
		})
	}
}

func TestPasswordRefused(t *testing.T) {
	t.Parallel()
	server := sessionstest.StartRedis(t)
	_, err := redis.Open(t.Context(), redis.Config{URL: "redis://u:s3cret@" + server.Addr + "/0"})
	unreachable(t, err, server.Addr)
	if !strings.Contains(err.Error(), "WRONGPASS") {
		t.Fatalf("the reason is not told: %v", err)
	}
}

func TestStartsWhileRedisStarts(t *testing.T) {
	t.Parallel()
	server := sessionstest.StartRedis(t)
	server.Kill()
	done := make(chan error, 1)
	go func() {
		s, err := redis.Open(t.Context(), redis.Config{URL: server.URL})
		if err == nil {
			err = s.Close()
		}
		done <- err
	}()
	server.Start()
	must(t, <-done)
}

func TestSecondOnTheSameRedis(t *testing.T) {
	t.Parallel()
	server := sessionstest.StartRedis(t)
	cfg := redis.Config{URL: server.URL}
	first, err := redis.Open(t.Context(), cfg)
	must(t, err)
	ended := sessionstest.Run(t, first)
	open(t, redis.Config{URL: server.URL, Prefix: "other"}) // another prefix is another store

	host, _ := os.Hostname()
	if _, err := redis.Open(t.Context(), cfg); err == nil || !strings.Contains(err.Error(),
		fmt.Sprintf("%s:%d", host, os.Getpid())) {
		t.Fatalf("open: %v, want a refusal that names the holder", err)
	}
	done := make(chan error, 1)
	go func() { // a restart: the second waits until the first has ended
		s, err := redis.Open(t.Context(), cfg)
		if err == nil {
			err = s.Close()
		}
		done <- err
	}()
	must(t, ended())
	must(t, first.Close())
	must(t, <-done)
}

// A store whose lease is not renewed (nobody runs it) loses it, and must notice.
func TestLeaseLost(t *testing.T) {
	t.Parallel()
	server := sessionstest.StartRedis(t)
	cfg := redis.Config{URL: server.URL}
	first := open(t, cfg)
	second := open(t, cfg) // the lease expires after 3 s
	ended := sessionstest.Run(t, second)
	err := first.Run(expired(t))
	if err == nil || !strings.Contains(err.Error(), "taken over") || first.LeasesLost() != 1 {
		t.Fatalf("run: %v, %d leases lost", err, first.LeasesLost())
	}
	must(t, ended())
}

// expired returns a context with which Run ticks once.
func expired(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}
