package responses

import (
	"strings"
	"testing"

	"switchboard/handoff"
	"switchboard/handoff/threads"
	"switchboard/servers/responses/wire"
)

func TestCuts(t *testing.T) {
	for _, c := range []struct{ items, want string }{
		{"u:hi a:yes", "|||"},
		{"u:hi c:1 o:1 a:yes", "||.||"},
		{"u:hi c:1 c:2 o:2 u:wait o:1 a:yes", "||....||"},
		{"u:hi r: a:yes", "||.|"},
		{"u:hi c:1 u:no", "||||"},
	} {
		var got strings.Builder
		for _, ok := range cuts(history(strings.Fields(c.items)...)) {
			got.WriteString(map[bool]string{true: "|", false: "."}[ok])
		}
		if got.String() != c.want {
			t.Errorf("%s: %s, want %s", c.items, got.String(), c.want)
		}
	}
}

func TestCompaction(t *testing.T) {
	long := strings.Repeat("x", 4000)
	items := history("u:first "+long, "a:yes "+long, "u:second "+long, "c:1", "o:1", "a:done "+long)
	it, ok := compacted(items)
	if !ok {
		t.Fatal("nothing was left out")
	}
	p := planned(append(items, it), at(6), continuation{ByID: true, Upstream: here, Now: noon})
	if p.Previous != "" {
		t.Error("the anchor was kept")
	}
	got := words(p.Input)
	if !strings.HasPrefix(got, "summary ") || !strings.HasSuffix(got, "a:done "+long) || strings.Contains(got, "!:") {
		t.Errorf("%.200s", got)
	}
	summary := wire.Read(p.Input[0]).Text()
	for _, want := range []string{"You were told: first", "You said: yes"} {
		if !strings.Contains(summary, want) {
			t.Errorf("the summary has no %q", want)
		}
	}
	if strings.Count(strings.Join([]string{summary, got}, " "), "second xxx") == 0 {
		t.Error("the newest request is lost")
	}
	again, ok := compacted(append(items, it, history("a:more " + long)[0]))
	if ok {
		p = planned(append(items, it, history("a:more " + long)[0], again), threads.Anchor{},
			continuation{Upstream: here, Now: noon})
		if text := wire.Read(p.Input[0]).Text(); !strings.Contains(text, "You were told: first") {
			t.Error("the second compaction forgets the first")
		}
	}
}

// TestNewestRequestIsWhole: the newest request, even a long one, is whole in the summary when it is left out itself.
func TestNewestRequestIsWhole(t *testing.T) {
	request := "do this " + strings.Repeat("y", 10_000) + " the end"
	items := history("u:"+request, "c:1", "o:1", "a:"+strings.Repeat("x", 30_000))
	it, ok := compacted(items)
	if !ok || !strings.Contains(wire.Read(planned(append(items, it), threads.Anchor{}, continuation{}).Input[0]).Text(),
		request) {
		t.Error("the request is not there")
	}
}

// FuzzCompaction: a compaction never separates a call from its output, makes the input shorter, and is never needed
// twice for the same items.
func FuzzCompaction(f *testing.F) {
	f.Add([]byte{0, 2, 3, 1, 0, 2, 3, 1}, uint16(500))
	f.Fuzz(func(t *testing.T, steps []byte, size uint16) {
		items := randomHistory(steps[:min(len(steps), 60)])
		for i := range items {
			if s := wire.Read(items[i].JSON); s.Role == "user" {
				items[i].JSON = userItem(handoff.TextInput(strings.Repeat("x", int(size%5000))))
			}
		}
		for range 4 {
			it, ok := compacted(items)
			if !ok {
				return
			}
			before := planned(items, threads.Anchor{}, continuation{Upstream: here})
			_, from, _ := lastCompaction(items)
			items = append(items, it)
			at, keep, _ := lastCompaction(items)
			if at != len(items)-1 || keep <= from {
				t.Fatalf("kept from %d, before from %d", keep, from)
			}
			if id := torn(items[from:], keep-from); id != "" {
				t.Fatalf("call %s was cut from its output", id)
			}
			after := planned(items, threads.Anchor{}, continuation{Upstream: here})
			if len(after.Input) > len(before.Input)+1 {
				t.Fatalf("%d items became %d", len(before.Input), len(after.Input))
			}
		}
	})
}

// torn returns a call before a cut whose output comes after it.
func torn(items []threads.Item, cut int) string {
	for j := cut; j < len(items); j++ {
		out := wire.Read(items[j].JSON)
		if !out.IsOutput() {
			continue
		}
		for i := j - 1; i >= 0; i-- {
			s := wire.Read(items[i].JSON)
			if s.CallID != out.CallID {
				continue
			}
			if s.IsCall() && i < cut {
				return s.CallID
			}
			break // its call is after the cut, or it was answered before
		}
	}
	return ""
}
