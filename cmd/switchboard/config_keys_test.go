package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"switchboard/handoff"
	"switchboard/web"
)

// TestWhatKeysMay: each key has what it says, within what its machines say.
func TestWhatKeysMay(t *testing.T) {
	s, err := everythingWorld().load(t)
	must(t, err)
	top := handoff.Limits{Calls: 2, MinutesPerDay: 60, HandoffsPerMinute: 9, DollarsPerDay: 7, DollarsPerCall: 1}
	for i, want := range []web.Key{
		{Principal: "owner", Approve: handoff.ApproveAll, Instructions: handoff.InstructAll,
			Metrics: true, Limits: top, KeyLimits: top},
		{Principal: "assistant", NamesCallers: true, Servers: []string{"bigpc", "far"}, Tools: []string{"codex", "status"},
			Approve: handoff.ApproveAll, Instructions: handoff.InstructAll, Metrics: true, Limits: top,
			KeyLimits: handoff.Limits{Calls: 50, MinutesPerDay: 60, DollarsPerDay: 2.5, DollarsPerCall: 1}},
		{Principal: "guest", Barred: []string{"far"}, Approve: handoff.ApproveVoice,
			Instructions: handoff.InstructAdded, Limits: top, KeyLimits: top},
	} {
		got := s.Access[i]
		want.Sum = got.Sum
		if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
			t.Errorf("key %d:\n got %+v\nwant %+v", i, got, want)
		}
	}
}

// TestKeyForNumbers: a key with metrics may be one for nothing else. Lists that are left out name all, for it too.
func TestKeyForNumbers(t *testing.T) {
	w := file("keys:\n  - {principal: prometheus, key_env: A, metrics: true, servers: [], tools: []}\n  - {principal: helper, key_env: B, metrics: true}\n")
	w.env = map[string]string{"A": goodKey + "-a", "B": goodKey + "-b"}
	s, err := w.load(t)
	must(t, err)
	if k := s.Access[0]; !k.Metrics || k.Servers == nil || k.Tools == nil || len(k.Servers)+len(k.Tools) > 0 {
		t.Errorf("it may do more than read numbers: %+v", k)
	}
	if k := s.Access[1]; !k.Metrics || k.Servers != nil || k.Tools != nil {
		t.Errorf("without lists: %+v", k)
	}
}

// TestMadeKeysNotWritten: keys that cannot be put into their place leave nothing beside it.
func TestMadeKeysNotWritten(t *testing.T) {
	state := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(state, madeKeysFile, "in the way"), 0o700))
	if err := keysFile(state).write(nil); err == nil {
		t.Fatal("they were written over a directory")
	}
	entries, err := os.ReadDir(state)
	must(t, err)
	if len(entries) != 1 {
		t.Errorf("left are %v", entries)
	}
}

// TestOwnersKeys: a key of the owner approves wherever it comes from, unless it says otherwise.
func TestOwnersKeys(t *testing.T) {
	everything := handoff.Limits{Calls: 4, MinutesPerDay: 240, HandoffsPerMinute: 20}
	made := (&settings{Limits: defaults().Limits}).withMade(nil)
	w := file("keys:\n  - {principal: owner, key_env: A}\n  - {principal: owner, key_env: B, approve: false, instructions: false}\n")
	w.env = map[string]string{"A": goodKey + "-a", "B": goodKey + "-b", ownerKey: goodKey}
	s, err := w.load(t)
	must(t, err)
	for name, tt := range map[string]struct {
		key     web.Key
		may     handoff.Instructing
		approve handoff.Approval
	}{
		"this machine's": {made[0], handoff.InstructAll, handoff.ApproveAll}, "variable": {s.Access[0], handoff.InstructAll, handoff.ApproveAll},
		"file": {s.Access[1], handoff.InstructAll, handoff.ApproveAll}, "file, said otherwise": {s.Access[2], handoff.InstructNone, handoff.ApproveNone},
	} {
		if k := tt.key; k.Principal != ownerName || k.Approve != tt.approve || k.Instructions != tt.may || k.Servers != nil ||
			k.Limits != everything || k.KeyLimits != everything {
			t.Errorf("%s: %+v", name, k)
		}
	}
}

// TestWhichYesCounts: approve is a word, or the true and false of earlier versions. A key that says nothing of it has a
// yes in its calls, unless its tools leave out answer_agent; the owner's, which is no program's, has every yes.
func TestWhichYesCounts(t *testing.T) {
	for entry, want := range map[string]handoff.Approval{
		"principal: me":                                             handoff.ApproveVoice,
		"principal: me, names_callers: true":                        handoff.ApproveVoice,
		"principal: me, tools: [codex, answer_agent]":               handoff.ApproveVoice,
		"principal: me, tools: [codex]":                             handoff.ApproveNone,
		"principal: owner":                                          handoff.ApproveAll,
		"principal: owner, servers: [bigpc]":                        handoff.ApproveAll,
		"principal: owner, names_callers: true":                     handoff.ApproveVoice,
		"principal: owner, tools: [codex, answer_agent]":            handoff.ApproveVoice,
		"principal: owner, tools: [codex]":                          handoff.ApproveNone,
		"principal: owner, approve: none":                           handoff.ApproveNone,
		"principal: owner, approve: voice":                          handoff.ApproveVoice,
		"principal: owner, approve: false":                          handoff.ApproveNone,
		"principal: me, approve: true":                              handoff.ApproveAll,
		"principal: me, approve: 'all'":                             handoff.ApproveAll,
		"principal: me, tools: [codex, answer_agent], approve: all": handoff.ApproveAll,
	} {
		w := file("keys:\n  - {key_env: A, " + entry + "}\n")
		w.env = map[string]string{"A": goodKey}
		s, err := w.load(t)
		if err != nil || s.Access[0].Approve != want {
			t.Errorf("%s: %v, %v; want %s", entry, s, err, want)
		}
	}
}
