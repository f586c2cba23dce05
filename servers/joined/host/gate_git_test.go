package host

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"switchboard/handoff"
	"switchboard/servers/transport"
	"switchboard/servers/trees"
)

// TestGateOfGit: the service can have the machine make and remove worktrees beside directories that its owner allows,
// unless agents may only read, and nothing else of git.
func TestGateOfGit(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	api, outside := filepath.Join(root, "src", "api"), filepath.Join(root, "other", "api")
	must(t, os.MkdirAll(api, 0o700))
	must(t, os.MkdirAll(outside, 0o700))
	linked := filepath.Join(root, "src", "linked")
	must(t, os.MkdirAll(linked, 0o700))
	must(t, os.Symlink(outside, linked+handoff.WorktreeDirs))
	name := handoff.WorktreeName("fix", "1")
	sent := func(cwd string, args ...string) string {
		return `{"id":1,"method":"` + trees.Method + `","params":` + handoff.Encode(trees.Request{Cwd: cwd, Args: args}) + `}`
	}
	add := func(dir string) string {
		return sent(dir, "worktree", "add", "-b", "switchboard/"+name, dir+handoff.WorktreeDirs+"/"+name)
	}
	src, all := Policy{Dirs: []string{filepath.Join(root, "src")}}, Policy{}
	reads, one := src, Policy{Dirs: []string{api}}
	reads.Ceiling = "read-only"
	for _, row := range []struct {
		judged
		policy Policy
	}{
		{judged{"a list", sent(api, "worktree", "list", "--porcelain"), "", nil}, src},
		{judged{"a list where agents only read", sent(api, "worktree", "list", "--porcelain"), "", nil}, reads},
		{judged{"a worktree", add(api), "", nil}, src},
		{judged{"a worktree without bounds", add(outside), "", nil}, all},
		{judged{"a worktree where agents only read", add(api), "", errReads}, reads},
		{judged{"a removal where agents only read", sent(api, "branch", "-d", "switchboard/"+name), "", errReads}, reads},
		{judged{"a worktree elsewhere", add(outside), "", errElsewhere}, src},
		{judged{"a worktree beside the only directory", add(api), "", errElsewhere}, one},
		{judged{"a worktree behind a link", add(linked), "", errElsewhere}, src},
		{judged{"another command", sent(api, "push"), "", errMethod}, all},
		{judged{"a command by force", sent(api, "branch", "-D", "switchboard/"+name), "", errMethod}, all},
		{judged{"no directory", sent("", "worktree", "list", "--porcelain"), "", errMethod}, all},
		{judged{"a parameter more", `{"id":1,"method":"` + trees.Method + `","params":{"cwd":"/a","args":[],"env":{}}}`, "", errMethod}, all},
	} {
		for _, kind := range []string{kindCodex, kindACP} {
			m, err := newGate(row.policy, Setting{Kind: kind}).fromService([]byte(row.sent))
			if err != row.why || err == nil && m.method != trees.Method {
				t.Errorf("%s, %s: %v, wanted %v", row.name, kind, err, row.why)
			}
		}
	}
	apart := newGate(all, Setting{Kind: kindACP})
	apart.apart = true
	if _, err := apart.fromService([]byte(add(api))); err != errMethod {
		t.Errorf("a connection that only reads: %v", err)
	}
}

// TestGateRunsGit: the machine itself runs git, and its agent gets nothing of that.
func TestGateRunsGit(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "api")
	for _, args := range [][]string{{"init", "-q", dir}, {"-C", dir, "-c", "user.name=Ann", "-c", "user.email=a@b", "commit",
		"-q", "--allow-empty", "-m", "begin"}} {
		must(t, exec.CommandContext(t.Context(), "git", args...).Run())
	}
	for _, kind := range []string{kindCodex, kindACP} {
		e := newEnds(t, kind)
		name := handoff.WorktreeName("fix", kind)
		root := dir + handoff.WorktreeDirs + "/" + name
		e.service.say(t, `{"id":7,"method":"`+trees.Method+`","params":`+handoff.Encode(trees.Request{
			Cwd: dir, Args: []string{"worktree", "add", "-b", "switchboard/" + name, root}})+`}`)
		if got := <-e.service.got; !strings.Contains(got, `"id":7`) || !strings.Contains(got, `"exit":0`) {
			t.Errorf("%s: answered %s", kind, got)
		}
		if _, err := os.Stat(root); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
		must(t, e.service.Close())
		if got := <-e.agent.got; got != "" {
			t.Errorf("%s: the agent got %s", kind, got)
		}
	}
}

// TestGateKeepsOneRefusal: where git is busy and the service reads nothing, the gate reads no more of its requests than
// the one that it refuses.
func TestGateKeepsOneRefusal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		g := newGate(Policy{}, Setting{Kind: kindACP})
		for range maxGits {
			g.gits <- struct{}{}
		}
		conn := through(transport.LinesOver(near), g)
		service, sent := transport.LinesOver(conn), 0
		go func() {
			for ; sent < 100; sent++ {
				request := fmt.Appendf(nil, `{"id":%d,"method":%q,"params":{"cwd":"/src","args":["worktree","list","--porcelain"]}}`,
					sent, trees.Method)
				if service.Write(request) != nil {
					return
				}
			}
		}()
		synctest.Wait()
		if sent > 1 {
			t.Errorf("%d requests were read", sent)
		}
		if got, err := service.Read(); err != nil || !strings.Contains(string(got), errGits.Error()) {
			t.Errorf("answered %s, %v", got, err)
		}
		must(t, errors.Join(service.Close(), far.Close()))
	})
}
