package handoff

import "time"

// A Machine is what people who look after a server want to know of it, beside [ServerInfo]. Empty words are the
// server's own settings, or not known.
type Machine struct {
	Name string `json:"name"`
	// Address is where it is reached, or the program that is its child, without secrets.
	Address        string    `json:"address,omitempty"`
	Start          string    `json:"start,omitempty"`     // the command that starts its agent server, to be typed there
	Directory      string    `json:"directory,omitempty"` // of new sessions
	Model          string    `json:"model,omitempty"`     // of new sessions
	Sandbox        string    `json:"sandbox,omitempty"`   // of new sessions
	Approval       string    `json:"approval,omitempty"`  // of new sessions
	Ceiling        string    `json:"ceiling,omitempty"`   // the loosest sandbox that may run
	VoiceApprovals string    `json:"voice_approvals"`     // the riskiest that may be allowed by voice: none, low or medium
	Archives       bool      `json:"archives,omitempty"`  // sessions can be put away there; known while it is up
	Seen           time.Time `json:"seen,omitzero"`       // when it was last there; now while it is up
	NextTry        time.Time `json:"next_try,omitzero"`   // while it is down: when it is looked for again
}
