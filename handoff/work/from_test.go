package work

import (
	"strings"
	"testing"

	"switchboard/handoff"
)

// TestSummary: the summary of a session has its newest lines, long ones shortened, within the bound.
func TestSummary(t *testing.T) {
	read := handoff.Transcript{Server: "bigpc", ID: "t1", Title: "Auth refactor"}
	if got, want := summary(read), `"Auth refactor" on bigpc`; got != want {
		t.Errorf("of nothing: %q", got)
	}
	read.Lines = []handoff.Line{{Role: "user", Text: "Run the tests."}, {Role: "agent", Text: "One fails."}}
	if got, want := summary(read), "\"Auth refactor\" on bigpc\nuser: Run the tests.\nagent: One fails."; got != want {
		t.Errorf("%q", got)
	}
	read.Lines = nil
	for range 100 {
		read.Lines = append(read.Lines, handoff.Line{Role: "command", Text: strings.Repeat("long ", 100)})
	}
	read.Lines = append(read.Lines, handoff.Line{Role: "agent", Text: strings.Repeat("ü", 1<<20) + "end"})
	read.Title = strings.Repeat("title ", 1000)
	got := summary(read)
	if len(got) > maxSummary || len(got) < maxSummary*3/4 {
		t.Errorf("%d bytes", len(got))
	}
	lines := strings.Split(got, "\n")
	if last := lines[len(lines)-1]; !strings.HasPrefix(last, "agent: üü") || len(last) > maxSummaryLine+16 {
		t.Errorf("the newest line has %d bytes", len(last))
	}
	for _, line := range lines[1 : len(lines)-1] {
		if line != "command: "+strings.Repeat("long ", 100) {
			t.Fatalf("not whole: %q", line)
		}
	}
}
