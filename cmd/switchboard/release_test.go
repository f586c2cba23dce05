package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"switchboard/servers/serverstest"
)

// TestRelease: two copies of the sources make the same archive, whose sum is listed. Its program tells the version.
func TestRelease(t *testing.T) {
	t.Parallel()
	copied := t.TempDir()
	for _, name := range []string{".ci", "README.md", "go.mod", "go.sum", "cmd", "handoff", "realtime", "servers", "sessions", "web"} {
		copyTree(t, filepath.Join(house, name), filepath.Join(copied, name))
	}
	name := "switchboard-v1.2.3-" + runtime.GOOS + "-" + runtime.GOARCH
	archive := release(t, house, name)
	if again := release(t, copied, name); !bytes.Equal(archive, again) {
		t.Errorf("two builds of the same sources differ: %d and %d bytes", len(archive), len(again))
	}
	unpacked, err := gzip.NewReader(bytes.NewReader(archive))
	must(t, err)
	entries := tar.NewReader(unpacked)
	binary := filepath.Join(t.TempDir(), "switchboard")
	var names []string
	for {
		entry, err := entries.Next()
		if err == io.EOF {
			break
		}
		must(t, err)
		names = append(names, strings.TrimPrefix(entry.Name, name+"/"))
		data, err := io.ReadAll(entries)
		must(t, err)
		if strings.HasSuffix(entry.Name, "/switchboard") {
			serverstest.WriteProgram(t, binary, data)
			if entry.Mode != 0o755 {
				t.Errorf("the program has mode %o", entry.Mode)
			}
		}
		if strings.HasSuffix(entry.Name, "/LICENSES.txt") && !bytes.Contains(data, []byte("==== github.com/pion/webrtc/v4 ")) {
			t.Error("the license of a library is missing")
		}
	}
	if got := strings.Join(names, " "); got != "switchboard README.md LICENSES.txt" {
		t.Errorf("the archive holds %s", got)
	}
	out, err := exec.Command(binary, "--version").CombinedOutput()
	if want := "switchboard v1.2.3 abc123, " + runtime.Version(); err != nil || strings.TrimSpace(string(out)) != want {
		t.Errorf("--version: %v %q, want %q", err, out, want)
	}
}

// release makes the release of this machine's platform in a copy of the sources, and returns its archive.
func release(t *testing.T, sources, name string) []byte {
	t.Helper()
	out := t.TempDir()
	cmd := exec.Command("go", "run", "./.ci/release", "-version", "v1.2.3", "-revision", "abc123", "-out", out,
		runtime.GOOS+"/"+runtime.GOARCH)
	cmd.Dir, cmd.Stdout, cmd.Stderr = sources, t.Output(), t.Output()
	must(t, cmd.Run())
	archive, err := os.ReadFile(filepath.Join(out, name+".tar.gz"))
	must(t, err)
	sums, err := os.ReadFile(filepath.Join(out, "SHA256SUMS"))
	must(t, err)
	if want := fmt.Sprintf("%x  %s.tar.gz\n", sha256.Sum256(archive), name); string(sums) != want {
		t.Errorf("SHA256SUMS has %q, want %q", sums, want)
	}
	return archive
}
