package simulator

import (
	"testing"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/wording"
)

// pausedRecord is work that was not begun, as the router tells of it.
func pausedRecord(id, server, words string) handoff.Record {
	return handoff.Record{ID: id, Server: server, Prompt: words, Outcome: handoff.OutcomeCancelled, Paused: true,
		Fault: handoff.Fault(handoff.CodePaused, server, ""), Spoken: handoff.Fault(handoff.CodePaused, server, "").Spoken()}
}

var (
	tellsPaused  = wording.English.OutcomeMessage(pausedRecord("h-2", "bigpc", "then push"))
	tellsPaused2 = wording.English.OutcomeMessage(pausedRecord("h-3", "laptop", "write the notes"))
	tellsBoth    = wording.English.FinalsMessage([]handoff.Record{{Server: "bigpc", Outcome: handoff.OutcomeInterrupted},
		pausedRecord("h-2", "bigpc", "then push")})
	tellsFirst = wording.English.FinalsMessage([]handoff.Record{pausedRecord("h-2", "bigpc", "then push"),
		{Server: "bigpc", Outcome: handoff.OutcomeInterrupted}})
	tellsAway = wording.English.AwaySummary([]handoff.Record{
		{Server: "laptop", Outcome: handoff.OutcomeResult, Spoken: "The notes are written."},
		pausedRecord("h-4", "bigpc", "run the benchmarks"),
	}, time.Time{})
)

// What was paused is begun or dropped by the name that the router told for it, when the caller says so and not before.
func TestBrainBeginsAndDropsPausedWork(t *testing.T) {
	const (
		asks = ">say What waited on bigpc is paused, because the work before it was stopped. It was: then push. " +
			sayPaused
		begins  = `>codex{"server":"bigpc","prompt":"then push","begin":"h-2"}`
		drops   = `>stop_work{"drop":"h-2"}`
		another = ">say What waited on laptop is paused, because the work before it was stopped. It was: write the notes. " +
			sayPaused
	)
	for said, want := range map[string]string{
		"continue": begins, "Go on.": begins, "yes": begins, "yes, go on with it": begins, "okay, go ahead": begins,
		"resume that":    begins,
		"go on on bigpc": begins,
		"do it now":      begins,
		"drop it":        drops, "Forget it.": drops, "no, drop it": drops, "forget about that": drops,
		"discard it on bigpc": drops,
		"no":                  ">say " + sayStaysPaused, "not now": ">say " + sayStaysPaused,
		"continue the auth session on bigpc": `>list_sessions{"server":"bigpc","query":"auth"} then work `,
		"go on on laptop":                    ">say " + sayUnknown,
		"no, go on":                          ">say " + sayStaysPaused,
		"okay, wait, don't":                  ">say " + sayStaysPaused,
		"what is paused?":                    ">status{}",
	} {
		t.Run(said, func(t *testing.T) { talk(t, []string{"!" + tellsPaused, asks, said, want}) })
	}
	for name, lines := range map[string][]string{
		"once": {"!" + tellsPaused, asks, "go on", begins,
			`={"status":"started","server":"bigpc","say":"Working on it."}`, ">say Working on it.", "drop it", ">say " +
				sayQuiet},
		"which": {"!" + tellsPaused, asks, "!" + tellsPaused2, another, "go on",
			">say There are 2: then push on bigpc and write the notes on laptop. Which one do you mean?", "the second one",
			`>codex{"server":"laptop","prompt":"write the notes","begin":"h-3"}`},
		"a machine": {"!" + tellsPaused, asks, "!" + tellsPaused2, another, "go on on laptop",
			`>codex{"server":"laptop","prompt":"write the notes","begin":"h-3"}`},
		"a question first": {"!" + tellsPaused, asks, "!" + asksPush, ">say " + spokenMessage(asksPush), "yes",
			`>answer_agent{"question":"q1","decision":"accept"}`},
		"a late yes": {"!" + tellsPaused, asks, done("laptop", "It is pushed."), ">say " +
			spokenMessage(done("laptop", "It is pushed.")[1:]), "yes", ">say " + sayNobody, "go on", begins},
		"while away": {"!" + tellsAway,
			">say While you were away, one thing finished, one was not begun. laptop, done: The notes are written. bigpc, " +
				"not begun: What waited on bigpc is paused, because the work before it was stopped. It was: run the benchmarks. " +
				sayPaused, "go on", `>codex{"server":"bigpc","prompt":"run the benchmarks","begin":"h-4"}`},
		"among others": {"!" + tellsBoth,
			">say One thing was stopped, one was not begun. bigpc, stopped: The work on bigpc was stopped. bigpc, not " +
				"begun: What waited on bigpc is paused, because the work before it was stopped. It was: then push. " + sayPaused,
			"yes", begins},
		"before others": {"!" + tellsFirst,
			">say One thing was stopped, one was not begun. bigpc, not begun: What waited on bigpc is paused, because the " +
				"work before it was stopped. It was: then push. bigpc, stopped: The work on bigpc was stopped. " + sayPaused,
			"yes", begins},
		"told by the state": {"status", ">status{}",
			`={"running":[],"waiting":[],"finished":[],"paused":[{"server":"bigpc","begin":"h-2","said":"then ` +
				`push"}],"say":"x"}`, ">say x", "drop it", drops},
	} {
		t.Run(name, func(t *testing.T) { talk(t, lines) })
	}
}

// done is the message that work has ended.
func done(server, said string) string {
	return "!" + wording.English.OutcomeMessage(handoff.Record{Server: server, Title: "Auth refactor",
		Outcome: handoff.OutcomeResult, Text: said})
}

// Sentences that mean something only after what was said and done before.
func TestBrainFollowsUp(t *testing.T) {
	const unclear = `={"status":"unclear","choices":["laptop, Release notes","bigpc, Auth refactor"],"say":"Which ` +
		`shall I stop?"}`
	start := []string{"Which machines do I have?", ">" + anyMachines, "=" + twoServers, ">say bigpc and laptop are ready.",
		"run the tests on bigpc", `>codex{"server":"bigpc","prompt":"Run the tests"}`}
	asked := append(start[:len(start):len(start)], "stop it", ">stop_work{}", unclear, ">say Which shall I stop?")
	for _, c := range []struct {
		name   string
		before []string
		lines  []string
	}{
		{"say it again", start, []string{done("bigpc", "One test fails."),
			">say bigpc is done in the session Auth refactor. One test fails.", "say that again please",
			">say bigpc is done in the session Auth refactor. One test fails."}},
		{"stop: a machine", asked, []string{"laptop", `>stop_work{"server":"laptop"}`}},
		{"stop: the one there", asked, []string{"the one on laptop", `>stop_work{"server":"laptop"}`}},
		{"stop: by its title", asked, []string{"the release notes", `>stop_work{"server":"laptop"}`}},
		{"stop: the second", asked, []string{"the second one", `>stop_work{"server":"bigpc"}`}},
		{"stop: none", asked, []string{"no, not that one", ">say " + sayQuiet}},
		{"stop: something else", asked, []string{"run the benchmarks on laptop",
			`>codex{"server":"laptop","prompt":"Run the benchmarks"}`}},
	} {
		t.Run(c.name, func(t *testing.T) { talk(t, append(c.before[:len(c.before):len(c.before)], c.lines...)) })
	}
}
