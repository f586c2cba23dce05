package handoff

import (
	"fmt"
	"strings"
	"testing"
)

func TestVocabulary(t *testing.T) {
	for code, m := range Vocabulary {
		if m.Spoken == "" || m.Next == "" || m.HTTP < 400 || m.HTTP > 599 {
			t.Errorf("%s: %+v", code, m)
		}
		if strings.Count(m.Spoken, "%") != strings.Count(m.Spoken, "%s") || strings.Count(m.Spoken, "%s") > 1 {
			t.Errorf("%s: %q has another verb than one %%s", code, m.Spoken)
		}
		for _, word := range []string{"handoff", "turn ", "principal", "ledger", "thread"} {
			if strings.Contains(strings.ToLower(m.Spoken+m.Next), word) && !strings.Contains(m.Next, "thread_id") {
				t.Errorf("%s says %q to people", code, word)
			}
		}
		if m.Close != 0 && (m.Close < 1000 || m.Close > 4999) {
			t.Errorf("%s: close code %d", code, m.Close)
		}
	}
	e := &Error{Code: CodeUnknownServer, Subject: "bigfoot", Choices: []string{"bigpc", "laptop", "mini", "far"}}
	near := &Error{Code: CodeUnknownServer, Subject: "bgpc", Choices: []string{"bigpc", "mypc"}, Near: true}
	if got := near.Spoken(); got != "I don't know a machine called bgpc. Did you mean bigpc, or mypc?" {
		t.Errorf("names like it: %q", got)
	}
	if got := e.Spoken(); got != "I don't know a machine called bigfoot. There is bigpc, laptop, mini and 1 more." {
		t.Errorf("spoken: %q", got)
	}
	if e := AsError(fmt.Errorf("odd")); e.Code != CodeInternal || e.Detail != "odd" {
		t.Errorf("a foreign error: %+v", e)
	}
	if e := AsError(fmt.Errorf("asking: %w", Fault(CodeBusy, "bigpc", ""))); e.Code != CodeBusy {
		t.Errorf("a wrapped error: %+v", e)
	}
	if m := (&Error{Code: "invented"}).Meaning(); m.HTTP != 500 {
		t.Errorf("an invented code: %+v", m)
	}
}

// TestBecause: the detail of an error that another one led to names no code.
func TestBecause(t *testing.T) {
	inner := Fault(CodeSessionGone, "you named", "no rollout found")
	e := Because(CodeAgentGone, "bigpc", fmt.Errorf("attach: %w", inner))
	if e.Error() != "agent_gone bigpc: no rollout found" {
		t.Error(e)
	}
}
