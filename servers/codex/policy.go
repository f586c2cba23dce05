package codex

import "encoding/json"

// Policies from strict to loose. A word that is not here cannot be compared.
var (
	sandboxRank   = map[string]int{"read-only": 1, "readOnly": 1, "workspace-write": 2, "workspaceWrite": 2, "danger-full-access": 3, "dangerFullAccess": 3}
	approvalsRank = map[string]int{"untrusted": 1, "on-request": 2, "never": 3}
)

// looser reports whether a new thread may do more than was configured. A server may tighten a policy;
// nothing may loosen it.
func looser(r *threadResult, cfg Config) bool {
	var approval string // rules instead of a word stay ""
	_ = json.Unmarshal(r.ApprovalPolicy, &approval)
	return above(sandboxRank, r.Sandbox.Type, cfg.Sandbox) || above(approvalsRank, approval, cfg.Approval)
}

func above(rank map[string]int, effective, configured string) bool {
	e, c := rank[effective], rank[configured]
	return e != 0 && c != 0 && e > c
}
