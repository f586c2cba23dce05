package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// groups is where control groups are. Set once, but for tests.
var groups = "/sys/fs/cgroup"

// groupParent is the directory beside the control group of this process in which it may make others that bound memory
// and processes; "" where there is none, as without a delegation.
func groupParent(own string) string {
	var at string
	for line := range strings.Lines(own) { // of /proc/self/cgroup
		if path, ok := strings.CutPrefix(line, "0::"); ok {
			at = filepath.Join(groups, filepath.Dir(strings.TrimSpace(path)))
		}
	}
	given, err := os.ReadFile(filepath.Join(at, "cgroup.subtree_control"))
	has := strings.Fields(string(given))
	if at == "" || err != nil || !slices.Contains(has, "memory") || !slices.Contains(has, "pids") {
		return ""
	}
	// no process may be brought from one to the other
	if unix.Access(filepath.Join(at, "cgroup.procs"), unix.W_OK) != nil {
		return ""
	}
	return at
}

// openGroup opens a control group of a name with limits, which is made when it is not there; nil where none can be
// made.
func openGroup(parent, name string, l Limits) *os.File {
	if parent == "" {
		return nil
	}
	dir := filepath.Join(parent, name)
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil
	}
	for file, value := range map[string]string{
		"memory.max": strconv.FormatInt(l.Memory, 10), "memory.oom.group": "1", "pids.max": strconv.Itoa(l.Processes),
	} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(value), 0o644); err != nil {
			_ = os.Remove(dir)
			return nil
		}
	}
	group, err := os.Open(dir)
	if err != nil {
		return nil
	}
	return group
}

// outOfMemory reports whether the kernel ended the processes of a control group because they used too much memory.
// group may be nil.
func outOfMemory(group *os.File) bool {
	if group == nil {
		return false
	}
	events, _ := os.ReadFile(filepath.Join(group.Name(), "memory.events"))
	for line := range strings.Lines(string(events)) {
		if times, ok := strings.CutPrefix(line, "oom_kill "); ok {
			return strings.TrimSpace(times) != "0"
		}
	}
	return false
}
