package acp

import (
	"encoding/json"
	"strings"
	"testing"

	"switchboard/handoff"
)

// TestForms: the questions of a form, and the values that answers fill in; "no": an answer that does not fit.
func TestForms(t *testing.T) {
	t.Parallel()
	const (
		size = `"size":{"type":"string","title":"Size","enum":["Small","Large"]}`
		kind = `"kind":{"type":"string","title":"Kind?","description":"of it",` +
			`"oneOf":[{"const":"k1","title":"One"},{"const":"k2"}]}`
		turned = `"turn":{"type":"string","oneOf":[{"const":"a","title":"B"},{"const":"b","title":"A"}]}`
		more   = `"kind_custom":{"type":"string","title":"Other"}`
	)
	for _, test := range []struct{ properties, asks, lines, want string }{
		{size, `Which? [Small Large]`, "large", `{"size":"Large"}`},
		{size, `Which? [Small Large]`, "medium", "no"},
		{kind, `Which? [One k2]`, "ONE", `{"kind":"k1"}`},
		{kind, `Which? [One k2]`, "k1", `{"kind":"k1"}`},
		{kind, `Which? [One k2]`, "another", "no"},
		{kind + "," + more, `Which? [One k2]`, "k2", `{"kind":"k2"}`},
		{turned, `Which? [B A]`, "a", `{"turn":"b"}`},
		{kind + "," + more, `Which? [One k2]`, "another", `{"kind_custom":"another"}`},
		{kind + "," + more, `Which? [One k2]`, "", "no"},
		{more, `Which? []`, "alone", `{"kind_custom":"alone"}`},
		{kind + "," + size, `Kind?: of it [One k2]; Size [Small Large]`, "one\nsmall", `{"kind":"k1","size":"Small"}`},
		{kind + "," + size, `Kind?: of it [One k2]; Size [Small Large]`, "one", "no"},
		{`"a":{"type":"string"},"b":{"type":"string"}`, `a []; b []`, "x\ny", `{"a":"x","b":"y"}`},
		{`"a":{"type":"string"}`, `Which? []`, " x\n y ", `{"a":"x\n y"}`},
		{`"a":{"type":"boolean"}`, `Which? [yes no]`, "Yes", `{"a":true}`},
		{`"a":{"type":"boolean"}`, `Which? [yes no]`, "no", `{"a":false}`},
		{`"a":{"type":"boolean"}`, `Which? [yes no]`, "maybe", "no"},
		{`"a":{"type":"integer"}`, `Which? []`, "-3", `{"a":-3}`},
		{`"a":{"type":"integer"}`, `Which? []`, "2.7", "no"},
		{`"a":{"type":"number"}`, `Which? []`, "2.7", `{"a":2.7}`},
		{`"a":{"type":"number"}`, `Which? []`, "NaN", "no"},
		{`"a":{"type":"number"}`, `Which? []`, "1e999", "no"},
	} {
		q, wire := elicitation(json.RawMessage(`{"mode":"form","message":"Which?","requestedSchema":{"properties":{` +
			test.properties + `}}}`))
		var asks []string
		for _, a := range q.Asks {
			asks = append(asks, a.Text+" ["+strings.Join(a.Options, " ")+"]")
		}
		got := "no"
		if form, fits := wire.fillForm(test.lines); fits {
			got = handoff.Encode(form)
		}
		if asked := strings.Join(asks, "; "); asked != test.asks || got != test.want || !q.Words ||
			q.Kind != handoff.QuestionInput || len(q.Decisions) != 2 {
			t.Errorf("%s asks %q, and %q gives %s; want %q and %s", test.properties, asked, test.lines, got, test.asks,
				test.want)
		}
	}
}

// TestNoForms: an elicitation that is no form, or has unknown fields, takes no words. A form without fields takes a
// yes.
func TestNoForms(t *testing.T) {
	t.Parallel()
	const cannot = "that cannot be answered here."
	for params, yes := range map[string]bool{
		`{"mode":"url","message":"Go there"}`: false,
		`{"mode":"form","message":"a","requestedSchema":{"properties":{"a":{"type":"string"},"b":{"type":"array"}}}}`: false,
		`{"mode":7}`: false,
		`{"mode":"form","message":"May I?","requestedSchema":{"type":"object","properties":{}}}`: true,
	} {
		q, wire := elicitation(json.RawMessage(params))
		_, fits := wire.fillForm("x")
		if fits || q.Words || len(q.Asks) > 0 || q.Kind != handoff.QuestionElicitation ||
			(q.Decisions[0] == handoff.DecisionAccept) != yes || strings.HasSuffix(q.Text, cannot) == yes {
			t.Errorf("%s is %+v, and words fill it: %t", params, q, fits)
		}
	}
}

// TestReplies: the answer on the wire for each decision.
func TestReplies(t *testing.T) {
	t.Parallel()
	permission := wireQuestion{options: []permissionOption{
		{"go", "allow_once"}, {"ever", "allow_always"}, {"not", "reject_once"},
	}}
	onlyYes := wireQuestion{options: permission.options[:1]}
	for _, test := range []struct {
		q    wireQuestion
		d    handoff.Decision
		want string
	}{
		{wireQuestion{elicits: true}, handoff.DecisionAccept, `{"action":"accept"}`},
		{wireQuestion{elicits: true}, handoff.DecisionDecline, `{"action":"decline"}`},
		{wireQuestion{elicits: true}, handoff.DecisionStop, `{"action":"cancel"}`},
		{permission, handoff.DecisionAccept, `{"outcome":{"outcome":"selected","optionId":"go"}}`},
		{permission, handoff.DecisionAcceptForSession, `{"outcome":{"outcome":"selected","optionId":"ever"}}`},
		{permission, handoff.DecisionDecline, `{"outcome":{"outcome":"selected","optionId":"not"}}`},
		{permission, handoff.DecisionStop, `{"outcome":{"outcome":"cancelled"}}`},
		{onlyYes, handoff.DecisionDecline, `{"outcome":{"outcome":"cancelled"}}`},
	} {
		if got := handoff.Encode(test.q.reply(test.d)); got != test.want {
			t.Errorf("%s of %+v is %s, want %s", test.d, test.q, got, test.want)
		}
	}
}
