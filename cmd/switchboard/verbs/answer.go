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

	"switchboard/cmd/switchboard/cli"
	"switchboard/handoff"
)

// Answer is the verb that shows the agents' questions, or answers one.
func Answer(dial Dialer) *cli.Verb {
	var words []string
	return dial.verb(cli.Verb{
		Name: "answer", Help: "Show the agents' questions, or answer one.",
		Args: []cli.Arg{{Name: "answer", Into: &words, Optional: true,
			Help: "The question, unless only one waits, and yes, no, stop or your words. Without any, shows what waits."}},
		Examples: []string{"switchboard answer", "switchboard answer q1 yes", `switchboard answer q2 "version 2.4, today"`},
		More: "With the name of a question of several fields alone, a terminal asks for each. It shows a question " +
			"once more before it allows anything; a script names the question by its id, such as q1-7f3a90c2. With a " +
			"key, it takes one that says approve: all. What is risky takes a tap on the page, or the first word of the " +
			"command typed at a terminal of the user who runs Switchboard.",
	}, func(ctx context.Context, t *Terminal) error { return t.answer(ctx, words) })
}

// answer answers a question of an agent; without words it lists the open questions. The first word may be the
// question's label, id or short id, or the beginning of an id; it may be missing if only one question is open. Nobody
// should allow what they have not read, so unless the answer is a no or a stop, it shows the question and needs a
// yes to [Terminal.Ask]. A whole id or short id needs no yes: only somebody who has seen the question has it.
func (t *Terminal) answer(ctx context.Context, words []string) error {
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
	at := questionNamed(words[0], open.Items)
	if len(words) == 1 && t.Ask != nil && at >= 0 && len(open.Items[at].Asks) > 0 {
		return t.fill(ctx, open.Items[at])
	}
	q, body, err := t.parseAnswer(open.Items, words)
	if err != nil {
		return err
	}
	refuses := body["decision"] == string(handoff.DecisionDecline) || body["decision"] == string(handoff.DecisionStop)
	if q.Risk == "high" && body["decision"] == string(handoff.DecisionAccept) {
		if body["typed"], err = t.secondAct(ctx, q); err != nil {
			return err
		}
	} else if !refuses && words[0] != string(q.ID) && words[0] != shortID(q) {
		if err := t.confirm(ctx, q, words); err != nil {
			return err
		}
	}
	return t.send(ctx, q, body)
}

// fill shows a question, asks for each thing that it asks, and sends the answers.
func (t *Terminal) fill(ctx context.Context, q handoff.RecordQuestion) error {
	_, _ = fmt.Fprint(t.Err, t.describe(q, time.Now())) // without the question nobody answers it
	var lines []string
	for _, a := range q.Asks {
		if a.Secret {
			return errors.New("a secret is typed on the page alone")
		}
		prompt := Plain(a.Text)
		if len(a.Options) > 0 {
			prompt += " (" + Plain(strings.Join(a.Options, ", ")) + ")"
		}
		line, err := t.Ask(ctx, prompt+": ")
		if err == nil {
			_, err = a.Read(line)
		}
		if err != nil {
			return err
		}
		lines = append(lines, line)
	}
	return t.send(ctx, q, map[string]string{"text": strings.Join(lines, "\n")})
}

// send sends the answer to a question, and says what it did.
func (t *Terminal) send(ctx context.Context, q handoff.RecordQuestion, body map[string]string) error {
	if _, err := t.call(ctx, http.MethodPost, "/fleet/questions/"+url.PathEscape(string(q.ID)), body, nil); err != nil {
		return err
	}
	if t.JSON {
		return nil
	}
	did := map[string]string{"accept": "allowed", "decline": "declined",
		"stop": "declined, and its work is stopped"}[body["decision"]]
	return t.say("%s: %s", cmp.Or(did, "answered"), questionText(q))
}

// mayAllow reports whether a yes to a question counts from here: one to what is risky takes a person at a terminal of
// the user who runs the service.
func (t *Terminal) mayAllow(q handoff.RecordQuestion) bool {
	return q.Risk != "high" || t.Ask != nil && t.Key == ""
}

// secondAct shows a risky question, and returns the word that somebody has to type to allow it.
func (t *Terminal) secondAct(ctx context.Context, q handoff.RecordQuestion) (string, error) {
	_, _ = fmt.Fprint(t.Err, t.describe(q, time.Now())) // without the question nobody types the word
	if !t.mayAllow(q) {
		return "", fmt.Errorf("it is risky, so a yes to it takes a tap on the page, or a person at a terminal of the user who "+
			"runs Switchboard; `%s login` prints a link to the page. A no counts here: %s answer %s no", t.Name, t.Name,
			t.handle(q))
	}
	word := q.SecondAct()
	typed, err := t.Ask(ctx, fmt.Sprintf("It is risky. To allow it once, type %s: ", Plain(word)))
	if err == nil && typed != word {
		err = errors.New("nothing was answered")
	}
	return word, err
}

// confirm shows a question, and asks for a yes to answering it.
func (t *Terminal) confirm(ctx context.Context, q handoff.RecordQuestion, words []string) error {
	_, _ = fmt.Fprint(t.Err, t.describe(q, time.Now())) // without the question nobody says yes
	if questionNamed(words[0], []handoff.RecordQuestion{q}) == 0 {
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

// handle returns the name of a question for a command: its label, or in a script its short id.
func (t *Terminal) handle(q handoff.RecordQuestion) string {
	if t.Ask == nil {
		return shortID(q)
	}
	return q.Label
}

// command returns the command that answers a question, with the answers that count from here.
func (t *Terminal) command(q handoff.RecordQuestion) string {
	if t.replies(q) == "" {
		return "with the key that you use, this is not answered"
	}
	return fmt.Sprintf("%s answer %s %s", t.Name, t.handle(q), t.replies(q))
}

// shortID returns an id of a question that can be typed: its label, and a hash, because labels are reused.
func shortID(q handoff.RecordQuestion) string {
	sum := sha256.Sum256([]byte(q.ID))
	return q.Label + "-" + hex.EncodeToString(sum[:4])
}

// questionNamed returns the index of the open question that a word names: by its label, its id, its short id, or an
// unambiguous beginning of an id. It returns -1 if there is none.
func questionNamed(word string, open []handoff.RecordQuestion) int {
	if at := slices.IndexFunc(open, func(q handoff.RecordQuestion) bool {
		return strings.EqualFold(q.Label, word) || string(q.ID) == word || shortID(q) == word
	}); at >= 0 {
		return at
	}
	// A beginning has to go beyond the label or the machine's name, which could also be a word of an answer.
	begins := func(q handoff.RecordQuestion) bool {
		return strings.Contains(word, ":") && strings.HasPrefix(string(q.ID), word) ||
			strings.Contains(word, "-") && strings.HasPrefix(shortID(q), word)
	}
	at := slices.IndexFunc(open, begins)
	if at >= 0 && slices.ContainsFunc(open[at+1:], begins) {
		return -1
	}
	return at
}

// label matches the label of a question, and the beginning of its short id.
var label = regexp.MustCompile(`^[qQ][0-9]+(-[0-9a-f]*)?$`)

// questionsThere lists the open questions, for the error of an answer that names none of them.
func questionsThere(open []handoff.RecordQuestion) string {
	if len(open) == 0 {
		return "nothing waits for an answer"
	}
	var names []string
	for _, q := range open {
		names = append(names, fmt.Sprintf("%s (%s: %s)", q.Label, cell(q.Server, titleWidth),
			cell(questionText(q), placeWidth)))
	}
	return "there is " + strings.Join(names, ", ")
}

// parseAnswer returns the question that words answer, and the body of the request to the API.
func (t *Terminal) parseAnswer(
	open []handoff.RecordQuestion, words []string,
) (q handoff.RecordQuestion, body map[string]string, err error) {
	at := questionNamed(words[0], open)
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
		return q, nil, fmt.Errorf("%s asks: %s; answer with %s", q.Server, questionText(q), t.replies(q))
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
	case decision == handoff.DecisionAccept && q.Tap != "":
		return q, nil, fmt.Errorf("a yes to %s needs a tap on the page: %s; here there is %s", q.Label, q.Tap, t.replies(q))
	}
	return q, nil, fmt.Errorf("%q does not answer %s; there is %s", text, q.Label, t.replies(q))
}

// replies returns the answers to a question that count from here, as in "yes|no|stop".
func (t *Terminal) replies(q handoff.RecordQuestion) string {
	var ways []string
	for _, way := range []struct {
		decision handoff.Decision
		word     string
	}{{handoff.DecisionAccept, "yes"}, {handoff.DecisionDecline, "no"}, {handoff.DecisionStop, "stop"}} {
		if slices.Contains(q.Decisions, way.decision) && (way.decision != handoff.DecisionAccept || t.mayAllow(q)) {
			ways = append(ways, way.word)
		}
	}
	if q.Words {
		ways = append(ways, "'your words'")
	}
	return strings.Join(ways, "|")
}

// questionText returns the text of a question, with its command and changes, in one or several lines.
func questionText(q handoff.RecordQuestion) string {
	var parts []string
	for _, part := range []string{q.Text, q.Command, strings.Join(q.Changes, ", ")} {
		if part = strings.TrimSpace(Plain(part)); part != "" && !strings.Contains(strings.Join(parts, "\n"), part) {
			parts = append(parts, part)
		}
	}
	text := strings.Join(parts, ": ")
	return strings.ReplaceAll(text, "?: ", "? ")
}

// list describes the open questions, each with the commands that answer it.
func (t *Terminal) list(open []handoff.RecordQuestion, now time.Time) string {
	if len(open) == 0 {
		return "nothing waits for an answer\n"
	}
	var b strings.Builder
	for _, q := range open {
		b.WriteString(t.describe(q, now))
		fmt.Fprintf(&b, "    %s\n", t.command(q))
	}
	return b.String()
}

// describe describes a question with everything that somebody needs to know to answer it.
func (t *Terminal) describe(q handoff.RecordQuestion, now time.Time) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s", q.Label, cell(q.Server, titleWidth))
	if q.Title != "" {
		fmt.Fprintf(&b, ", %s", cell(q.Title, titleWidth))
	}
	fmt.Fprintf(&b, ", %s", handoff.Ago(now, q.Asked))
	if q.Risk != "" {
		fmt.Fprintf(&b, ", risk: %s", q.Risk)
	}
	fmt.Fprintf(&b, "\n%s\n", indented(questionText(q), "    "))
	for _, more := range [][2]string{{"in ", q.Cwd}, {"because: ", q.Reason}, {"a yes would also allow ", q.Beyond},
		{"a yes counts only on the machine itself: ", q.There}} {
		if more[1] != "" {
			fmt.Fprintf(&b, "%s\n", indented(more[0]+more[1], "    "))
		}
	}
	for _, ask := range q.Asks {
		if !strings.Contains(q.Text, ask.Text) {
			fmt.Fprintf(&b, "%s\n", indented(ask.Text+" ("+strings.Join(ask.Options, ", ")+")", "    "))
		}
	}
	switch {
	case !t.mayAllow(q):
		b.WriteString("    a yes to this takes a tap on the page\n")
	case q.Risk == "high":
		b.WriteString("    a yes to this takes a tap on the page, or a word of it typed here\n")
	}
	return b.String()
}
