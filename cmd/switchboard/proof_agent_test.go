package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"switchboard/handoff"
	"switchboard/servers/responses/sandbox"
)

// A workingModel is a Responses API whose model runs one command for each piece of work, "job N", and then says so. It
// is as strict as a real one: a call without its output is refused, and so is an output without its call.
type workingModel struct {
	mu    sync.Mutex
	asked map[string]int // Guarded by mu: how often a response was asked for each job
	wrong []string       // Guarded by mu: what a real one would have refused
}

// wireItems are the items of a request that matter.
type wireItems []struct {
	Type    string `json:"type"`
	Role    string `json:"role"`
	CallID  string `json:"call_id"`
	Content []struct {
		Text string `json:"text"`
	} `json:"content"`
}

// look returns the newest words of a person, and whether their call was answered; fault says what is wrong.
func (items wireItems) look() (job string, answered bool, fault string) {
	open := map[string]bool{}
	for _, it := range items {
		switch {
		case it.Role == "user" && len(it.Content) > 0:
			job, answered = it.Content[0].Text, false
		case it.Type == "function_call":
			open[it.CallID] = true
		case it.Type == "function_call_output" && !open[it.CallID]:
			fault = "an output without a call"
		case it.Type == "function_call_output":
			delete(open, it.CallID)
			answered = true
		}
	}
	if len(open) > 0 {
		fault = "a call without an output"
	}
	return job, answered, fault
}

func (m *workingModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var req struct {
		Input wireItems `json:"input"`
	}
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		http.Error(w, "no request", http.StatusBadRequest)
		return
	}
	job, answered, fault := req.Input.look()
	m.mu.Lock()
	m.asked[job]++
	if fault != "" {
		m.wrong = append(m.wrong, fault)
	}
	id := fmt.Sprint(len(m.asked), "_", m.asked[job])
	m.mu.Unlock()
	seconds := "1"
	if strings.HasPrefix(job, "job 0 ") {
		seconds = "100" // it is cut short for certain
	}
	args, _ := json.Marshal(map[string]any{"command": "echo '" + job + "' >> ran.txt; sleep " + seconds + "; echo '" + job + "' >> after.txt"})
	item := map[string]any{"type": "function_call", "id": "f" + id, "call_id": "c" + id, "name": "exec", "arguments": string(args)}
	if answered {
		item = map[string]any{"type": "message", "id": "m" + id, "role": "assistant", "content": []any{map[string]any{"type": "output_text", "text": job + " is done"}}}
	}
	body, _ := json.Marshal(map[string]any{"type": "response.completed", "response": map[string]any{"id": "resp_" + id, "status": "completed", "output": []any{item}}})
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = fmt.Fprintf(w, "event: response.completed\ndata: %s\n\n", body)
}

// giveNobody gives a workspace to nobody when the tests are root, lets them through to temporary files, and returns the
// setting that has commands run as nobody; "" otherwise.
func giveNobody(t *testing.T, work, temp string) string {
	t.Helper()
	if os.Geteuid() != 0 {
		return ""
	}
	u, err := sandbox.LookupUser("nobody")
	must(t, err)
	for _, dir := range []string{filepath.Dir(work), filepath.Dir(temp)} {
		err = errors.Join(err, os.Chmod(dir, 0o755))
	}
	must(t, errors.Join(err, os.Chown(work, u.UID, u.GID)))
	return ", user: nobody"
}

// TestProofKilledAgent: Switchboard is killed at random instants while an agent of its own works, and started again.
// No command outlives it or runs twice, and no directory of theirs stays; what it was told besides and never heard is
// told; each piece of work that was accepted has one outcome, and a result only when it ran; its session can be gone
// on in. The commands have no sandbox, so that what a killed one did can be seen.
func TestProofKilledAgent(t *testing.T) { t.Parallel(); onAStore(t, proofKilledAgent) }

func proofKilledAgent(t *testing.T, store string) {
	model := &workingModel{asked: map[string]int{}}
	api := httptest.NewServer(model)
	t.Cleanup(api.Close)
	work, temp := t.TempDir(), t.TempDir()
	as := giveNobody(t, work, temp)
	s := &site{t: t, state: t.TempDir(), redis: store, env: []string{"TMPDIR=" + temp}, config: config(t, fmt.Sprintf(
		"model: {url: %q}\nservers:\n  - {name: helper, kind: responses, url: %q, model: m, workspace: %q, trusted: true, sandbox: danger-full-access, approval: never, env: [%s]%s}\n", "ws://127.0.0.1:1", api.URL+"/v1", work, childEnv, as))}
	random := rand.New(rand.NewPCG(11, uint64(len(store))))
	lines := func(name, job string) int {
		text, _ := os.ReadFile(filepath.Join(work, name))
		return strings.Count(string(text), job+"\n")
	}
	ran := func(job string) int { return lines("ran.txt", job) }
	jobs := map[string]string{} // by the id of their work
	steered, rounds := "", scale(4, 60)
	for round := range rounds {
		c := s.start()
		c.up("helper")
		job := fmt.Sprintf("job %d of %d", round, rounds)
		id := c.hand(fmt.Sprintf(`{"server":"helper","prompt":%q,"thread_id":"new"}`, job))
		jobs[id] = job
		if round == 0 { // one that is certainly cut short
			until(t, "the first command", func() bool { return ran(job) > 0 })
			if len(c.left()) < 2 {
				t.Errorf("the command cannot be seen: only %q runs", c.left())
			}
			steered = id
			steer(t, c, id)
		} else {
			time.Sleep(time.Duration(random.Float64() * float64(time.Second)))
		}
		c.signal(syscall.SIGKILL)
		until(t, "every command of the killed service to end", func() bool { return len(c.left()) == 0 })
	}
	c := s.start()
	c.up("helper")
	if dirs, _ := filepath.Glob(filepath.Join(temp, "switchboard-*")); len(dirs) != 1 {
		t.Errorf("%d killed services left %q", rounds, dirs)
	}
	fates := map[handoff.Outcome]int{}
	var cut handoff.Record
	for id, job := range jobs {
		rec := c.outcome(id)
		fates[rec.Outcome]++
		times := ran(job)
		if times > 1 || rec.Outcome == handoff.OutcomeResult && (times != 1 || !strings.HasPrefix(cmp.Or(rec.Text, rec.Spoken), job+" is done")) || times == 1 && rec.NotBegun() {
			t.Errorf("%s ran %d times, and is told as %q: %q", job, times, rec.Outcome, rec.Text)
		}
		if want := map[bool]string{true: "[and this]", false: "[]"}[id == steered]; fmt.Sprint(rec.Undelivered) != want {
			t.Errorf("%s never heard %q, want %s", job, rec.Undelivered, want)
		}
		if rec.Outcome == handoff.OutcomeInterrupted && times == 1 {
			cut = rec
		}
	}
	t.Logf("%d kills: %v", rounds, fates)
	if lines("after.txt", fmt.Sprint("job 0 of ", rounds)) > 0 {
		t.Error("a command went on after the kill")
	}
	goesOn(t, c, cut, func() int { return ran(jobs[cut.ID]) })
	model.mu.Lock()
	defer model.mu.Unlock()
	for _, why := range model.wrong {
		t.Errorf("a model would have refused: %q", why)
	}
}

// steer tells work more, and waits until the agent has taken it.
func steer(t *testing.T, c *child, id string) {
	t.Helper()
	var more handoff.Record
	status, body := c.ask(http.MethodPost, "/fleet/handoffs/"+id+"/steer", `{"prompt":"and this"}`)
	if status != http.StatusAccepted || json.Unmarshal(body, &more) != nil {
		t.Fatalf("steered: %d %s", status, body)
	}
	until(t, "the agent to take more words", func() bool { return c.whole(more.ID).Outcome == handoff.OutcomeResult })
}

// outcome waits for the outcome of work.
func (r *running) outcome(id string) (rec handoff.Record) {
	r.t.Helper()
	until(r.t, "an outcome of "+id, func() bool {
		_, body := r.ask(http.MethodGet, "/fleet/handoffs/"+id, "")
		return json.Unmarshal(body, &rec) == nil && rec.Outcome != ""
	})
	return rec
}

// goesOn holds that the session of work that was cut short can be gone on in.
func goesOn(t *testing.T, c *child, cut handoff.Record, ran func() int) {
	t.Helper()
	if cut.ThreadID == "" {
		t.Fatal("no kill cut work short whose command had run")
	}
	again := c.hand(fmt.Sprintf(`{"server":"helper","prompt":"job after it","thread_id":%q}`, cut.ThreadID))
	if rec := c.outcome(again); rec.Outcome != handoff.OutcomeResult || rec.Text != "job after it is done" || ran() != 1 {
		t.Errorf("it went on as %q: %q", rec.Outcome, rec.Text)
	}
}
