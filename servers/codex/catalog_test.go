package codex

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"switchboard/handoff"
	"switchboard/servers"
)

func TestList(t *testing.T) {
	withFake(t, func(t *testing.T, f *fake, link *servers.Link) {
		list := listing(t, link, 1000)
		frame := f.expect("thread/list")
		if string(frame.Params) != `{"limit":100,"sourceKinds":["cli","vscode","exec","appServer","unknown"],"sortKey":"recency_at","sortDirection":"desc","modelProviders":[]}` {
			t.Errorf("thread/list %s", frame.Params)
		}
		f.reply(frame, `{"data":[`+
			`{"id":"a","name":" Auth  refactor ","preview":"x","cwd":"/src","updatedAt":5,"recencyAt":9,"status":{"type":"active","activeFlags":["waitingOnApproval"]},"gitInfo":{"branch":"main","sha":"1"}},`+
			`{"id":"b","name":null,"preview":"one two three four five six seven eight nine","cwd":"/b","updatedAt":5,"recencyAt":null,"status":{"type":"active","activeFlags":[]},"gitInfo":null},`+
			`{"id":"c","status":{"type":"notLoaded"},"gitInfo":{"branch":null}}],"nextCursor":"c|1"}`)
		frame = f.expect("thread/list")
		if string(frame.Params) != `{"limit":100,"cursor":"c|1","sourceKinds":["cli","vscode","exec","appServer","unknown"],"useStateDbOnly":true,"sortKey":"recency_at","sortDirection":"desc","modelProviders":[]}` {
			t.Errorf("thread/list %s", frame.Params)
		}
		f.reply(frame, `{"data":[{"id":"d","status":{"type":"systemError"}},{"id":"e","status":{"type":"someday"}}]}`)
		want := []servers.Thread{
			{ID: "a", Title: "Auth refactor", Dir: "/src", Branch: "main", Updated: time.Unix(9, 0),
				Status: handoff.SessionWaiting},
			{ID: "b", Title: "one two three four five six seven eight", Dir: "/b", Updated: time.Unix(5, 0),
				Status: handoff.SessionRunning},
			{ID: "c", Updated: time.Unix(0, 0), Status: handoff.SessionUnknown},
			{ID: "d", Updated: time.Unix(0, 0), Status: handoff.SessionIdle},
			{ID: "e", Updated: time.Unix(0, 0), Status: handoff.SessionUnknown},
		}
		if diff := cmp.Diff(want, list.get(t)); diff != "" {
			t.Error(diff)
		}
	})
}

func read(t *testing.T, link *servers.Link, lines int) async[servers.Text] {
	return call(func() (servers.Text, error) { return link.Catalog.Read(t.Context(), thread1, lines) })
}

func TestRead(t *testing.T) {
	withFake(t, func(t *testing.T, f *fake, link *servers.Link) {
		text := read(t, link, 6)
		f.reply(f.expect("thread/read"), threadJSON(thread1, idle, "none"))
		frame := f.expect("thread/turns/list")
		if string(frame.Params) != fmt.Sprintf(`{"threadId":%q,"limit":6,"itemsView":"full"}`, thread1) {
			t.Errorf("thread/turns/list %s", frame.Params)
		}
		f.reply(frame, `{"data":[`+
			`{"id":"2","status":"completed","items":[{"type":"userMessage","id":"u2","content":[{"type":"text","text":"run it"},{"type":"image","url":"x"}]},`+
			`{"type":"reasoning","id":"r","summary":["hm"],"content":[]},{"type":"commandExecution","id":"c","command":"/bin/bash -lc 'go test ./...'","status":"failed","exitCode":1,"aggregatedOutput":"secret"},`+
			`{"type":"fileChange","id":"e","changes":[{"path":"/a"},{"path":"/b"}],"status":"completed"},{"type":"mcpToolCall","id":"m","server":"lab","tool":"ask","status":"completed"},`+
			`{"type":"contextCompaction","id":"k"},{"type":"agentMessage","id":"a2","text":"`+strings.Repeat("é", 700)+`"}]},`+
			`{"id":"1","status":"completed","items":[{"type":"userMessage","id":"u1","content":[{"type":"text","text":"hello"}]},{"type":"agentMessage","id":"a1","text":" hi "}]}],"nextCursor":"more"}`)
		got := text.get(t)
		want := servers.Text{
			Thread: servers.Thread{ID: thread1, Title: "fix the login page please", Dir: "/src", Created: time.Unix(1, 0),
				Updated: time.Unix(2, 0), Status: handoff.SessionIdle},
			Lines: []handoff.Line{
				{Role: "agent", Text: "hi"},
				{Role: "user", Text: "run it"},
				{Role: "command", Text: "go test ./..."},
				{Role: "edit", Text: "/a, /b"},
				{Role: "tool", Text: "lab.ask"},
				{Role: "agent", Text: strings.Repeat("é", maxLineRunes-1) + "…"},
			},
			More: 2, // one line, and older turns
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}

// TestReadTooLong: turns that are too long together are read item by item, and the connection goes on.
func TestReadTooLong(t *testing.T) {
	withFake(t, func(t *testing.T, f *fake, link *servers.Link) {
		r := read(t, link, 6)
		f.reply(f.expect("thread/read"), threadJSON(thread1, idle, "none"))
		picture := strings.Repeat("A", servers.MaxFrame)
		f.reply(f.expect("thread/turns/list"),
			`{"data":[{"id":"`+turn1+`","items":[{"type":"userMessage","id":"u","content":[{"type":"image","url":"`+picture+`"}]}]}]}`)
		f.reply(f.expect("thread/items/list"),
			`{"data":[{"turnId":"`+turn1+`","item":{"type":"imageView","path":"`+picture+`"}}]}`)
		fewer := f.expect("thread/items/list")
		if !strings.Contains(string(fewer.Params), `"limit":7,`) {
			t.Errorf("asked for %s", fewer.Params)
		}
		f.reply(fewer, `{"data":[`+entryOf(turn1, `{"type":"agentMessage","id":"a","text":"seen"}`)+`,`+entryOf(turn1,
			userSays("m1"))+`],"nextCursor":"x"}`)
		got := r.get(t)
		if len(got.Lines) == 0 || got.Lines[len(got.Lines)-1] != (handoff.Line{Role: "agent", Text: "seen"}) ||
			got.More != 1 {
			t.Errorf("read %+v", got)
		}
		if n := link.Conn.(*connection).peer.LeftOut.Load(); n != 2 {
			t.Errorf("%d frames were left out", n)
		}
	})
}

// TestReadNeverRan: both wordings, of a thread that is loaded and of one that is not.
func TestReadNeverRan(t *testing.T) {
	for _, text := range []string{
		"list_turns is not supported yet",
		"thread " + thread1 + " is not materialized yet; thread/turns/list is unavailable before first user message",
		"ephemeral threads do not support thread/turns/list",
	} {
		withFake(t, func(t *testing.T, f *fake, link *servers.Link) {
			r := read(t, link, 6)
			f.reply(f.expect("thread/read"), threadJSON(thread1, idle, "none"))
			f.refuse(f.expect("thread/turns/list"), -32601, text)
			if got := r.get(t); got.Thread.ID != thread1 || len(got.Lines) != 0 || got.More != 0 {
				t.Errorf("read %+v", got)
			}
		})
	}
}

func TestReadFails(t *testing.T) {
	withFake(t, func(t *testing.T, f *fake, link *servers.Link) {
		r := read(t, link, 6)
		f.refuse(f.expect("thread/read"), -32600, "thread not loaded: "+thread1)
		r.wantCode(t, handoff.CodeSessionGone)

		r = read(t, link, 6)
		f.reply(f.expect("thread/read"), threadJSON(thread1, idle, "none"))
		f.expect("thread/turns/list")
		f.close()
		r.wantCode(t, handoff.CodeUnreachable)
	})
}

func TestText(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{plainCommand("/bin/bash -lc 'go test ./... | head'"), "go test ./... | head"},
		{plainCommand(`/usr/bin/zsh -lc "ls -l"`), "ls -l"},
		{plainCommand("/bin/sh -lc ls"), "ls"},
		{plainCommand("bash -lc 'echo '\\''x'\\'''"), "bash -lc 'echo '\\''x'\\'''"},
		{plainCommand(`bash -lc "echo $HOME; \"x\""`), `bash -lc "echo $HOME; \"x\""`},
		{plainCommand("echo x; bash -lc 'rm y'"), "echo x; bash -lc 'rm y'"},
		{plainCommand("bash -lc 'a' 'b'"), "bash -lc 'a' 'b'"},
		{plainCommand("bash -lc a b"), "bash -lc a b"},
		{plainCommand("bash -lc '"), "bash -lc '"},
		{plainCommand(""), ""},
		{serverVersion("switchboard/0.169.0 (Debian)"), "0.169.0"},
		{serverVersion("x/1"), "1"},
		{serverVersion("nothing"), ""},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

func FuzzText(f *testing.F) {
	f.Add("/bin/bash -lc 'go test'")
	f.Fuzz(func(t *testing.T, text string) {
		if got := plainCommand(text); !strings.Contains(text, got) {
			t.Errorf("plain %q: %q", text, got)
		}
	})
}

func TestItems(t *testing.T) {
	long := strings.Repeat("x", maxOutput) + "end"
	output, namespace := long, "router"
	for _, c := range []struct {
		wire wireItem
		want handoff.Item
	}{
		{wireItem{Type: typeCommand, ID: "c", Command: "ls", Status: "declined", AggregatedOutput: &output},
			handoff.Item{ID: "c", Kind: handoff.ItemCommand, Text: "ls", Output: long[3:], Failed: true}},
		{wireItem{Type: typeDynamicTool, ID: "d", Namespace: &namespace, Tool: "handoff"},
			handoff.Item{ID: "d", Kind: handoff.ItemToolCall, Text: "router.handoff"}},
		{wireItem{Type: typeWebSearch, ID: "w", Query: "go 1.26"},
			handoff.Item{ID: "w", Kind: handoff.ItemToolCall, Text: "web search go 1.26"}},
		{wireItem{Type: typePlan, ID: "p", Text: "1. do"}, handoff.Item{ID: "p", Kind: handoff.ItemPlan, Text: "1. do"}},
		{wireItem{Type: "sleep", ID: "s"}, handoff.Item{ID: "s", Kind: handoff.ItemOther, Text: "sleep"}},
	} {
		if diff := cmp.Diff(c.want, c.wire.shown()); diff != "" {
			t.Errorf("%s: %s", c.wire.Type, diff)
		}
	}
}

// Who reads more than a voice model gets reads page after page, to the beginning; one that fails leaves out what is
// before it.
func TestReadToTheBeginning(t *testing.T) {
	withFake(t, func(t *testing.T, f *fake, link *servers.Link) {
		page := func(n int, cursor string) string {
			return fmt.Sprintf(`{"data":[{"id":"%d","status":"completed","items":[{"type":"agentMessage","id":"a","text":"answer %d"}]}],"nextCursor":%s}`, n, n, cursor)
		}
		text := read(t, link, 500)
		f.reply(f.expect("thread/read"), threadJSON(thread1, idle, "none"))
		f.reply(f.expect("thread/turns/list"), page(3, `"two"`))
		next := f.expect("thread/turns/list")
		if want := fmt.Sprintf(`{"threadId":%q,"cursor":"two","limit":10,"itemsView":"full"}`,
			thread1); string(next.Params) != want {
			t.Errorf("asked %s", next.Params)
		}
		f.reply(next, page(2, `"one"`))
		f.reply(f.expect("thread/turns/list"), page(1, "null"))
		got := text.get(t)
		if len(got.Lines) != 3 || got.Lines[0].Text != "answer 1" || got.Lines[2].Text != "answer 3" || got.More != 0 {
			t.Errorf("read %+v", got)
		}
		text = read(t, link, 500)
		f.reply(f.expect("thread/read"), threadJSON(thread1, idle, "none"))
		f.reply(f.expect("thread/turns/list"), page(3, `"two"`))
		f.refuse(f.expect("thread/turns/list"), -32600, "no")
		if got := text.get(t); len(got.Lines) != 1 || got.More != 1 {
			t.Errorf("read %+v", got)
		}
	})
}

// TestSignedIn: only an app-server that says that somebody must be signed in, and that nobody is, cannot work.
func TestSignedIn(t *testing.T) {
	withFake(t, func(t *testing.T, f *fake, link *servers.Link) {
		for answer, want := range map[string]handoff.Code{
			`{"account":null,"requiresOpenaiAuth":true}`:              handoff.CodeNotSignedIn,
			`{"account":null,"requiresOpenaiAuth":false}`:             "",
			`{"account":{"type":"apiKey"},"requiresOpenaiAuth":true}`: "",
			"": "", // an older one knows no such request
		} {
			done := call(func() (struct{}, error) { return struct{}{}, link.Check(t.Context()) })
			frame := f.expect("account/read")
			if answer == "" {
				f.refuse(frame, -32600, "Invalid request: unknown variant `account/read`")
			} else {
				f.reply(frame, answer)
			}
			if want != "" {
				done.wantCode(t, want)
			} else {
				done.get(t)
			}
		}
	})
}

func TestRename(t *testing.T) {
	withFake(t, func(t *testing.T, f *fake, link *servers.Link) {
		done := call(func() (struct{}, error) {
			return struct{}{}, link.Catalog.(servers.Renamer).Rename(t.Context(), thread1, "auth")
		})
		frame := f.expect("thread/name/set")
		if want := fmt.Sprintf(`{"threadId":%q,"name":"auth"}`, thread1); string(frame.Params) != want {
			t.Errorf("%s", frame.Params)
		}
		f.reply(frame, `{}`)
		done.get(t)
	})
}

func TestArchive(t *testing.T) {
	withFake(t, func(t *testing.T, f *fake, link *servers.Link) {
		for _, method := range []string{"thread/archive", "thread/unarchive"} {
			done := call(func() (struct{}, error) {
				return struct{}{}, link.Catalog.(servers.Archiver).Archive(t.Context(), thread1, method == "thread/archive")
			})
			frame := f.expect(method)
			if want := fmt.Sprintf(`{"threadId":%q}`, thread1); string(frame.Params) != want {
				t.Errorf("%s %s", method, frame.Params)
			}
			f.reply(frame, `{}`)
			done.get(t)
		}
	})
}
