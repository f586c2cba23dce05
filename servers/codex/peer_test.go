package codex

import (
	"encoding/json"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/handoff"
	"switchboard/servers"
)

func TestHandshake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, wire := pipeFake(t)
		dialed := call(func() (*servers.Link, error) { return connect(t.Context(), withDefaults(Config{}), wire) })
		hello := f.expect("initialize")
		var p initializeParams
		must(t, json.Unmarshal(hello.Params, &p))
		if p.ClientInfo.Name != "switchboard" || p.ClientInfo.Version == "" || !p.Capabilities.ExperimentalAPI {
			t.Errorf("initialize %s", hello.Params)
		}
		for _, method := range []string{noteTurnCompleted, noteItemCompleted, noteMessageDelta, noteRequestResolved,
			noteError} {
			for _, out := range p.Capabilities.OptOutNotificationMethods {
				if out == method {
					t.Errorf("opted out of %s, which is used", method)
				}
			}
		}
		f.reply(hello, `{"userAgent":"switchboard/0.169.0 (Debian 12.0.0; x86_64) unknown (switchboard; devel)","codexHome":"/x"}`)
		f.expect("initialized")
		link := dialed.get(t)
		if link.Version != "0.169.0" {
			t.Errorf("version %q", link.Version)
		}
		select {
		case <-link.Done:
			t.Error("done at once")
		default:
		}
		must(t, link.Conn.Close())
		<-link.Done
	})
}

func TestHandshakeFails(t *testing.T) {
	for name, play := range map[string]func(*fake, sent){
		"silence":  func(f *fake, _ sent) { sleep(handshakeTimeout) },
		"refusal":  func(f *fake, hello sent) { f.refuse(hello, -32600, "Invalid clientInfo.name") },
		"hang-up":  func(f *fake, _ sent) { f.close() },
		"nonsense": func(f *fake, hello sent) { f.say(`{"id":%s,"result":[1]}`, hello.ID) },
	} {
		t.Run(name, bubble(func(t *testing.T) {
			f, wire := pipeFake(t)
			dialed := call(func() (*servers.Link, error) { return connect(t.Context(), withDefaults(Config{}), wire) })
			play(f, f.expect("initialize"))
			code := handoff.CodeUnreachable
			if name == "refusal" {
				code = handoff.CodeRefused
			}
			if e := dialed.wantCode(t, code); e.Subject != "bigpc" {
				t.Errorf("subject %q", e.Subject)
			}
		}))
	}
}

func TestResponsesOutOfOrder(t *testing.T) {
	withFake(t, func(t *testing.T, f *fake, link *servers.Link) {
		one := listing(t, link, 1)
		first := f.expect("thread/list")
		two := listing(t, link, 2)
		second := f.expect("thread/list")
		f.say(`not json`)
		f.say(`{"id":999,"result":{}}`)
		f.say(`{"id":"word","result":{}}`)
		f.reply(second, `{"data":[{"id":"b"}]}`)
		f.reply(first, `{"data":[{"id":"a"}]}`)
		if a, b := one.get(t), two.get(t); a[0].ID != "a" || b[0].ID != "b" {
			t.Errorf("got %v and %v", a, b)
		}
		c := link.Conn.(*connection)
		if c.peer.Malformed.Load() != 2 || c.peer.Late.Load() != 1 {
			t.Errorf("malformed %d late %d", c.peer.Malformed.Load(), c.peer.Late.Load())
		}
	})
}

func TestInFlightBound(t *testing.T) {
	withFake(t, func(t *testing.T, f *fake, link *servers.Link) {
		var waiting []async[[]servers.Thread]
		for range maxInFlight {
			waiting = append(waiting, listing(t, link, 1))
		}
		asked := f.take()
		if len(asked) != maxInFlight {
			t.Fatalf("%d requests", len(asked))
		}
		listing(t, link, 1).wantCode(t, handoff.CodeOverloaded)
		f.quiet()
		for _, a := range asked {
			f.reply(a, `{"data":[]}`)
		}
		for _, w := range waiting {
			w.get(t)
		}
		last := listing(t, link, 1)
		f.reply(f.expect("thread/list"), `{"data":[]}`)
		last.get(t)
	})
}

// TestAskedAgain: a request is sent again a few times if the server is overloaded, is unloading the thread, or does not
// find it for a moment. Such a session is not gone.
func TestAskedAgain(t *testing.T) {
	list := func(t *testing.T, link *servers.Link) error {
		_, err := link.Catalog.List(t.Context(), 1)
		return err
	}
	attach := func(t *testing.T, link *servers.Link) error {
		_, err := link.Conn.Attach(t.Context(), thread1)
		return err
	}
	there := fmt.Sprintf(`{"thread":{"id":%q},"initialTurnsPage":{"data":[]}}`, thread1)
	for _, c := range []struct {
		ask          func(*testing.T, *servers.Link) error
		method, text string
		wire, tries  int
		reply        string
		code         handoff.Code
	}{
		{list, "thread/list", "Server overloaded; retry later.", codeOverloaded, overloadTries, `{"data":[]}`,
			handoff.CodeOverloaded},
		{attach, "thread/resume", "thread " + thread1 + " is closing; retry thread/resume", -32600, closingTries, there,
			handoff.CodeOverloaded},
		{attach, "thread/resume", "no rollout found for thread id " + thread1, -32600, goneTries, there,
			handoff.CodeSessionGone},
	} {
		for _, refusals := range []int{c.tries - 1, c.tries} {
			withFake(t, func(t *testing.T, f *fake, link *servers.Link) {
				asked := callErr(func() error { return c.ask(t, link) })
				for range refusals {
					f.refuse(f.expect(c.method), c.wire, c.text)
					sleep(2 * time.Second)
				}
				if refusals == c.tries {
					asked.wantCode(t, c.code)
				} else {
					f.reply(f.expect(c.method), c.reply)
					asked.get(t)
				}
				f.quiet()
			})
		}
	}
}

// TestLateAnswers: a response that comes too late is dropped. Only the caller bounds the wait for a list: Codex goes on
// with a list that was given up, and with several of them it would answer none.
func TestLateAnswers(t *testing.T) {
	withFake(t, func(t *testing.T, f *fake, link *servers.Link) {
		begin := time.Now()
		callErr(func() error {
			_, err := link.Catalog.Read(t.Context(), thread1, 1)
			return err
		}).wantCode(t, handoff.CodeUnreachable)
		if took := time.Since(begin); took != readTimeout {
			t.Errorf("took %v", took)
		}
		f.reply(f.expect("thread/read"), `{"thread":{"id":"y"}}`)
		slow := listing(t, link, 1)
		late := f.expect("thread/list")
		sleep(time.Minute)
		f.quiet()
		f.reply(late, `{"data":[{"id":"x"},{"id":"y"}]}`)
		if got := slow.get(t); len(got) != 1 {
			t.Errorf("got %v", got)
		}
		next := listing(t, link, 1)
		f.reply(f.expect("thread/list"), `{"data":[{"id":"x"}]}`)
		if got := next.get(t); len(got) != 1 {
			t.Errorf("got %v", got)
		}
		last := listing(t, link, 1)
		f.expect("thread/list")
		_ = link.Conn.Close() // as when the server is removed, or Switchboard ends
		last.wantCode(t, handoff.CodeUnreachable)
	})
}
