package verbs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"switchboard/handoff"
)

// Answer answers a question of an agent; without words it shows the open ones. The first word may be the label or the
// id of one; without it there must be one alone. Nobody allows or tells what they have not seen: but for a no and a
// stop, the question is shown, and answered after a yes of [Terminal.Sure]. An id needs none: who has it read the
// question.
func (t *Terminal) Answer(ctx context.Context, words []string) error {
	var open struct{ Items []handoff.RecordQuestion }
	text, err := t.get(ctx, "/fleet/questions", &open)
	if err != nil {
		return err
	}
	if len(words) == 0 {
		if t.JSON {
			return t.line(text)
		}
		_, err = fmt.Fprint(t.Out, t.list(open.Items, time.Now()))
		return err
	}
	q, body, err := chosen(open.Items, words)
	if err != nil {
		return err
	}
	refuses := body["decision"] == string(handoff.DecisionDecline) || body["decision"] == string(handoff.DecisionStop)
	if q.Risk == "high" && body["decision"] == string(handoff.DecisionAccept) {
		_, _ = fmt.Fprint(t.Err, shown(q, time.Now())) // the error is what counts
		return fmt.Errorf("it is risky, so a yes to it takes a tap on the page; `%s login` prints a link to it. A no "+
			"counts here: %s answer %s no", t.Name, t.Name, t.handle(q))
	}
	if !refuses && words[0] != string(q.ID) {
		if err := t.sure(ctx, q, words); err != nil {
			return err
		}
	}
	if _, err := t.call(ctx, http.MethodPost, "/fleet/questions/"+url.PathEscape(string(q.ID)), body, nil); err != nil {
		return err
	}
	if t.JSON {
		return nil
	}
	did := map[string]string{"accept": "allowed", "decline": "declined",
		"stop": "declined, and its work is stopped"}[body["decision"]]
	_, err = fmt.Fprintf(t.Out, "%s: %s\n", cmp.Or(did, "answered"), asked(q))
	return err
}

// sure shows a question and asks whether it is meant.
func (t *Terminal) sure(ctx context.Context, q handoff.RecordQuestion, words []string) error {
	_, _ = fmt.Fprint(t.Err, shown(q, time.Now())) // without it nobody says yes
	if strings.EqualFold(words[0], q.Label) {
		words = words[1:]
	}
	answer := Plain(strings.Join(words, " "))
	if t.Sure == nil {
		return fmt.Errorf("where nobody sits at a terminal, this is answered by its id: %s answer %s %s", t.Name, q.ID,
			answer)
	}
	yes, err := t.Sure(ctx, fmt.Sprintf("Answer this with %q? [y/N] ", answer))
	if err == nil && !yes {
		err = errors.New("nothing was answered")
	}
	return err
}

// handle is the name by which a question is answered here.
func (t *Terminal) handle(q handoff.RecordQuestion) string {
	if t.Sure == nil {
		return string(q.ID)
	}
	return q.Label
}

// chosen finds the question that words answer, and what the API is told.
func chosen(
	open []handoff.RecordQuestion, words []string,
) (q handoff.RecordQuestion, body map[string]string, err error) {
	at := slices.IndexFunc(open, func(q handoff.RecordQuestion) bool {
		return strings.EqualFold(q.Label, words[0]) || string(q.ID) == words[0]
	})
	switch {
	case len(open) == 0:
		return q, nil, fmt.Errorf("nothing waits for an answer")
	case at >= 0:
		words = words[1:]
	case len(open) > 1:
		return q, nil, fmt.Errorf("%d questions wait: begin with the name of one, such as %s", len(open), open[0].Label)
	default:
		at = 0
	}
	q = open[at]
	if len(words) == 0 {
		return q, nil, fmt.Errorf("%s asks: %s; answer with %s", q.Server, asked(q), replies(q))
	}
	text := strings.Join(words, " ")
	decision := map[string]handoff.Decision{
		"yes": handoff.DecisionAccept, "y": handoff.DecisionAccept, "no": handoff.DecisionDecline,
		"n": handoff.DecisionDecline, "stop": handoff.DecisionStop,
	}[strings.ToLower(text)]
	switch {
	case decision != "" && slices.Contains(q.Decisions, decision):
		return q, map[string]string{"decision": string(decision)}, nil
	case q.Words:
		return q, map[string]string{"text": text}, nil
	}
	return q, nil, fmt.Errorf("%q does not answer %s; there is %s", text, q.Label, replies(q))
}

// replies are the ways to answer a question.
func replies(q handoff.RecordQuestion) string {
	var ways []string
	for _, way := range []struct {
		decision handoff.Decision
		word     string
	}{{handoff.DecisionAccept, "yes"}, {handoff.DecisionDecline, "no"}, {handoff.DecisionStop, "stop"}} {
		if slices.Contains(q.Decisions, way.decision) {
			ways = append(ways, way.word)
		}
	}
	if q.Words {
		ways = append(ways, "'your words'")
	}
	return strings.Join(ways, "|")
}

// asked is what a question asks, in a line or more.
func asked(q handoff.RecordQuestion) string {
	var parts []string
	for _, part := range []string{q.Text, q.Command, strings.Join(q.Changes, ", ")} {
		if part = strings.TrimSpace(Plain(part)); part != "" && !strings.Contains(strings.Join(parts, "\n"), part) {
			parts = append(parts, part)
		}
	}
	text := strings.Join(parts, ": ")
	return strings.ReplaceAll(text, "?: ", "? ")
}

// list words the open questions, each with how to answer it.
func (t *Terminal) list(open []handoff.RecordQuestion, now time.Time) string {
	if len(open) == 0 {
		return "nothing waits for an answer\n"
	}
	var b strings.Builder
	for _, q := range open {
		b.WriteString(shown(q, now))
		fmt.Fprintf(&b, "    %s answer %s %s\n", t.Name, t.handle(q), replies(q))
	}
	return b.String()
}

// shown is all of a question that whoever answers it has to know.
func shown(q handoff.RecordQuestion, now time.Time) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s", q.Label, cell(q.Server, titleWidth))
	if q.Title != "" {
		fmt.Fprintf(&b, ", %s", cell(q.Title, titleWidth))
	}
	fmt.Fprintf(&b, ", %s", handoff.Ago(now, q.Asked))
	if q.Risk != "" {
		fmt.Fprintf(&b, ", risk: %s", q.Risk)
	}
	fmt.Fprintf(&b, "\n%s\n", indented(asked(q), "    "))
	for _, more := range [][2]string{{"in ", q.Cwd}, {"because: ", q.Reason}, {"a yes would also allow ", q.Beyond}} {
		if more[1] != "" {
			fmt.Fprintf(&b, "%s\n", indented(more[0]+more[1], "    "))
		}
	}
	for _, ask := range q.Asks {
		if !strings.Contains(q.Text, ask.Text) {
			fmt.Fprintf(&b, "%s\n", indented(ask.Text+" ("+strings.Join(ask.Options, ", ")+")", "    "))
		}
	}
	if q.Risk == "high" {
		b.WriteString("    a yes to this takes a tap on the page\n")
	}
	return b.String()
}
