package codex

import (
	"cmp"
	"encoding/json"
	"strings"

	"switchboard/handoff"
	"switchboard/servers/turns"
)

// wireReview: item/autoApprovalReview/completed. In a session with approvalsReviewer auto_review, Codex itself decides
// what a person would be asked. The protocol calls this type unstable: any field may be missing.
type wireReview struct {
	Status    string  `json:"status"`    // approved, denied, timedOut, aborted
	Risk      *string `json:"riskLevel"` // low, medium, high, critical
	Rationale *string `json:"rationale"`
}

// reviewedAct is the act that was reviewed. Each type fills some of the fields.
type reviewedAct struct {
	Type    string   `json:"type"`
	Command string   `json:"command"`
	Argv    []string `json:"argv"`
	Stdin   string   `json:"stdin"`
	Files   []string `json:"files"`
	Target  string   `json:"target"` // of the network
	Server  string   `json:"server"`
	Tool    string   `json:"toolName"`
}

// what describes the act for people.
func (a reviewedAct) what() string {
	return cmp.Or(plainCommand(a.Command), strings.Join(a.Argv, " "), a.Stdin, strings.Join(a.Files, ", "), a.Target,
		strings.TrimSpace(a.Server+" "+a.Tool), a.Type)
}

// reviewed returns a review as an item, which shows that nobody was asked, and the decision. False: it cannot be read.
func reviewed(n *note) (turns.Item, bool) {
	var w wireReview
	if json.Unmarshal(n.Review, &w) != nil || w.Status == "" {
		return turns.Item{}, false
	}
	var act reviewedAct
	_ = json.Unmarshal(n.Action, &act) // unreadable fields stay empty
	text := "Codex's own reviewer came to no decision on this: "
	switch w.Status {
	case "approved":
		text = "Codex's own reviewer allowed this: "
	case "denied":
		text = "Codex's own reviewer refused this: "
	}
	text += handoff.ClipRunes(act.what(), maxLineRunes)
	if w.Risk != nil {
		text += " (risk: " + handoff.ClipRunes(*w.Risk, maxDetail) + ")"
	}
	if w.Rationale != nil && *w.Rationale != "" {
		text += "\n" + *w.Rationale
	}
	return turns.Item{Item: handoff.Item{
		ID: "review " + n.ReviewID, Kind: handoff.ItemReview, Text: handoff.Clip(text, maxText),
		Failed: w.Status != "approved",
	}}, true
}
