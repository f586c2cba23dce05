package codex

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"switchboard/handoff"
	"switchboard/servers/jsonrpc"
)

// transcripts returns all recorded transcripts.
var transcripts = []string{
	"a-basic-ws", "b-list-read", "c-resume-subscribe", "d-steer-interrupt", "d2-steer-midstream",
	"f-approvals", "g-fork-queue", "j-errors", "k-drop-midturn", "k2-resume-race", "r-userinput-perms-mcp", "s-subagents",
	"v-subagents-0.171", "w-goal-0.171", "x-async-0.171", "y-interrupted-ambiguity",
}

// wireTypes are the types of the params and results of each method.
var (
	paramsOf = map[string]any{
		"initialize":         initializeParams{},
		"thread/start":       threadStartParams{},
		"thread/resume":      threadResumeParams{},
		"thread/fork":        threadForkParams{},
		"thread/unsubscribe": threadParams{},
		"thread/read":        threadParams{},
		"thread/list":        threadListParams{},
		"thread/turns/list":  turnsListParams{},
		"thread/items/list":  itemsListParams{},
		"turn/start":         turnStartParams{},
		"turn/steer":         turnSteerParams{},
		"turn/interrupt":     turnInterruptParams{},
		noteTurnStarted:      note{},
		noteTurnCompleted:    note{},
		noteItemStarted:      note{},
		noteItemCompleted:    note{},
		noteMessageDelta:     note{},
		noteOutputDelta:      note{},
		noteError:            note{},
		noteUsage:            note{},
		noteThreadStatus:     note{},
		noteGoal:             note{},
		noteGoalCleared:      note{},
		"thread/goal/set":    goalSetParams{},
		noteThreadName:       note{},
		noteThreadSettings:   note{},
		noteThreadClosed:     note{},
		noteThreadArchived:   note{},
		noteThreadDeleted:    note{},
		noteRequestResolved:  note{},
		askCommand:           askParams{},
		askFileChange:        askParams{},
		askPermissions:       askParams{},
		askInput:             askParams{},
		askElicitation:       askParams{},
	}
	resultOf = map[string]any{
		"initialize":        initializeResult{},
		"thread/start":      threadResult{},
		"thread/resume":     threadResult{},
		"thread/fork":       threadResult{},
		"thread/read":       threadReadResult{},
		"thread/list":       threadListResult{},
		"thread/turns/list": turnsPage{},
		"thread/items/list": itemsListResult{},
		"turn/start":        turnResult{},
		"turn/steer":        turnSteerResult{},
		askCommand:          wireDecision{},
		askFileChange:       wireDecision{},
		askPermissions:      wirePermissions{},
		askInput:            wireAnswers{},
		askElicitation:      wireElicitation{},
	}
)

// unrecorded are fields that are in the generated schema of Codex 0.169.0 but in no transcript.
var unrecorded = []string{
	"contextEntry.kind", "contextEntry.value", "turnsListParams.cursor", "itemsListParams.cursor",
	"itemsListParams.sortDirection",
	"turnStartParams.additionalContext", "wireItem.query", "wireItem.summary", "wireThread.gitInfo.branch",
	"threadStartParams.model",
	"askParams.networkApprovalContext", "userInput.url", "askParams.additionalPermissions", "inputAnswer.answers",
	"askParams._switchboard", "Owner.ceiling", "Owner.no_answers", // our own gate adds it
	"capabilities.requiredHumanApproval", "note.reviewId", "note.review", "note.action", "askParams.url",
	"goalSetParams.threadId", "goalSetParams.status", "goalSetParams.objective", "goalSetParams.origin",
}

// TestWireTypes decodes every recorded frame into our types, and checks that each of our fields was seen on the wire.
func TestWireTypes(t *testing.T) {
	seen := map[string]bool{} // by type and field; false: never sent
	for _, types := range []map[string]any{paramsOf, resultOf} {
		for _, sample := range types {
			walk(reflect.TypeOf(sample), "", nil, seen)
		}
	}
	for _, name := range transcripts {
		methods := map[string]string{} // by connection, direction of the request and id
		for _, l := range readTranscript(t, name) {
			m, ok := jsonrpc.Parse(l.Msg)
			switch {
			case !ok:
			case m.Method != "":
				methods[l.Conn+l.Dir+string(m.ID)] = m.Method
				check(t, m.Method, m.Params, paramsOf, seen)
			default:
				other := map[string]string{"<": ">", ">": "<"}[l.Dir]
				check(t, methods[l.Conn+other+string(m.ID)], m.Result, resultOf, seen)
			}
		}
	}
	for field, sent := range seen {
		if known := slices.Contains(unrecorded, field); !sent && !known {
			t.Errorf("nobody ever sent %s", field)
		} else if sent && known {
			t.Errorf("%s was recorded after all", field)
		}
	}
}

// check decodes a value and notes which of our fields it has.
func check(t *testing.T, method string, raw json.RawMessage, types map[string]any, seen map[string]bool) {
	t.Helper()
	sample, ok := types[method]
	if !ok || len(raw) == 0 {
		return
	}
	typ := reflect.TypeOf(sample)
	if err := json.Unmarshal(raw, reflect.New(typ).Interface()); err != nil {
		t.Errorf("%s: %v in %s", method, err, handoff.ClipRunes(string(raw), 200))
	}
	var tree any
	if json.Unmarshal(raw, &tree) == nil {
		walk(typ, "", tree, seen)
	}
}

// walk lists the fields of a type, as "type.field", and notes those that the value has.
func walk(typ reflect.Type, name string, value any, seen map[string]bool) {
	if list, ok := value.([]any); ok && typ.Kind() == reflect.Slice {
		for _, v := range list {
			walk(typ.Elem(), name, v, seen)
		}
		return
	}
	if typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice || typ.Kind() == reflect.Map {
		walk(typ.Elem(), name, value, seen)
		return
	}
	if typ.Kind() != reflect.Struct {
		return
	}
	if typ.Name() != "" {
		name = typ.Name()
	}
	object, _ := value.(map[string]any)
	for f := range typ.Fields() {
		if !f.IsExported() {
			continue
		}
		if f.Anonymous {
			walk(f.Type, name, value, seen)
			continue
		}
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		v, sent := object[tag]
		full := name + "." + tag
		seen[full] = seen[full] || sent
		walk(f.Type, full, v, seen)
	}
}

// TestOptOut: we opt out only of notifications that we do not read, and name each once.
func TestOptOut(t *testing.T) {
	for _, method := range optOut {
		if _, used := paramsOf[method]; used {
			t.Errorf("%s is used", method)
		}
	}
	if once := slices.Compact(slices.Sorted(slices.Values(optOut))); len(once) != len(optOut) {
		t.Error("named twice")
	}
	// Other notifications in the transcripts are read, or listed here as rare and harmless.
	rare := map[string]bool{"thread/unarchived": true, "thread/reverted": true, "item/tool/call": true}
	unknown := map[string]bool{}
	for _, name := range transcripts {
		for _, l := range readTranscript(t, name) {
			if m, ok := jsonrpc.Parse(l.Msg); ok && l.Dir == "<" && m.Method != "" {
				if _, used := paramsOf[m.Method]; !used && !rare[m.Method] && !slices.Contains(optOut, m.Method) {
					unknown[m.Method] = true
				}
			}
		}
	}
	if len(unknown) > 0 {
		t.Errorf("neither read nor opted out of: %v", slices.Sorted(maps.Keys(unknown)))
	}
}
