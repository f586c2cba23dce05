package codex

import (
	"cmp"
	"encoding/json"
	"slices"

	"switchboard/handoff"
)

// A policy says what the turns of a thread may do, in the words of the protocol.
type policy struct {
	sandbox  string // readOnly, workspaceWrite, dangerFullAccess, externalSandbox
	approval string // untrusted, on-request, never; "" for rules instead of a word
}

func policyOf(approval json.RawMessage, sandbox sandboxPolicy) policy {
	p := policy{sandbox: sandbox.Type}
	_ = json.Unmarshal(approval, &p.approval) // rules stay ""
	return p
}

// sandboxes maps the names of sandboxes in thread/start and in the configuration to those in answers. Set once.
var sandboxes = map[string]string{
	"read-only": "readOnly", "workspace-write": "workspaceWrite", "danger-full-access": "dangerFullAccess",
}

// newSandbox returns the sandbox of new threads: the configured one, or that of the ceiling; "": the server's own.
func (cfg *Config) newSandbox() string {
	if cfg.Ceiling == "danger-full-access" { // it bounds nothing
		return cfg.Sandbox
	}
	return cmp.Or(cfg.Sandbox, cfg.Ceiling)
}

// differs returns the name of a configured setting that a new thread did not get, or "". A thread that did not get
// what is configured must not be used.
func (p policy) differs(cfg Config) string {
	switch {
	case cfg.Sandbox != "" && sandboxes[cfg.Sandbox] != p.sandbox:
		return "sandbox"
	case cfg.Approval != "" && cfg.Approval != p.approval:
		return "approval"
	}
	return ""
}

// above reports whether the sandbox is looser than a ceiling. "": there is no ceiling. An unknown sandbox counts as the
// loosest: an external one may allow anything.
func (p policy) above(ceiling string) bool {
	if ceiling == "" {
		return false
	}
	rank := slices.IndexFunc(strictFirst, func(name string) bool { return sandboxes[name] == p.sandbox })
	return rank < 0 || rank > slices.Index(strictFirst, ceiling)
}

// checkCeiling returns an error for a thread that may do more than the ceiling. The ceiling is about sandboxes only,
// not about approval: a sandbox holds whether somebody is asked or not.
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
