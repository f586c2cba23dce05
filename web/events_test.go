package web

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/handoff"
)

// A line of the feed, as a client reads it.
type sent struct{ id, event, data string }

// stream is a client of /fleet/events.
type stream struct {
	t    *testing.T
	body *bufio.Reader
	end  context.CancelFunc
}

func follow(t *testing.T, base, last string) *stream {
	t.Helper()
	return followPath(t, base+"/fleet/events", last)
}

func followPath(t *testing.T, url, last string) *stream {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, "GET", url, nil)
	must(t, err)
	r.Header.Set("Authorization", "Bearer "+ownerKey)
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	res, err := http.DefaultClient.Do(r)
	must(t, err)
	t.Cleanup(func() { _ = res.Body.Close() })
	if res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("got %d %s", res.StatusCode, res.Header.Get("Content-Type"))
	}
	return &stream{t, bufio.NewReader(res.Body), cancel}
}

// next reads one event; ok is false at the end of the stream.
func (s *stream) next() (e sent, ok bool) {
	for {
		line, err := s.body.ReadString('\n')
		if err != nil {
			return sent{}, false
		}
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch name {
		case "id":
			e.id = value
		case "event":
			e.event = value
		case "data":
			e.data = value
		case "":
			if e != (sent{}) {
				return e, true
			}
		}
	}
}

// want reads one event and holds it to what it must contain.
func (s *stream) want(event, data string) sent {
	s.t.Helper()
	e, ok := s.next()
	if !ok || e.event != event || !strings.Contains(e.data, data) {
		s.t.Fatalf("got %+v (%v), want event %q with %q", e, ok, event, data)
	}
	return e
}

func delta(text string) handoff.PageEvent {
	return handoff.PageEvent{Kind: handoff.PageDelta, Handoff: "h1", ItemID: "i1", Delta: text}
}

func TestEvents(t *testing.T) {
	w := newWorld()
	s, base := serve(t, w, nil)
	feed := w.feed("owner")
	feed.Publish(delta("before"))
	a := follow(t, base, "")
	if e := a.want("reset", "{}"); e.id != s.streams.life+"-1" {
		t.Errorf("reset has id %q", e.id)
	}
	if feed.Shown() {
		t.Error("a program's stream counts as a page that somebody reads")
	}
	feed.Publish(delta("one"))
	w.feed("other").Publish(delta("not for you"))
	feed.Publish(delta("two\nlines"))
	first := a.want("", `"delta":"one"`)
	a.want("", `"delta":"two\nlines"`)
	a.end()

	feed.Publish(delta("three"))
	b := follow(t, base, first.id)
	b.want("", `two\nlines`)
	b.want("", "three")
	feed.Publish(delta("four"))
	b.want("", "four")
}

func TestEventsReset(t *testing.T) {
	w := newWorld()
	s, base := serve(t, w, nil)
	feed := w.feed("owner")
	const newest = handoff.FeedBacklog + 20
	for range newest {
		feed.Publish(delta("x"))
	}
	life := s.streams.life
	for name, last := range map[string]string{
		"too old":               life + "-3",
		"another life":          "AAAAAAAA-19",
		"from the future":       life + "-9999",
		"not an id":             "garbage",
		"no number":             life + "-",
		"negative":              life + "--1",
		"just outside":          life + "-19",
		"no id":                 "",
		"number that overflows": life + "-99999999999999999999",
	} {
		c := follow(t, base, last)
		if e := c.want("reset", "{}"); e.id != fmt.Sprintf("%s-%d", life, newest) {
			t.Errorf("%s: reset has id %q", name, e.id)
		}
		c.end()
	}
	c := follow(t, base, life+"-20") // just inside
	if e := c.want("", "x"); e.id != life+"-21" {
		t.Errorf("resumed at %q", e.id)
	}
}

func TestEventsOfASlowListener(t *testing.T) {
	w := newWorld()
	_, base := serve(t, w, nil)
	feed := w.feed("owner")
	a := follow(t, base, "")
	last := a.want("reset", "{}").id
	much := delta(strings.Repeat("x", 16<<10))
	for dropped := uint64(0); dropped == 0; _, dropped = feed.Load() { // more than the socket and the queue hold
		feed.Publish(much)
	}
	for e, ok := a.next(); ok; e, ok = a.next() {
		last = e.id
	}
	if b := follow(t, base, last); b.want("", "xxx").id == last {
		t.Errorf("came back with %s and got it again", last)
	}
}

func TestEventStreamsAreBounded(t *testing.T) {
	w := newWorld()
	s, base := serve(t, w, nil)
	var open []*stream
	for range maxStreams {
		c := follow(t, base, "")
		c.want("reset", "")
		open = append(open, c)
	}
	rec := ask(s, "GET", "/fleet/events", "", func(r *http.Request) { r.Host = strings.TrimPrefix(base, "http://") })
	if got := codeOf(t, rec); got != handoff.CodeOverloaded {
		t.Errorf("one more: %s", got)
	}
	if s.streams.refused != 1 {
		t.Errorf("counted %d refusals", s.streams.refused)
	}
	open[0].end()
	for w.feed("owner").listening() == maxStreams { // the server notices in its own time
		time.Sleep(time.Millisecond)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for {
		rec := ask(s, "GET", "/fleet/events", "", func(r *http.Request) {
			*r = *r.WithContext(ctx)
			r.Host = strings.TrimPrefix(base, "http://")
		})
		if rec.Code == http.StatusOK {
			break
		}
		time.Sleep(time.Millisecond)
	}
}

func TestEventsEndAtShutdown(t *testing.T) {
	w := newWorld()
	s, base := serve(t, w, nil)
	c := follow(t, base, "")
	c.want("reset", "")
	s.Close()
	s.Close()
	if e, ok := c.next(); ok {
		t.Errorf("got %+v, want the end", e)
	}
}

// recorder collects what a stream writes, in a bubble without a network.
type recorder struct {
	*httptest.ResponseRecorder
	mu  sync.Mutex
	got strings.Builder // Guarded by mu
}

func (r *recorder) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.got.Write(p)
}

func (r *recorder) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.got.String()
}

func TestEventsHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		s := newServer(t, w, nil)
		ctx, cancel := context.WithCancel(t.Context())
		rec := &recorder{ResponseRecorder: httptest.NewRecorder()}
		var wg sync.WaitGroup
		wg.Go(func() {
			r := httptest.NewRequest("GET", "/fleet/events", nil).WithContext(ctx)
			r.Host = "127.0.0.1:8080"
			r.Header.Set("Authorization", "Bearer "+ownerKey)
			s.ServeHTTP(rec, r)
		})
		time.Sleep(time.Minute + time.Second)
		synctest.Wait()
		if n := strings.Count(rec.text(), ": alive\n\n"); n != 4 {
			t.Errorf("%d heartbeats in a minute, want 4:\n%s", n, rec.text())
		}
		cancel()
		wg.Wait()
		if w.feed("owner").listening() != 0 {
			t.Error("the listener stayed")
		}
	})
}

// TestStreamsOfAKeyStarveNobody: a key that takes all its event streams leaves the page and other keys theirs; all
// callers of a key together have a bound, too.
func TestStreamsOfAKeyStarveNobody(t *testing.T) {
	who, linked := handoff.Caller{Principal: "owner"}, handoff.Grant{Key: "limited", By: grantorLogin + " 1", Linked: true}
	s := &streams{open: map[streamShare]int{}}
	limited := handoff.Grant{Caller: who, Key: "limited", By: grantorKey + " 2", Tools: []string{"status"}}
	for n := range maxStreams + 1 {
		if s.enter(limited) != (n < maxStreams) {
			t.Errorf("stream %d of a key: %v", n, n >= maxStreams)
		}
	}
	linked.Caller = who
	for name, g := range map[string]handoff.Grant{
		"a page": linked, "another key": {Caller: who, Key: "other", By: grantorKey + " 3"},
		"a login of the key": {Caller: who, Key: "limited", By: grantorLogin + " 4"},
	} {
		if !s.enter(g) {
			t.Errorf("%s has no stream", name)
		}
	}
	s.leave(limited)
	if !s.enter(limited) {
		t.Error("a stream that ended counts")
	}
	many := &streams{open: map[streamShare]int{}}
	for n := range maxOfKey + 1 {
		of := handoff.Grant{Caller: handoff.Caller{Principal: "shop", User: strconv.Itoa(n)}, Key: "shop"}
		if many.enter(of) != (n < maxOfKey) {
			t.Errorf("stream %d of a key: %v", n, n >= maxOfKey)
		}
	}
}

// TestStreamsOfAPage: the event stream of a page offers the answers of a tap, and an API's does not.
func TestStreamsOfAPage(t *testing.T) {
	s, _ := serve(t, newWorld(), nil)
	for name, wrap := range map[string]func(handler) handler{"stream": s.whileGranted, "API": s.asProgram} {
		var page bool
		serve := wrap(func(_ http.ResponseWriter, _ *http.Request, g handoff.Grant) error { page = g.Page; return nil })
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/", nil)
		must(t, serve(httptest.NewRecorder(), r, handoff.Grant{Page: true, Revoked: func() error { return nil }}))
		if page != (name == "stream") {
			t.Errorf("%s: a login counts as a page: %v", name, page)
		}
	}
}
