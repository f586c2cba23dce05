package web

import (
	"time"

	"switchboard/handoff"
)

// newScene is a world with an afternoon's work: some done, some running, one that asks, one that failed, and a machine
// that is down.
func newScene() *world {
	w := newWorld()
	scene(w)
	return w
}

// withVoice gives a page the sentences of the scene.
func withVoice(cfg *Config) { cfg.Voice = sceneVoice }

func scene(w *world) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	at := func(ago time.Duration) time.Time { return now.Add(-ago) }
	end := func(ago time.Duration) *time.Time { return new(at(ago)) }
	w.servers = []handoff.ServerInfo{
		{Name: "bigpc", Kind: "codex", Health: handoff.HealthUp, Projects: []string{"api"}, Simulated: true, Working: []string{"auth refactor"}},
		{Name: "laptop", Kind: "codex", Health: handoff.HealthUp, Simulated: true, Working: []string{"release notes"}, AskedThere: []handoff.AskedThere{{Thread: "t-blog", Title: "blog redesign", Text: "npm run deploy -- --prod"}}},
		{Name: "mini", Kind: "codex", Health: handoff.HealthDown, Problem: "Nothing answers at its address; its agent server may not run.", Simulated: true},
	}
	w.desk.machines = []handoff.Machine{{Name: "bigpc", VoiceApprovals: "medium", Archives: true, Renames: true}, {Name: "laptop", VoiceApprovals: "medium"}}
	w.stickies = []handoff.RecordSticky{
		{Server: "bigpc", ThreadID: "t-auth", Title: "auth refactor", Why: "named", Since: at(time.Hour)},
		{Server: "bigpc/api", ThreadID: "t-api", Title: "rate limits", Why: "new", Since: at(2 * time.Hour)},
		{Server: "laptop", ThreadID: "t-notes", Title: "release notes", Why: "new", Since: at(3 * time.Minute)},
	}
	w.sessions = handoff.SessionList{More: 12, Items: []handoff.SessionInfo{
		{ID: "t-auth", Label: "auth", Title: "auth refactor", Server: "bigpc", Directory: "/home/me/src/api", Branch: "auth-refactor", Age: "4 minutes ago", Status: handoff.SessionRunning},
		{ID: "t-flaky", Label: "flaky", Title: "Find out why the upload test fails every third time", Server: "bigpc", Directory: "/home/me/src/api", Branch: "main", Age: "yesterday", Status: handoff.SessionIdle},
	}}
	w.transcr = handoff.Transcript{Server: "bigpc", ID: "t-auth", Title: "auth refactor", More: 31, Lines: []handoff.Line{
		{Role: "user", Text: "Run the tests and tell me what breaks."},
		{Role: "command", Text: "$ go test ./... -run 'TestClockSkew|TestTokenExpiry' -count=20 -race -timeout 120s"},
		{Role: "agent", Text: "One test fails: a token that has expired is still accepted when the clock skew is exactly 30 seconds."},
	}}
	w.questions = []handoff.RecordQuestion{{
		ID: "q1", Handoff: "h2", Server: "laptop", Title: "release notes", Kind: handoff.QuestionCommand,
		Text: "May I run this command?", Command: "git push origin release/2.4 --follow-tags", Cwd: "/home/me/src/site",
		Reason:    "The notes are written; pushing the branch starts the preview build.",
		Decisions: []handoff.Decision{handoff.DecisionAccept, handoff.DecisionAcceptForSession, handoff.DecisionDecline, handoff.DecisionStop}, Asked: at(20 * time.Second),
	}}
	w.records = []handoff.Record{
		{
			ID: "h1", Server: "bigpc", ThreadID: "t-auth", Title: "auth refactor", Why: "continued", Prompt: "Fix the failing token test.", State: handoff.StatusStarted, CreatedAt: at(42 * time.Second),
			Items: []handoff.RecordItem{
				{ID: "i1", Kind: handoff.ItemReasoning, Text: "The skew is compared with < where the test wants <=.", State: "done"},
				{ID: "plan", Kind: handoff.ItemPlan, Text: "1. Compare with the boundary.\n2. Run the tests of the package again.", State: "done"},
				{ID: "review r1", Kind: handoff.ItemReview, Text: "Codex's own reviewer refused this: curl https://get.example.com/install (risk: high)\nIt would run a script from outside.", State: "failed"},
				{ID: "i2", Kind: handoff.ItemFileChange, Text: "auth/token.go", State: "done", Changes: []handoff.FileChange{{
					Path: "auth/token.go", Kind: "update", Added: 2, Removed: 1,
					Diff: "@@ -86,5 +86,6 @@ func (t Token) Expired(now time.Time) bool {\n \tskew := 30 * time.Second\n-\treturn now.Add(-skew).After(t.Expires)\n+\t// The boundary counts: a token is over once its last second is.\n+\treturn !now.Add(-skew).Before(t.Expires)\n }\n",
				}}},
				{ID: "i3", Kind: handoff.ItemCommand, Text: "go test ./auth/...", State: "running", Output: "=== RUN   TestTokenExpiry\n--- PASS: TestTokenExpiry (0.01s)\n=== RUN   TestClockSkew\n"},
			},
		},
		{ID: "h2", Server: "laptop", ThreadID: "t-notes", Title: "release notes", Why: "new", Prompt: "Write the release notes for 2.4 and push the branch.", State: handoff.StatusStarted, CreatedAt: at(3 * time.Minute), Items: []handoff.RecordItem{
			{ID: "i1", Kind: handoff.ItemMessage, Text: "I wrote the notes from the merged changes since 2.3. I need your permission to push.", State: "done"},
		}},
		{
			ID: "h3", Server: "bigpc", ThreadID: "t-auth", Title: "auth refactor", Why: "named", Prompt: "Run the tests.", State: handoff.StatusDelivered, Outcome: handoff.OutcomeResult, CreatedAt: at(9 * time.Minute), EndedAt: end(8 * time.Minute),
			Usage:   &handoff.Usage{Input: 11800, Cached: 9000, Output: 540, Reasoning: 128},
			Answers: []handoff.RecordAnswer{{Kind: handoff.QuestionCommand, Command: "go test ./...", Decision: handoff.DecisionAccept, By: handoff.ByVoice, At: at(9 * time.Minute)}},
			Text:    "One test of 48 fails: TestClockSkew accepts a token that expired 30 seconds ago.\n\nThe comparison in token.go leaves out the boundary.",
			Items: []handoff.RecordItem{
				{ID: "i1", Kind: handoff.ItemCommand, Text: "go test ./...", State: "failed", Exit: new(1), Output: "--- FAIL: TestClockSkew (0.00s)\n    token_test.go:88: expired token accepted\nFAIL\nexit status 1\n"},
			},
		},
		{ID: "h4", Server: "mini", Title: "", Why: "new", Prompt: "Check the disk space.", State: handoff.StatusDelivered, Outcome: handoff.OutcomeFailed, CreatedAt: at(25 * time.Minute), EndedAt: end(25*time.Minute - 4*time.Second), Error: &handoff.RecordError{
			Code: handoff.CodeUnreachable, Message: "mini is not answering.", Next: "Check that its agent server runs; try again later.", Detail: "dial tcp 127.0.0.1:4503: connect: connection refused",
		}},
	}
}

// sceneOfSeveral configures the scene for its owner, at one of several instances.
func sceneOfSeveral(cfg *Config) {
	cfg.Voice, cfg.Keys[0].Approve = sceneVoice, handoff.ApproveAll
	cfg.Instances = func() []InstanceInfo {
		return []InstanceInfo{
			{ID: "a", Address: "10.0.0.5:8090", Here: true}, {ID: "b", Address: "10.0.0.6:8090", Draining: true},
			{ID: "c", Address: "switchboard-3.internal.example.com:8090"},
		}
	}
}

// sceneVoice is a simulated voice with its chips.
var sceneVoice = VoiceInfo{Simulated: true, Model: "simulated", Chips: []Chip{
	{Text: "What are my machines doing?", Hint: "A look at the fleet"},
	{Text: "On bigpc, run the tests.", Hint: "One of them fails"},
	{Text: "Fix it.", Hint: "Lands in the same session"},
}}

// sceneTalk is a conversation, as the voice model's events.
const sceneTalk = `[
 {"type":"conversation.item.added","item":{"id":"u1","type":"message","role":"user","content":[{"type":"input_audio"}]}},
 {"type":"conversation.item.input_audio_transcription.completed","item_id":"u1","transcript":"Fix the failing token test on bigpc."},
 {"type":"response.created","response":{"id":"r1"}},
 {"type":"response.output_audio_transcript.delta","item_id":"a1","response_id":"r1","delta":"On it. bigpc goes on in the auth refactor session; "},
 {"type":"response.output_audio_transcript.done","item_id":"a1","response_id":"r1","transcript":"On it. bigpc goes on in the auth refactor session; I will tell you when the tests pass."},
 {"type":"response.done","response":{"id":"r1","status":"completed","output":[{"id":"a1"}]}},
 {"type":"conversation.item.added","item":{"id":"u2","type":"message","role":"user","content":[{"type":"input_text","text":"And what does the laptop do?"}]}},
 {"type":"response.created","response":{"id":"r2"}},
 {"type":"response.output_audio_transcript.delta","item_id":"a2","response_id":"r2","delta":"The laptop has the release notes ready and waits for"},
 {"type":"output_audio_buffer.started","response_id":"r2"}
]`
