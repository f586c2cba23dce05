package responses

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestChecklist: each behaviour that the API promises has the test that holds it, which is there.
func TestChecklist(t *testing.T) {
	const whole, router, decisions, agent = "../../cmd/switchboard", "../../handoff/router", "../../handoff/threads", "../../servers/responses"
	for _, c := range []struct{ promise, dir, test string }{
		{"a new one, one after another, one in a conversation: each has its thread; both at once, and unknown ids, are refused", ".", "TestWhereItGoesOn"},
		{"another's id looks like none", ".", "TestAnothersIsUnknown"},
		{"of any number that go on from one at once, one does so there and the others in copies", whole, "TestOpenAIForks"},
		{"what is not the newest is gone on from in a copy", router, "TestGoingOnFromAnOlderTurn"},
		{"a create that fails leaves nothing", ".", "TestFailedCreate"},
		{"whoever ran a thread is lost: its lease ends", decisions, "TestClaims"},
		{"a copy has everything up to there, calls with their outputs, and nothing later; its source stays: the real codex", whole, "TestOpenAIRealCodex"},
		{"the same: an agent of our own", whole, "TestOpenAIAgent"},
		{"outputs that nobody waits for are refused; two messages of the user in a row are not", ".", "TestRequests"},
		{"a question ends the response, the answer goes on; another's answer is refused", whole, "TestOpenAIApproval"},
		{"store false: nothing is stored, it streams to its end, and it may go on from one that is stored", ".", "TestNotStored"},
		{"the same: no copy is kept on the machine", router, "TestGoingOnAside"},
		{"the same, with OpenAI's client", whole, "TestOpenAINotStored"},
		{"tools that work at once are shown one after the other; one that hangs frees its window", ".", "TestSerialWindows"},
		{"the same: an agent of our own", agent, "TestCallsAreAnsweredInOrder"},
		{"one terminal event, however it ends", ".", "TestOneTerminalEvent"},
		{"GET shows the same afterwards, also in the next life", ".", "TestGetAgreesWithTheStream"},
		{"the grammar of the stream", ".", "TestGrammar"},
		{"openai-go: New, Get, Delete, InputItems", whole, "TestOpenAIResponses"},
		{"openai-go: NewStreaming, GetStreaming, Cancel", whole, "TestOpenAIStreams"},
		{"openai for node: stream, finalResponse, conversations", whole, "TestOpenAINode"},
		{"openai for node: parse with a schema", whole, "TestOpenAIParse"},
		{"cut after any event, the rest is the rest", ".", "TestResumeAfterACut"},
		{"what cannot be streamed again says so; a bad cursor comes before an unknown id", ".", "TestBadCursor"},
		{"cancel: what is synchronous or over is refused, twice is once, what comes late changes nothing", ".", "TestCancel"},
		{"the same, of who may not stop work", ".", "TestCancelIsARight"},
		{"a question ends a response only where the next can answer it", ".", "TestWhoIsAsked"},
		{"nothing but the answer goes on from it", ".", "TestQuestionComesFirst"},
		{"nothing goes on from what never ran", ".", "TestNothingRan"},
		{"whoever comes back in time finds it going on", ".", "TestReaderComesBack"},
		{"what was read is told by no call, what was not is", ".", "TestOutcomeIsHeard"},
		{"delete: what is in flight is refused, and what was deleted stays away", ".", "TestDelete"},
		{"whoever leaves stops what is not in the background", ".", "TestReaderLeaves"},
		{"a revoked key ends streams", ".", "TestKeyIsRevoked"},
		{"sent again it runs once, also in the next life", ".", "TestSentAgain"},
		{"the same, in a conversation", ".", "TestSentAgainInAConversation"},
		{"the same, of an answer to a question", ".", "TestApprovalSentAgain"},
		{"the same, after what could not be passed on: another answer may come", ".", "TestDecisionFails"},
		{"what a former life promised and never began runs once when it is sent again, and nobody is asked about it", ".", "TestSentAgainBeforeItBegan"},
		{"sent again after it was deleted it does not come back", ".", "TestDeletedIsSentAgain"},
		{"the same, after a kill, on each store", whole, "TestProofSentAgain"},
		{"a kill at any moment: GET tells what happened, and nothing ran twice", whole, "TestProofKilledResponses"},
		{"errors are objects; a busy one says whether to try again", ".", "TestRefusals"},
		{"items of a conversation", ".", "TestConversationItems"},
		{"the same, of responses that a former life began", ".", "TestConversationCatchesUp"},
		{"one at a time, in the next life too", ".", "TestConversationIsBusyInTheNextLife"},
		{"what a client sets and what a response says at one moment both count", ".", "TestConversationIsChangedByOneAtATime"},
		{"a store that is away is an error that may be tried again", ".", "TestStoreDown"},
	} {
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
}
