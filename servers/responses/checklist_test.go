package responses

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestChecklist: each behaviour that an agent of this kind promises has the test that holds it, which is there.
func TestChecklist(t *testing.T) {
	const workspace, sandbox, stores, decisions = "workspace", "sandbox", "../../sessions/sessionstest", "../../handoff/threads"
	for _, c := range []held{
		{"named responses: what is new alone is sent, and it stays flat; off it grows and names none", ".", "TestInputStaysFlat"},
		{"a newest answer without id, broken off, foreign, expired, compacted or not kept: everything is sent", ".", "TestContinuation"},
		{"a forgotten response: everything once, and a second refusal shows", ".", "TestForgottenResponse"},
		{"calls that were cut short have outputs in the next turn", ".", "TestContinuation"},
		{"sent again, nothing has the id of what was kept; reasoning only with its encrypted form", ".", "TestContinuation"},
		{"instructions come with every request", ".", "TestRequest"},
		{"reasoning of another model's server is not sent", ".", "TestForeignReasoning"},
		{"threading can be switched off, by setting, variable and request", ".", "TestThreadingIsSwitchedOff"},
		{"the same conformance suite as codex, with each store", ".", "TestConformance"},
		{"every call is answered once, in call order; a tool's error is an output", ".", "TestCallsAreAnsweredInOrder"},
		{"all tools are listed, those that may be used are named", ".", "TestRequest"},
		{"not trusted, first layer: not offered", workspace, "TestLayerOffered"},
		{"not trusted, second layer: refused when called", workspace, "TestLayerRefused"},
		{"not trusted, third layer: held by the system, each half of it alone", sandbox, "TestLayers"},
		{"no sandbox: nothing runs, and the reason is told", sandbox, "TestNowhere"},
		{"commands have no network, no rights and none of our variables", sandbox, "TestNoRights"},
		{"encrypted reasoning is not kept unless that is told; what is included stays", ".", "TestRequest"},
		{"usage in both shapes, raw kept", ".", "TestUsage"},
		{"usage is summed over a turn", ".", "TestUsageIsSummed"},
		{"the code of a refusal is kept; retries only before the first word", ".", "TestRetries"},
		{"Retry-After is honoured", ".", "TestRetryAfterIsHonoured"},
		{"a cap, then one answer without tools", ".", "TestCap"},
		{"the same, with a model that goes on calling", ".", "TestCapHoldsAgainstTheModel"},
		{"an interrupt ends commands and all that they began", workspace, "TestExecStopped"},
		{"whatever ends a command leaves nothing behind", sandbox, "TestNothingLeft"},
		{"the scratch directory of a killed service is removed", sandbox, "TestScratchOfTheDead"},
		{"a kill of the service leaves no command behind", sandbox, "TestKilledParent"},
		{"a full context is compacted, once, and the anchor is dropped", ".", "TestFullContext"},
		{"compaction keeps calls with their outputs", ".", "TestCuts"},
		{"a steer needs its turn, which must be the one that runs", ".", "TestSteerNeedsItsTurn"},
		{"outputs first, then steers in their order", ".", "TestOutputsThenSteers"},
		{"a steer during the last answer goes on", ".", "TestSteerDuringTheLastAnswer"},
		{"what was accepted reaches the model, or is handed back", ".", "TestAcceptedSteersReachTheModel"},
		{"an interrupt hands back what was not delivered", ".", "TestInterruptHandsBack"},
		{"also what was sent before the model began to answer; no later turn finds it", ".", "TestSentAndUnheardSteersComeBack"},
		{"what was accepted outlives a kill, in each store", ".", "TestKilledSteersComeBack"},
		{"what could not be written down is handed back", ".", "TestUnwrittenSteersComeBack"},
		{"a store that takes a step and loses the answer: it counts once", ".", "TestLostAnswersOfTheStore"},
		{"the same for good: a start is reconciled, and runs once", ".", "TestUnsureStart"},
		{"the same: a steer is heard once, and what is in the thread is not handed back", ".", "TestUnsureHearing"},
		{"the caller is told in words what was not delivered", "../../handoff/wording", "TestUnheardWords"},
		{"a start that is sent twice runs once", ".", "TestStartTwiceRunsOnce"},
		{"a shutdown ends turns, and says so", ".", "TestShutdownInterrupts"},
		{"tools run side by side and are shown one after the other; one that breaks down frees its window", ".", "TestCallsAreAnsweredInOrder"},
		{"what a call prints is shown whole, or what is missing is said", workspace, "TestOutput"},
		{"who is asked, by policy and by what is about to be done", workspace, "TestWhoIsAsked"},
		{"nothing is done before the answer; the question names it", workspace, "TestAsked"},
		{"an answer counts once", ".", "TestQuestionIsDecidedOnce"},
		{"an edit tells what it did to each file", workspace, "TestChangesAreTold"},
		{"what edits did is kept, and no model is sent it", ".", "TestChangesAreKept"},
		{"a patch is applied as a whole or not at all", workspace, "TestApplyPatch"},
		{"of any number of claims one goes on, the others are copies", decisions, "TestClaims"},
		{"fences, leases, copies, what is undone: in each store", stores, "TestMemoryThreads"},
	} {
		c.check(t)
	}
}

// held is what is promised, and the test that holds it.
type held struct{ promise, dir, test string }

// check holds that the test is there.
func (c held) check(t *testing.T) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(c.dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		found = found || strings.Contains(string(text), "\nfunc "+c.test+"(t *testing.T) {")
	}
	if !found {
		t.Errorf("%q is held by %s in %s, which is not there", c.promise, c.test, c.dir)
	}
}
