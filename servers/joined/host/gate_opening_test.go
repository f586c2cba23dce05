package host

import (
	"fmt"
	"strings"
	"testing"
)

// TestGateOfOpening: the mode of a session that was opened is what the answer to that says, whatever else the service
// and the agent said meanwhile or before.
func TestGateOfOpening(t *testing.T) {
	t.Parallel()
	const (
		plan    = `{"id":1,"method":"session/set_mode","params":{"sessionId":"s","modeId":"plan"}}`
		planned = `{"id":1,"result":{}}`
		load    = `{"id":2,"method":"session/load","params":{"sessionId":"s","cwd":"/","mcpServers":[]}}`
		auto    = `{"id":2,"result":{"modes":{"currentModeId":"auto"}}}`
		resume  = `{"id":3,"method":"session/resume","params":{"sessionId":"s","cwd":"/","mcpServers":[]}}`
		asks    = `{"id":3,"result":{"modes":{"currentModeId":"default"}}}`
		update  = `{"method":"session/update","params":{"sessionId":"s","update":{"currentModeId":"plan"}}}`
	)
	for name, row := range map[string]struct {
		steps []string // of the agent if they are answers or updates
		want  error    // of work then
	}{
		"a mode before":                         {[]string{plan, load, planned}, errLooser},
		"a mode before, answered after":         {[]string{plan, load, auto, planned}, errLooser},
		"a mode meanwhile":                      {[]string{load, plan, planned}, errLooser},
		"a mode meanwhile, answered after":      {[]string{load, plan, auto, planned}, errLooser},
		"an update meanwhile":                   {[]string{load, update}, errLooser},
		"one of two openings":                   {[]string{load, resume, asks}, errLooser},
		"both, and the last one asks":           {[]string{load, resume, auto, asks}, nil},
		"a mode afterwards":                     {[]string{load, auto, plan, planned}, nil},
		"an update afterwards":                  {[]string{load, auto, update}, nil},
		"a mode after an opening that failed":   {[]string{load, `{"id":2,"error":{"message":"m"}}`, plan, planned}, nil},
		"nothing after an opening that failed":  {[]string{load, `{"id":2,"error":{"message":"m"}}`}, errLooser},
		"a mode before an opening of another s": {[]string{plan, strings.Replace(load, `"s"`, `"x"`, 1), planned}, nil},
	} {
		g := acpGate(Policy{Ceiling: "workspace-write"}, "/")
		for _, step := range row.steps {
			if strings.Contains(step, `"id"`) && strings.Contains(step, `"method"`) {
				_, err := g.fromService([]byte(step))
				must(t, err)
			} else {
				g.hears(step)
			}
		}
		prompt := []byte(`{"id":4,"method":"session/prompt","params":{"sessionId":"s","prompt":[]}}`)
		if _, err := g.fromService(prompt); err != row.want {
			t.Errorf("%s: %v, want %v", name, err, row.want)
		}
	}
	g := codexGate(Policy{Ceiling: "workspace-write"})
	g.opens(t, "t", "/", "workspaceWrite")
	for id, want := range []error{nil, errLooser} { // it may be loaded anew, with another sandbox
		if want != nil {
			_, err := g.fromService([]byte(`{"id":2,"method":"thread/resume","params":{"threadId":"t"}}`))
			must(t, err)
		}
		turn := fmt.Appendf(nil, `{"id":%d,"method":"turn/start","params":{"threadId":"t","input":[]}}`, 10+id)
		if _, err := g.fromService(turn); err != want {
			t.Errorf("work in a thread: %v, want %v", err, want)
		}
	}
}
