package main

import (
	"context"
	"encoding/json"
	"io"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"switchboard/cmd/switchboard/verbs"
	"switchboard/handoff"
	"switchboard/web"
)

// begin runs a verb beside the test, as in another window. out is what it has said so far.
func (sh *shell) begin(ctx context.Context, args ...string) (out *logBuffer, code chan int) {
	out, code = &logBuffer{}, make(chan int, 1)
	args = append(args, "--config", config(sh.t, ""))
	go func() {
		code <- run(ctx, args, func(name string) string { return sh.env[name] }, out, out)
	}()
	return out, code
}

// TestVerbsHandoff: work is given and followed from a terminal; standard output has only what the agent says, and the
// exit code is the outcome.
func TestVerbsHandoff(t *testing.T) {
	t.Parallel()
	sh := openShell(t, nil)
	code, out, errs := sh.run("handoff", "bigpc", "--thread", "auth", "--idempotency-key", "mine", "run", "the", "tests")
	if code != 0 || !strings.Contains(out, "One test fails") || strings.Contains(out, "go test") || !strings.HasPrefix(errs, "bigpc, ") || !strings.Contains(errs, ", named (") || !strings.Contains(errs, "$ go test") {
		t.Errorf("%d %q %q", code, out, errs)
	}
	_, again, _ := sh.run("handoff", "bigpc", "--thread", "auth", "--idempotency-key", "mine", "run", "the", "tests")
	if works := sh.r.handoffs(); again != out || len(works) != 1 {
		t.Errorf("given again it is %d pieces of work: %q", len(works), again)
	}
	if state := sh.r.handoffs()[0].State; state != handoff.StatusDelivered {
		t.Errorf("what was shown to its end is %s, and the next call tells it again", state)
	}
	id := sh.r.handoffs()[0].ID
	for _, part := range []string{id, id[:4], "1"} {
		if followed := sh.wants(0, nil, "handoff", "--follow", part); followed != out {
			t.Errorf("%s, followed later: %q", part, followed)
		}
	}
	lines := strings.Split(strings.TrimSpace(sh.wants(0, nil, "handoff", "--json", "bigpc", "fix it")), "\n")
	var last struct{ Record handoff.Record }
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil || last.Record.Outcome != handoff.OutcomeResult {
		t.Errorf("JSON: %v %q", err, lines)
	}
	sh.wants(verbs.ExitNotBegun, []string{"attic is not answering.", "Start its agent server there."}, "handoff", "attic", "check the backups")
	sh.wants(verbs.ExitNotBegun, []string{"I don't know a machine called nope. There is"}, "handoff", "nope", "x")
	sh.wants(verbs.ExitNotBegun, []string{"I don't know a machine called bgpc. Did you mean bigpc?"}, "handoff", "bgpc", "x")
	sh.wants(verbs.ExitNotBegun, []string{"I can't find the session nix."}, "handoff", "bigpc", "--thread", "nix", "x")
	sh.wants(verbs.ExitNotBegun, []string{"I can't find the session aut rector. Did you mean auth refactor?"}, "handoff", "bigpc", "--thread", "aut rector", "x")
	sh.wants(exitSettings, []string{"needs a machine and what to do there"}, "handoff", "bigpc")
	sh.wants(exitSettings, []string{"nothing on standard input"}, "handoff", "bigpc", "-")
	sh.wants(exitSettings, []string{"take the id of work alone"}, "handoff", "bigpc", "--stop", id)
	sh.wants(exitFailed, []string{"That work has ended already."}, "handoff", "--stop", id)
	sh.wants(exitFailed, []string{"There is no such work."}, "handoff", "--follow", "none-1")
	sh.wants(exitSettings, []string{"--idempotency-key \"a\\nb\" is no name"}, "handoff", "bigpc", "x", "--idempotency-key", "a\nb")
	sh.env[ownerKey] = "a\nb"
	sh.wants(exitFailed, []string{"the key in SWITCHBOARD_KEY is no key"}, "servers")
}

// question is the id of the one that waits, as a script reads it.
func (sh *shell) question() string {
	var open struct{ Items []handoff.RecordQuestion }
	if out := sh.wants(0, nil, "answer", "--json"); json.Unmarshal([]byte(out), &open) != nil || len(open.Items) != 1 {
		sh.t.Fatalf("no one question: %s", out)
	}
	return string(open.Items[0].ID)
}

// TestAsk: ask returns a typed line, and ends when it is interrupted.
func TestAsk(t *testing.T) {
	for text, want := range map[string]string{"y\n": "y", " Yes \nno\n": "Yes", "yes": "yes", "\n": "", "": ""} {
		var out logBuffer
		if got, err := ask(t.Context(), strings.NewReader(text), &out, "Sure? "); err != nil || got != want || out.String() != "Sure? " {
			t.Errorf("%q: %q, %v, %q", text, got, err, out.String())
		}
	}
	in, typed := io.Pipe()
	defer typed.Close()
	ctx, leave := context.WithCancel(t.Context())
	leave()
	if got, err := ask(ctx, in, io.Discard, ""); got != "" || err == nil {
		t.Errorf("left: %q, %v", got, err)
	}
}

// TestVerbsAnswer: an agent's question is listed and answered in all its ways, and only by keys that may.
func TestVerbsAnswer(t *testing.T) {
	t.Parallel()
	sh := openShell(t, func(p *plan) {
		p.Access = append(p.Access, web.NewKey("owner", testKey+"-looks")) // which does not say approve
	})
	looks := filepath.Join(t.TempDir(), "key")
	write(t, looks, testKey+"-looks")
	sh.wants(0, []string{"nothing waits for an answer"}, "answer")
	sh.wants(exitFailed, []string{"nothing waits for an answer"}, "answer", "yes")
	sh.wants(exitFailed, []string{"there is no question q99; nothing waits for an answer"}, "answer", "q99", "yes")
	shown, code := sh.begin(t.Context(), "handoff", "bigpc", "--thread", "auth", "push it")
	until(t, "the question", func() bool { return strings.Contains(shown.String(), "yes|no|stop") })
	sh.wants(0, []string{"q1  bigpc", "git push", "risk: medium"}, "answer")
	sh.wants(exitFailed, []string{"does not answer q1; there is yes|no|stop"}, "answer", "perhaps")
	sh.wants(exitFailed, []string{"this key may not answer for you"}, "answer", "--key-file", looks, sh.question(), "yes")
	sh.wants(exitFailed, []string{"git push", "by its id: switchboard answer q1-"}, "answer", "q1", "yes")
	sh.wants(exitFailed, []string{"there is no question q99; there is q1 (bigpc: May this command run?"}, "answer", "q99", "yes")
	sh.wants(0, []string{"bigpc waits for your answer."}, "status")
	if out := sh.wants(0, nil, "work"); !regexp.MustCompile(`Needs you  (just now|\d+ minutes? ago)`).MatchString(out) {
		t.Errorf("work that waits for an answer is listed so: %s", out)
	}
	sh.wants(0, []string{"allowed: ", "git push"}, "answer", sh.question(), "yes")
	if got := <-code; got != 0 || !strings.Contains(shown.String(), "is pushed.") {
		t.Errorf("%d %s", got, shown)
	}
	shown, code = sh.begin(t.Context(), "handoff", "bigpc", "publish the release notes")
	until(t, "the question", func() bool { return strings.Contains(shown.String(), "'your words'") })
	sh.wants(0, []string{"answered: ", "Which version"}, "answer", sh.question(), "version", "2.4")
	if got := <-code; got != 0 || !strings.Contains(shown.String(), "published for version 2.4") {
		t.Errorf("%d %s", got, shown)
	}
}

// TestVerbsStop: after an interrupt, the verb prints how to come back, and the work goes on until it is stopped.
func TestVerbsStop(t *testing.T) {
	t.Parallel()
	sh := openShell(t, func(p *plan) { p.World = holding(50, "benchmarks") })
	ctx, leave := context.WithCancel(t.Context())
	shown, code := sh.begin(ctx, "handoff", "bigpc", "run the benchmarks")
	until(t, "the work", func() bool { return strings.Contains(shown.String(), "$ go test") })
	leave()
	if got := <-code; got != verbs.ExitLeft {
		t.Errorf("left with %d: %s", got, shown)
	}
	back := regexp.MustCompile("handoff --follow (\\S+)`").FindStringSubmatch(shown.String())
	if back == nil || !strings.Contains(shown.String(), "The work goes on.") {
		t.Fatalf("it was told: %s", shown)
	}
	shown, code = sh.begin(t.Context(), "handoff", "--follow", back[1])
	until(t, "the work again", func() bool { return strings.Contains(shown.String(), "$ go test") })
	sh.wants(0, []string{"stopped"}, "handoff", "--stop", back[1])
	if got := <-code; got != verbs.ExitStopped || !strings.Contains(shown.String(), "stopped") {
		t.Errorf("stopped with %d: %s", got, shown)
	}
}

// TestVerbsWork: work is listed with its state, and stopped by a part of its id or by its machine; if several pieces
// run, the verb asks which.
func TestVerbsWork(t *testing.T) {
	t.Parallel()
	sh := openShell(t, func(p *plan) { p.Hurry = 0.01 }) // nothing ends before it is stopped
	sh.wants(0, []string{"no work"}, "work")
	sh.wants(0, []string{"Nothing is running."}, "status")
	sh.wants(0, []string{"nothing is running"}, "stop")
	sh.wants(0, []string{"nothing is running on bigpc"}, "stop", "bigpc")
	sh.wants(exitFailed, []string{"no work and no machine called nope", "switchboard work"}, "stop", "nope")
	sh.begin(t.Context(), "handoff", "bigpc", "run the benchmarks")
	until(t, "the work", func() bool { return strings.Contains(sh.wants(0, nil, "work"), "Working") })
	sh.begin(t.Context(), "handoff", "bigpc", "--next", "run the tests")
	until(t, "what waits", func() bool { return strings.Contains(sh.wants(0, nil, "work", "bigpc"), "Waiting") })
	sh.begin(t.Context(), "handoff", "laptop", "go through the notes")
	until(t, "the other", func() bool { return strings.Count(sh.wants(0, nil, "work"), "Working") == 2 })
	sh.wants(0, []string{"no work"}, "work", "attic")
	sh.wants(0, []string{"bigpc", "laptop", "go through the notes"}, "status")
	out := sh.wants(exitFailed, []string{"2 pieces of work run, so name one, or give --all", "laptop, ", ": go through the notes"}, "stop")
	if strings.Contains(out, "stopped") {
		t.Errorf("something was stopped: %s", out)
	}
	sh.wants(0, []string{"stopped on bigpc: run the benchmarks"}, "stop", "BigPC")
	until(t, "what was behind it", func() bool { return strings.Contains(sh.wants(0, nil, "work"), "Paused") })
	sh.wants(0, []string{"dropped on bigpc: run the tests"}, "stop", "2")
	sh.wants(0, []string{"stopped on laptop: go through the notes"}, "stop")
	until(t, "the end", func() bool { return strings.Count(sh.wants(0, nil, "work"), "Stopped") == 3 })
	sh.wants(0, []string{"2 more have ended"}, "work", "--limit", "1")
	var found struct{ Items []handoff.Record }
	if out := sh.wants(0, nil, "work", "--json"); json.Unmarshal([]byte(out), &found) != nil || len(found.Items) != 3 {
		t.Errorf("no JSON of the API: %s", out)
	}
}
