package redis

import (
	"context"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
	"switchboard/sessions/sessionstest"
)

// Who waits for the store hears within a second that the Redis is gone, also when it only says nothing or cannot even
// be dialled.
func TestWithinASecond(t *testing.T) {
	asks := map[string]func(context.Context, *Store) error{
		"commit": func(ctx context.Context, s *Store) error {
			_, err := s.Commit(ctx, sessionstest.Owner, sessionstest.Put("key"))
			return err
		},
		"state":   func(ctx context.Context, s *Store) error { _, err := s.State(ctx, sessionstest.Owner); return err },
		"waiting": func(ctx context.Context, s *Store) error { _, err := s.Waiting(ctx, ledger.HandoffDoc); return err },
	}
	dials := map[string]func() (net.Conn, error){
		"silent": func() (net.Conn, error) { ours, _ := net.Pipe(); return ours, nil },
		"no answer to the dial": func() (net.Conn, error) { // it ends by itself, behind our back
			time.Sleep(dialWithin)
			return nil, context.DeadlineExceeded
		},
	}
	for how, dial := range dials {
		for what, ask := range asks {
			t.Run(how+", "+what, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					o := options(&goredis.Options{Addr: "127.0.0.1:0"})
					o.Dialer = func(context.Context, string, string) (net.Conn, error) { return dial() }
					o.PoolSize = 4096 // so many that none is waited for: all bubbles share the timers of that
					s := newStore(Config{})
					s.where, s.client, s.lease = "Redis", goredis.NewClient(o), &lease{}
					began := time.Now()
					err := ask(t.Context(), s)
					if handoff.CodeOf(err) != handoff.CodeUnreachable {
						t.Errorf("it gave %v", err)
					}
					if took := time.Since(began); took > time.Second {
						t.Errorf("it took %v", took)
					}
					_ = s.client.Close()
					time.Sleep(dialWithin)
				})
			})
		}
	}
}

// TestCommitWithinASecond: a commit of several commands takes no longer, however late each answer comes.
func TestCommitWithinASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := options(&goredis.Options{Addr: "127.0.0.1:0"})
		o.Dialer = func(context.Context, string, string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			go func() { // it puts the caller into the index late, and never answers the script
				request := make([]byte, 4<<10)
				for {
					n, err := theirs.Read(request)
					if err != nil {
						return
					}
					switch asked := strings.ToLower(string(request[:n])); {
					case strings.Contains(asked, "sadd"):
						time.Sleep(600 * time.Millisecond)
						_, _ = theirs.Write([]byte(":1\r\n"))
					case !strings.Contains(asked, "eval"): // the client begins the connection
						_, _ = theirs.Write([]byte("-ERR unknown command\r\n"))
					}
				}
			}()
			return ours, nil
		}
		o.PoolSize = 4096 // as above
		s := newStore(Config{})
		s.where, s.client, s.lease = "Redis", goredis.NewClient(o), &lease{}
		began := time.Now()
		_, err := s.Commit(t.Context(), sessionstest.Owner, sessionstest.Put("key"))
		if took := time.Since(began); handoff.CodeOf(err) != handoff.CodeUnreachable || took > time.Second {
			t.Errorf("it took %v: %v", took, err)
		}
		_ = s.client.Close()
		time.Sleep(dialWithin)
	})
}
