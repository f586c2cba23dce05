package redis

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"switchboard/handoff"
	"switchboard/handoff/ledger"
	"switchboard/sessions"
	"switchboard/sessions/sessionstest"
)

var (
	sessionsLogin = sessions.Login{ID: "id", Sum: sha256.Sum256([]byte("token")), Principal: "owner", Host: "host",
		Made: time.UnixMilli(1).UTC(), Used: time.UnixMilli(2).UTC(), Ends: time.Now().Add(time.Hour).Truncate(time.Second).UTC()}
	sessionsMachine = sessions.Machine{Key: bytes.Repeat([]byte("k"), 32), Name: "mini", Joined: time.UnixMilli(3).UTC(),
		Body: []byte("{}")}
	sessionsApp = sessions.App{ID: "id", Principal: "owner", Name: "app", Ends: sessionsLogin.Ends}
)

// former writes keys as versions before the documents did: an open handoff, one that waits to be heard, one that was
// heard, one of which no words are kept, and a sticky thread.
func former(server *sessionstest.Redis) {
	const caller = "switchboard:{owner/a%2Fb}:"
	entry := func(key, more string) {
		server.Do("HSET " + caller + "handoff:" + key + " key " + key + " principal owner user a/b owner me args sum " +
			"accepted 1764000000123 client id server bigpc thread t1 why named prompt fix title auth attempt 1 " + more)
	}
	entry("open", "status started turn turn-1 watermark w1 inherited 1")
	entry("waits", "status completed outcome result spoken done ended 1764000001000")
	entry("heard", "status delivered outcome result spoken done tests passed ended 1764000002000")
	entry("tomb", "status delivered outcome failed unkept 1 ended 1764000003000")
	server.Do("ZADD " + caller + "open 1764000000123 open 1764000000123 waits")
	server.Do("ZADD " + caller + "unheard 1764000001000 waits")
	server.Do(fmt.Sprint("ZADD ", caller, "history ", time.Now().UnixMilli(), " heard"))
	server.Do("HSET " + caller + "body:heard prompt fix text done")
	server.Do("HSET " + caller + "sticky bigpc/api " +
		strconv.Quote(`{"thread":"t1","title":"auth","named":true,"since":"2026-05-04T12:00:00Z"}`))
	login := handoff.Encode(sessionsLogin)
	server.Do("SET switchboard:login:" + hex.EncodeToString(sessionsLogin.Sum[:]) + " " + strconv.Quote(login))
	server.Do("HSET switchboard:records:keys one body")
	server.Do("HSET switchboard:machines 6b " + strconv.Quote(handoff.Encode(sessionsMachine)))
	server.Do("HSET switchboard:app:id next 00 body " + strconv.Quote(handoff.Encode(sessionsApp)))
	server.Do("SADD switchboard:homes:gone owner/a%2Fb")
	server.Do("HSET switchboard:{m}:beats gone {}")
}

// TestUpgrade: what a version before this one kept is there after it was converted, once.
func TestUpgrade(t *testing.T) {
	server := sessionstest.StartRedis(t)
	former(server)
	c := handoff.Caller{Principal: "owner", User: "a/b"}
	for range 2 {
		s, err := Open(t.Context(), Config{URL: server.URL})
		must(t, err)
		waiting, err := s.Waiting(t.Context(), ledger.HandoffDoc)
		must(t, err)
		if !slices.Equal(waiting, []handoff.Caller{c}) {
			t.Errorf("%v wait", waiting)
		}
		now, err := s.State(t.Context(), c)
		must(t, err)
		docs := now.Documents
		unreadable := func(name string) { t.Errorf("%s cannot be read", name) }
		page, err := s.History(t.Context(), c, ledger.HistoryQuery{Search: "aut fix"})
		must(t, err)
		tomb, found, err := s.Find(t.Context(), c, "tomb")
		must(t, err)
		got := map[string]ledger.Entry{}
		for _, e := range append(slices.Concat(ledger.Entries(docs, unreadable), page.Entries), tomb) {
			got[e.Key] = e
		}
		facts := ledger.Facts{ClientID: "id", Target: handoff.Target{Server: "bigpc", Thread: "t1"}, Why: "named", Prompt: "fix",
			Title: "auth"}
		want := map[string]ledger.Entry{}
		for key, change := range map[string]func(*ledger.Entry){
			"open": func(e *ledger.Entry) {
				e.Status, e.Inherited, e.Turn, e.Watermark = handoff.StatusStarted, true, "turn-1", "w1"
			},
			"waits": func(e *ledger.Entry) {
				e.Status, e.Outcome, e.Spoken, e.Tests = handoff.StatusCompleted, "result", "done", handoff.TestsUnknown
				e.Ended = time.UnixMilli(1764000001000).UTC()
			},
			"heard": func(e *ledger.Entry) {
				e.Status, e.Outcome, e.Spoken, e.Tests = handoff.StatusDelivered, "result", "done", handoff.TestsPassed
				e.Ended = time.UnixMilli(1764000002000).UTC()
			},
			"tomb": func(e *ledger.Entry) {
				e.Status, e.Outcome, e.Unkept = handoff.StatusDelivered, "failed", true
				e.Ended = time.UnixMilli(1764000003000).UTC()
			},
		} {
			e := ledger.Entry{Key: key, Caller: c, Owner: "me", Args: "sum", Attempt: 1, Facts: facts,
				Accepted: time.UnixMilli(1764000000123).UTC()}
			change(&e)
			want[key] = e
		}
		if diff := cmp.Diff(want, got); diff != "" || !found || len(docs) != 3 {
			t.Fatalf("-want +got:\n%s", diff)
		}
		words := ledger.Body{Prompt: "fix", Text: "done"}
		if all, err := s.Bodies(t.Context(), c, "heard"); err != nil || all["heard"] != words {
			t.Errorf("its words are %+v, %v", all, err)
		}
		sticky, _, ok := ledger.DecodeSticky("bigpc/api", docs[ledger.StickyDoc+"bigpc/api"])
		if !ok || sticky.Target != (handoff.Target{Server: "bigpc", Project: "api", Thread: "t1"}) {
			t.Errorf("the current thread is %+v", sticky)
		}
		if l, ok, err := s.Login(t.Context(), sessionsLogin.Sum); err != nil || !ok || l != sessionsLogin {
			t.Errorf("the login is %+v, %v", l, err)
		}
		if all, err := s.Machines(t.Context()); err != nil || len(all) != 1 || all[0].Name != "mini" {
			t.Errorf("machines are %+v, %v", all, err)
		}
		if all, err := s.Apps(t.Context(), "owner"); err != nil || len(all) != 1 || all[0] != sessionsApp {
			t.Errorf("apps are %+v, %v", all, err)
		}
		if all, err := s.Records(t.Context(), "keys"); err != nil || len(all) != 1 || string(all[0].Body) != "body" {
			t.Errorf("records are %+v, %v", all, err)
		}
		for _, key := range s.client.Keys(t.Context(), "switchboard:{owner/a%2Fb}:*").Val() {
			if kind := strings.TrimPrefix(key, "switchboard:{owner/a%2Fb}:"); !strings.HasPrefix(kind, docsKey) &&
				!strings.HasPrefix(kind, historyKey) && !strings.HasPrefix(kind, textsName) {
				t.Errorf("a former key is left: %s", key)
			}
		}
		// What a version before this one sees: a holder that never ends.
		if mark, ttl := s.client.Get(t.Context(), s.formerLease()).Val(), s.client.PTTL(t.Context(), s.formerLease()).Val(); ttl != -1 ||
			!strings.HasPrefix(mark, "a-newer-Switchboard ") {
			t.Errorf("a version before this one is let in by %q", mark)
		}
		must(t, s.Close())
	}
}

// TestUpgradeWaitsForTheFormer: data is not converted while a version before this one uses it.
func TestUpgradeWaitsForTheFormer(t *testing.T) {
	server := sessionstest.StartRedis(t)
	former(server)
	server.Do("SET switchboard:lease several-instances")
	if _, err := Open(t.Context(), Config{URL: server.URL, Shared: true}); err == nil ||
		!strings.Contains(err.Error(), "several-instances") {
		t.Fatalf("it was opened: %v", err)
	}
	server.Do("RENAME switchboard:{owner/a%2Fb}:handoff:open was-not-converted") // fails where it is missing
}
