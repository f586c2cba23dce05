package handoff

import "testing"

// TestBehind: what waits in a session is behind the work that runs there, also where it was given before that work had
// a session.
func TestBehind(t *testing.T) {
	work := func(server, project, thread, waits string) Record {
		return Record{Server: server, Project: project, ThreadID: thread, Waits: waits}
	}
	first := work("bigpc", "", "t1", "")
	for _, c := range []struct {
		name   string
		waits  Record
		behind bool
	}{
		{"in the same session", work("bigpc", "", "t1", "ours"), true},
		{"given before the session was made", work("bigpc", "", "", "ours"), true},
		{"in another session", work("bigpc", "", "t2", "theirs"), false},
		{"in another project", work("bigpc", "api", "", "ours"), false},
		{"elsewhere", work("laptop", "", "", "ours"), false},
		{"runs itself", work("bigpc", "", "t1", ""), false},
	} {
		if got := c.waits.Behind(first); got != c.behind {
			t.Errorf("%s: %v", c.name, got)
		}
	}
	theirs := first
	theirs.Why = WhyMerged
	if work("bigpc", "", "t1", "ours").Behind(theirs) {
		t.Error("it is behind work that somebody else began, which is not stopped")
	}
}
