package main

import (
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// npmFile is the path of a file that npm installed.
func npmFile(t testing.TB, name string) string {
	t.Helper()
	path, err := filepath.Abs("../../.tools/node_modules/" + name)
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		t.Fatalf("%v (make test installs it into .tools)", err)
	}
	return path
}

// modernNode is the path of a Node that MCP's own programs run on, which Debian's is too old for.
func modernNode(t *testing.T) string {
	t.Helper()
	arch := map[string]string{"amd64": "x64"}[runtime.GOARCH]
	if arch == "" {
		arch = runtime.GOARCH
	}
	return npmFile(t, "node-linux-"+arch+"/bin/node")
}

// TestMCPConformance: the protocol's own test suite, which sends no key, passes what is not about tools, prompts and
// resources of its own that a server has only for it.
func TestMCPConformance(t *testing.T) {
	t.Parallel()
	r := start(t, nil)
	at, err := url.Parse(r.base)
	must(t, err)
	keyed := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) {
		p.SetURL(at)
		p.Out.Host = p.In.Host // the suite tries foreign ones
		p.Out.Header.Set("Authorization", "Bearer "+testKey)
	}, FlushInterval: -1})
	t.Cleanup(keyed.Close)
	for _, scenario := range []string{"server-initialize", "tools-list", "server-sse-multiple-streams"} {
		cmd := exec.CommandContext(t.Context(), modernNode(t), npmFile(t, "@modelcontextprotocol/conformance/dist/index.js"),
			"server", "--url", keyed.URL+"/mcp", "--scenario", scenario)
		cmd.Dir = t.TempDir() // it writes its findings beside it
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "0 failed") {
			t.Errorf("%s: %v\n%s", scenario, err, out)
		}
	}
}
