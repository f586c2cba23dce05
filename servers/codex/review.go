package codex

import (
	"cmp"
	"encoding/json"
	"strings"

	"switchboard/handoff"
	"switchboard/servers/turns"
)

// wireReview: item/autoApprovalReview/completed. Where a session has approvalsReviewer auto_review, Codex decides by
// itself what would else be asked of a person. The protocol calls this shape unstable: what is not there is left out.
type wireReview struct {
	Status    string  `json:"status"`    // approved, denied, timedOut, aborted
	Risk      *string `json:"riskLevel"` // low, medium, high, critical
	Rationale *string `json:"rationale"`
}

// reviewedAct is what was reviewed. Each type fills some of it.
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

// what names the act to people.
func (a reviewedAct) what() string {
	return cmp.Or(plainCommand(a.Command), strings.Join(a.Argv, " "), a.Stdin, strings.Join(a.Files, ", "), a.Target,
		strings.TrimSpace(a.Server+" "+a.Tool), a.Type)
}

// reviewed is what people see of a review: that nobody was asked, and what was decided. False: it cannot be read.
func reviewed(n *note) (turns.Item, bool) {
	var w wireReview
	if json.Unmarshal(n.Review, &w) != nil || w.Status == "" {
		return turns.Item{}, false
	}
	var act reviewedAct
	_ = json.Unmarshal(n.Action, &act) // as much as can be read is told
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
