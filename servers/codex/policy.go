package codex

import (
	"encoding/json"

	"switchboard/handoff"
)

// A policy is what the turns of a thread may do, in the server's words.
type policy struct {
	sandbox  string // readOnly, workspaceWrite, dangerFullAccess, externalSandbox
	approval string // untrusted, on-request, never; "" for rules instead of a word
}

func policyOf(approval json.RawMessage, sandbox sandboxPolicy) policy {
	p := policy{sandbox: sandbox.Type}
	_ = json.Unmarshal(approval, &p.approval) // rules stay ""
	return p
}

// sandboxes maps the words of thread/start and of the configuration to those of its answer. Set once.
var sandboxes = map[string]string{
	"read-only": "readOnly", "workspace-write": "workspaceWrite", "danger-full-access": "dangerFullAccess",
}

// looseness orders the sandboxes. What is not here cannot be compared and counts as the loosest: an
// external sandbox is whatever somebody else made of it. Set once.
var looseness = map[string]int{"readOnly": 1, "workspaceWrite": 2, "dangerFullAccess": 3}

// differs names the setting that a new thread did not get, or "". A server that cannot give what was
// configured must not be used as if it had.
func (p policy) differs(cfg Config) string {
	switch {
	case cfg.Sandbox != "" && sandboxes[cfg.Sandbox] != p.sandbox:
		return "sandbox"
	case cfg.Approval != "" && cfg.Approval != p.approval:
		return "approval"
	}
	return ""
}

// above reports whether the sandbox is looser than a ceiling; "" is none.
func (p policy) above(ceiling string) bool {
	if ceiling == "" {
		return false
	}
	rank, known := looseness[p.sandbox]
	return !known || rank > looseness[sandboxes[ceiling]]
}

// checkCeiling refuses to run in a thread that may do more than the ceiling. How often it asks is no part
// of the ceiling: the sandbox holds whether somebody is asked or not.
func (c *connection) checkCeiling(p policy) error {
	if !p.above(c.cfg.Ceiling) {
		return nil
	}
	return handoff.Fault(handoff.CodeRefused, c.cfg.Name,
		"ceiling: the session has "+p.String()+", and no more than "+c.cfg.Ceiling+" may run")
}

// String describes a policy for the page.
func (p policy) String() string {
	name := p.sandbox
	for word, wire := range sandboxes {
		if wire == p.sandbox {
			name = word
		}
	}
	if name == "" {
		name = "an unknown sandbox"
	}
	if p.approval == "" {
		return name + " with rules of its own"
	}
	return name + " with approval " + p.approval
}
