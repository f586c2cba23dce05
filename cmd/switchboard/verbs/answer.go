package verbs

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"switchboard/handoff"
)

// Answer answers a question of an agent; without words it shows the open ones. The first word may be the label of one,
// its id, its short id, or the beginning of either; without it there must be one question alone. Nobody allows or tells
// what they have not seen: but for a no and a stop, the question is shown, and answered after a yes to [Terminal.Ask].
// A whole id needs none: who has it read the question.
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
	if !refuses && words[0] != string(q.ID) && words[0] != shortID(q) {
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
	if nameOf(words[0], []handoff.RecordQuestion{q}) == 0 {
		words = words[1:]
	}
	answer := Plain(strings.Join(words, " "))
	if t.Ask == nil {
		return fmt.Errorf("where nobody sits at a terminal, this is answered by its id: %s answer %s %s", t.Name,
			shortID(q), answer)
	}
	typed, err := t.Ask(ctx, fmt.Sprintf("Answer this with %q? [y/N] ", answer))
	if typed = strings.ToLower(typed); err == nil && typed != "y" && typed != "yes" {
		err = errors.New("nothing was answered")
	}
	return err
}

// handle is the name by which a question is answered here.
func (t *Terminal) handle(q handoff.RecordQuestion) string {
	if t.Ask == nil {
		return shortID(q)
	}
	return q.Label
}

// shortID is an id of a question that can be typed: the label, and what tells it from others that have had that label.
func shortID(q handoff.RecordQuestion) string {
	sum := sha256.Sum256([]byte(q.ID))
	return q.Label + "-" + hex.EncodeToString(sum[:4])
}

// nameOf finds the open question that a word names: by its label, its id or the short one, or by the beginning of an id
// that no other has. -1: none.
func nameOf(word string, open []handoff.RecordQuestion) int {
	if at := slices.IndexFunc(open, func(q handoff.RecordQuestion) bool {
		return strings.EqualFold(q.Label, word) || string(q.ID) == word || shortID(q) == word
	}); at >= 0 {
		return at
	}
	begins := func(q handoff.RecordQuestion) bool { // past the machine or the label: a word of an answer may be one
		return strings.Contains(word, ":") && strings.HasPrefix(string(q.ID), word) ||
			strings.Contains(word, "-") && strings.HasPrefix(shortID(q), word)
	}
	at := slices.IndexFunc(open, begins)
	if at >= 0 && slices.ContainsFunc(open[at+1:], begins) {
		return -1
	}
	return at
}

// label is how questions are called, and how the short id of one begins.
var label = regexp.MustCompile(`^[qQ][0-9]+(-[0-9a-f]*)?$`)

// questionsThere names the open questions, for whoever did not name one of them.
func questionsThere(open []handoff.RecordQuestion) string {
	if len(open) == 0 {
		return "nothing waits for an answer"
	}
	var names []string
	for _, q := range open {
		names = append(names, fmt.Sprintf("%s (%s: %s)", q.Label, cell(q.Server, titleWidth), cell(asked(q), placeWidth)))
	}
	return "there is " + strings.Join(names, ", ")
}

// chosen finds the question that words answer, and what the API is told.
func chosen(
	open []handoff.RecordQuestion, words []string,
) (q handoff.RecordQuestion, body map[string]string, err error) {
	at := nameOf(words[0], open)
	switch {
	case at < 0 && label.MatchString(words[0]):
		return q, nil, fmt.Errorf("there is no question %s; %s", words[0], questionsThere(open))
	case len(open) == 0:
		return q, nil, fmt.Errorf("nothing waits for an answer")
	case at >= 0:
		words = words[1:]
	case len(open) > 1:
		return q, nil, fmt.Errorf("%d questions wait, so begin with the name of one; %s", len(open), questionsThere(open))
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
