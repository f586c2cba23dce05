package work

// A Promise is a sentence that holds whatever happens, and the tests that hold it.
type Promise struct {
	Name   string
	Says   string
	Proofs []string // names of tests, or of ladders, which have hyphens
}

// Promises are what a caller may rely on.
var Promises = []Promise{
	// Work begins once.
	{"once", "A turn is started at most once for a request, whatever is cut or killed.",
		[]string{"TestProofCuts", "TestProofKilled", "TestProofInstances"}},
	{"written first", "The store has acknowledged that work is dispatched before its start is sent.",
		[]string{"promise-dispatch-hangs", "promise-dispatch-slow", "TestExplored"}},
	{"lost start", "A start whose answer was lost is looked for; it is sent again once, by the same process, and only " +
		"if it certainly never ran.", []string{"bug-21-lost-start-not-sent-twice", "TestRealConformance"}},
	{"never again", "Work that was interrupted, or that an earlier process sent, is never started again by itself.",
		[]string{"TestRealConformance", "TestProofKilled"}},
	{"same key", "A request that is repeated under its key is the same work for a day, also after a kill.",
		[]string{"TestProofSameKey", "TestProofNotKept"}},
	{"same request", "An equal request without a key is the same work until its asker has the answer, for a day.",
		[]string{"TestRepeatedRequest", "TestRepeatedForADay", "TestCutBeforeTheAnswer"}},
	{"not unasked", "Words that waited when the process died are kept whole, and begun only when the caller says so.",
		[]string{"TestProofWaitingWords", "TestProofPaused"}},
	{"in order", "Words for one session are begun one after another, in the order in which they came.",
		[]string{"TestQueuesAreTakenInOrder", "TestQueueOrder"}},
	{"stopped", "Work that the caller stopped is stopped, also by the next life of a process that could not.",
		[]string{"stop-and-restart", "TestExplored"}},

	// Work ends once, and is told.
	{"one outcome", "Each accepted request has exactly one outcome.",
		[]string{"TestProofShutdown", "TestRandomConversations"}},
	{"told means written", "An outcome counts as heard once the bytes or the speech that tell it are out.",
		[]string{"TestToldIsWritten", "TestHalfAnAnswer", "TestProofHeard"}},
	{"told at last", "An outcome that nobody heard waits, also through a restart, and is told once in a call.",
		[]string{"bug-11-hang-up", "TestProofKilled"}},
	{"not repaired by loss", "Nothing is written from a document that was not read whole.", []string{"TestReadInPart"}},
	{"nothing kept", "Work that is not to be stored leaves no words behind.", []string{"TestProofNotKept"}},

	// The right session.
	{"named session", "Work for a named session runs in exactly that session, or not at all.",
		[]string{"explicit-thread", "bug-07-named-gone", "bug-08-other-thread-returned"}},
	{"current session", "A session becomes the current one when an agent has acknowledged work there; one that is gone " +
		"is replaced, and that is said.", []string{"new-thread", "bug-07-sticky-gone"}},
	{"added to running work", "More words for a session where work of the caller runs are added to it, and have no " +
		"second outcome.", []string{"bug-03-second-while-first-runs"}},
	{"others are left alone", "Work of somebody else is waited for, and never stopped or answered, " +
		"unless the caller asked to watch it; to stop it takes a second word of theirs.",
		[]string{"busy", "busy-stopped", "TestOthersAreAsked", "watch-stopped", "TestWatched"}},
	{"copies are asked for", "A session that another program holds is copied only if the caller wants it.",
		[]string{"copy-declined", "copy-no-evidence", "copy-tapped"}},

	// Who may.
	{"apart", "A caller neither sees nor changes the work of another.", []string{"TestProofApart", "TestProofMCPApart"}},
	{"one gate", "Each act is allowed by the grant in one place, whichever front it came through.", []string{"TestActs"}},
	{"ends with its credential", "What a credential opened ends with it, within 15 seconds.",
		[]string{"TestGuard", "TestWhatACredentialOpened"}},
	{"a person's words", "By voice, only words of a person give, steer, stop or rename work.",
		[]string{"asked-outcome-suggests", "TestWhoAsked"}},
	{"answered once", "A question is answered once, and the answer is in the audit before it is sent.",
		[]string{"TestDecidedOnce", "TestUnauditedIsNotGiven"}},

	// Stores and homes.
	{"no store, no start", "While the store takes nothing, nothing new begins, that is said, and what runs goes on.",
		[]string{"TestProofStoreGone"}},
	{"one writer", "A caller has one home; whoever lost it writes nothing more.",
		[]string{"TestProofInstances", "TestProofFailover", "TestFence"}},
}
