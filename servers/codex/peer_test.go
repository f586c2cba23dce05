package codex

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
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
		if c.peer.malformed.Load() != 2 || c.peer.late.Load() != 1 {
			t.Errorf("malformed %d late %d", c.peer.malformed.Load(), c.peer.late.Load())
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

func TestOverloadedReadsAreRepeated(t *testing.T) {
	withFake(t, func(t *testing.T, f *fake, link *servers.Link) {
		list := listing(t, link, 1)
		for try := 1; try < overloadTries; try++ {
			f.refuse(f.expect("thread/list"), codeOverloaded, "Server overloaded; retry later.")
			sleep(2 * time.Second)
		}
		f.reply(f.expect("thread/list"), `{"data":[]}`)
		list.get(t)

		list = listing(t, link, 1)
		for range overloadTries {
			f.refuse(f.expect("thread/list"), codeOverloaded, "Server overloaded; retry later.")
			sleep(2 * time.Second)
		}
		list.wantCode(t, handoff.CodeOverloaded)
		f.quiet()
	})
}

// TestClosingThreadIsResumedAgain: a thread that is just leaving the server's memory is no session that is
// gone, and no refusal.
func TestClosingThreadIsResumedAgain(t *testing.T) {
	withFake(t, func(t *testing.T, f *fake, link *servers.Link) {
		a := attaching(t, link)
		for try := 1; try < closingTries; try++ {
			f.refuse(f.expect("thread/resume"), -32600, "thread "+thread1+" is closing; retry thread/resume")
			sleep(2 * time.Second)
		}
		f.reply(f.expect("thread/resume"), fmt.Sprintf(`{"thread":{"id":%q},"initialTurnsPage":{"data":[]}}`, thread1))
		a.get(t)
	})
	withFake(t, func(t *testing.T, f *fake, link *servers.Link) {
		a := attaching(t, link)
		for range closingTries {
			f.refuse(f.expect("thread/resume"), -32600, "thread "+thread1+" is closing; retry thread/resume")
			sleep(2 * time.Second)
		}
		a.wantCode(t, handoff.CodeOverloaded)
	})
}

// TestThreadIsLookedForAgain: a thread that the server finds a moment later is no session that is gone.
func TestThreadIsLookedForAgain(t *testing.T) {
	withFake(t, func(t *testing.T, f *fake, link *servers.Link) {
		a := attaching(t, link)
		f.refuse(f.expect("thread/resume"), -32600, "no rollout found for thread id "+thread1)
		sleep(time.Second)
		f.reply(f.expect("thread/resume"), fmt.Sprintf(`{"thread":{"id":%q},"initialTurnsPage":{"data":[]}}`, thread1))
		a.get(t)
	})
	withFake(t, func(t *testing.T, f *fake, link *servers.Link) {
		a := attaching(t, link)
		f.gone()
		a.wantCode(t, handoff.CodeSessionGone)
		f.quiet()
	})
}

func TestTimeouts(t *testing.T) {
	withFake(t, func(t *testing.T, f *fake, link *servers.Link) {
		begin := time.Now()
		listing(t, link, 1).wantCode(t, handoff.CodeUnreachable)
		if took := time.Since(begin); took != readTimeout {
			t.Errorf("took %v", took)
		}
		late := f.expect("thread/list")
		f.reply(late, `{"data":[]}`) // nobody waits for it any more
		next := listing(t, link, 1)
		f.reply(f.expect("thread/list"), `{"data":[{"id":"x"}]}`)
		if got := next.get(t); len(got) != 1 {
			t.Errorf("got %v", got)
		}
	})
}

// TestWriteDeadline: a server that does not read is lost, and nobody waits for it longer than that.
func TestWriteDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, wire := pipeFake(t)
		_ = f
		stuck := &stuckWire{pipeWire: wire}
		p := newPeer(stuck, withDefaults(Config{}).Log, func(message) {})
		ended := make(chan struct{})
		go func() { p.run(); close(ended) }()
		first := callErr(func() error { return p.tell(t.Context(), request{Method: "a"}) })
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		second := callErr(func() error { return p.tell(ctx, request{Method: "b"}) })
		third := callErr(func() error {
			_, err := p.call(ctx, "turn/start", nil, nil)
			return err
		})
		if r := <-third.done; !wasNotSent(r.err) {
			t.Errorf("a start that never reached the writer: %v", r.err)
		}
		if r := <-second.done; !wasNotSent(r.err) {
			t.Errorf("a frame that never reached the writer: %v", r.err)
		}
		if r := <-first.done; r.err == nil || wasNotSent(r.err) {
			t.Errorf("a frame that may have left: %v", r.err)
		}
		<-ended
		if r := <-callErr(func() error { return p.tell(t.Context(), request{Method: "c"}) }).done; !wasNotSent(r.err) {
			t.Errorf("after the loss: %v", r.err)
		}
	})
}

// stuckWire writes into nothing until its deadline.
type stuckWire struct{ *pipeWire }

func (s *stuckWire) Write([]byte) error {
	time.Sleep(10 * time.Second)
	return errors.New("i/o timeout")
}

func TestEncodeSanitises(t *testing.T) {
	frame, err := encode(request{Method: "x",
		Params: map[string]any{"text": "a\xffb\x00", "raw": json.RawMessage("\"c\xfe\"")}})
	must(t, err)
	if s := string(frame); s != strings.ToValidUTF8(s, "!") || strings.Contains(s, "\n") {
		t.Errorf("frame %q", frame)
	}
	if _, err := bounded(make([]byte, servers.MaxFrame+1)); !errors.Is(err, servers.ErrTooLarge) {
		t.Errorf("large frame: %v", err)
	}
}

func TestParse(t *testing.T) {
	for frame, want := range map[string]messageKind{
		`{"method":"a"}`:                       kindNotification,
		`{"method":"a","id":null}`:             kindNotification,
		`{"method":"a","id":0,"params":{}}`:    kindRequest,
		`{"method":"a","id":"x"}`:              kindRequest,
		`{"id":1,"result":{}}`:                 kindResponse,
		`{"id":1,"error":{"code":1}}`:          kindResponse,
		`{"id":1,"result":null}`:               kindResponse,
		`{"id":1}`:                             kindMalformed,
		`{}`:                                   kindMalformed,
		`[]`:                                   kindMalformed,
		`"x"`:                                  kindMalformed,
		``:                                     kindMalformed,
		`{"jsonrpc":"2.0","id":1,"result":{}}`: kindResponse,
	} {
		if _, got := parse([]byte(frame)); got != want {
			t.Errorf("%s: kind %d, want %d", frame, got, want)
		}
	}
}

// TestReplyInHand: a response that the reader is taking over when the caller gives up is not lost: a
// started turn that was claimed is also reported.
func TestReplyInHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, wire := pipeFake(t)
		p := newPeer(wire, withDefaults(Config{}).Log, func(message) {})
		ended := make(chan struct{})
		go func() { p.run(); close(ended) }()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		c := call(func() (json.RawMessage, error) {
			return p.call(ctx, "x", nil, func(json.RawMessage) { time.Sleep(2 * time.Second) })
		})
		f.reply(f.expect("x"), `{"turn":1}`)
		if got := c.get(t); string(got) != `{"turn":1}` {
			t.Errorf("got %s", got)
		}
		p.Lose(servers.ErrClosed)
		<-ended
	})
}
