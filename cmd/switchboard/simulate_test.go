package main

import (
	"fmt"
	"strings"
	"testing"

	"switchboard/sessions/sessionstest"
)

// TestSimulate: the simulators run alone, and what they print is a configuration that finds them.
func TestSimulate(t *testing.T) {
	port := sessionstest.FreePort(t)
	sims := runProgram(t, map[string]string{}, "simulate", "--speed", "50")
	until(t, "the simulators", func() bool { return strings.Contains(sims.out.String(), "attic") })
	s, err := file(sims.out.String()).load(t)
	if err != nil {
		t.Fatalf("%v in %s", err, sims.out.String())
	}
	sh := openShell(t, func(p *plan) {
		p.Model = modelSettings{URL: s.Model.URL, Name: s.Model.Name}
		p.Servers = s.Servers
	})
	sh.wants(0, []string{"One test fails"}, "handoff", "bigpc", "--thread", "auth", "run the tests")
	sims.end()
	if code, text := sims.exit(t); code != 0 {
		t.Errorf("it ended with %d: %s", code, text)
	}
	fixed := runProgram(t, map[string]string{}, "simulate", "--port", fmt.Sprint(port))
	until(t, "the simulators, or a port that was taken meanwhile", func() bool {
		return strings.Contains(fixed.out.String(), fmt.Sprintf("127.0.0.1:%d/v1/realtime", port)) || strings.Contains(fixed.err.String(), "cannot listen")
	})
	if code, text := runProgram(t, map[string]string{}, "simulate", "--speed", "0").exit(t); code != exitSettings || !strings.Contains(text, "above 0") {
		t.Errorf("%d %s", code, text)
	}
}
