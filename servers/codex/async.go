package codex

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"switchboard/handoff"
	"switchboard/servers/jsonrpc"
)

// An agent may ask and go on without an answer: by a message with questions, of the delivery "async" (recorded from the
// tool request_user_input_async of 0.171). They are asked until its turn, or the last one for its goal, ends. The
// answer is words for the turn that runs. Words of somebody else in that turn close them, since they may be the answer.
// What is open when a turn completes is told with its outcome; an answer is then new work in the session, as all words
// are.

// askAsync stands for the method of these questions. Nothing is sent in answer to it.
const askAsync = "async"

// asyncQuestion: agentMessage.
type asyncQuestion struct {
	Title   string   `json:"title"`
	Options []string `json:"options"` // none: words of one's own
}

// steerID marks our words in a running turn.
const steerID = "switchboard-steer"

// noteAsync adds the questions of a message, and closes them when somebody else has given words to the turn.
func (c *connection) noteAsync(t *thread, method string, n *note) {
	switch w := n.Item; {
	case method != noteItemCompleted || w == nil || n.TurnID == "":
	case w.Type == typeUserMessage && w.client() != steerID:
		t.closeAsync(func(q *openQuestion) bool { return q.Turn == handoff.TurnID(n.TurnID) })
	case w.asks():
		c.addAsync(t, handoff.TurnID(n.TurnID), w)
	}
}

// readAsync adds the questions of messages that were read, oldest first, unless words came after them.
func (c *connection) readAsync(t *thread, turn handoff.TurnID, items []wireItem) {
	for i := range items {
		words := func(w wireItem) bool { return w.Type == typeUserMessage }
		if items[i].asks() && !slices.ContainsFunc(items[i+1:], words) {
			c.addAsync(t, turn, &items[i])
		}
	}
}

// asks reports whether an item is a message with questions that nobody waits for. Its text has all of them.
func (w *wireItem) asks() bool {
	return w.Type == typeAgentMessage && w.Delivery == "async" && len(w.Questions) > 0 && len(w.Text) <= maxQuestion
}

func (c *connection) addAsync(t *thread, turn handoff.TurnID, w *wireItem) {
	p := askParams{ThreadID: t.id, TurnID: string(turn), ItemID: w.ID}
	for _, asked := range w.Questions {
		q := inputQuestion{Question: asked.Title, IsOther: true}
		for _, o := range asked.Options {
			q.Options = append(q.Options, inputOption{o})
		}
		p.Questions = append(p.Questions, q)
	}
	id, _ := json.Marshal("async " + w.ID) // a string always can be encoded
	q, _ := p.describe(askAsync)
	c.ask(t, jsonrpc.Message{ID: id, Method: askAsync}, p, q)
}

// closeAsync closes open questions that nobody waits for.
func (t *thread) closeAsync(match func(*openQuestion) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closeLocked(func(q *openQuestion) bool { return q.Wire.method == askAsync && match(q) })
}

// replyAsync gives the answers to a question that nobody waits for to the turn that runs.
func (a *agent) replyAsync(ctx context.Context, q *openQuestion, answers [][]string) error {
	var lines []string
	err := error(handoff.Fault(handoff.CodeMalformed, "each question needs an answer, one on a line", ""))
	if len(answers) == len(q.Wire.params.Questions) {
		for i, asked := range q.Wire.params.Questions {
			lines = append(lines, asked.Question+" "+strings.Join(answers[i], ", "))
		}
		err = a.Steer(ctx, a.thread.turnOf(q), handoff.TextInput(strings.Join(lines, "\n")))
	}
	switch code := handoff.CodeOf(err); {
	case err == nil, code == handoff.CodeNotPending: // answered, or too late
		a.thread.closeAsync(func(o *openQuestion) bool { return o == q })
	case code != handoff.CodeAgentGone: // it was not taken
		a.thread.unclaimQuestion(q)
	}
	return err
}
