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

// groups is the mount point of control groups. Set once, except by tests.
var groups = "/sys/fs/cgroup"

// groupParent returns the parent of this process's control group, if groups that bound memory and processes can be
// made there; "" if not, as without a delegation. own is the text of /proc/self/cgroup.
func groupParent(own string) string {
	var at string
	for line := range strings.Lines(own) {
		if path, ok := strings.CutPrefix(line, "0::"); ok {
			at = filepath.Join(groups, filepath.Dir(strings.TrimSpace(path)))
		}
	}
	data, err := os.ReadFile(filepath.Join(at, "cgroup.subtree_control"))
	controllers := strings.Fields(string(data))
	if at == "" || err != nil || !slices.Contains(controllers, "memory") || !slices.Contains(controllers, "pids") {
		return ""
	}
	// Without write access no process can be moved to the new group.
	if unix.Access(filepath.Join(at, "cgroup.procs"), unix.W_OK) != nil {
		return ""
	}
	return at
}

// openGroup opens a control group with limits, and makes it if it is missing; nil if that is not possible.
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

// outOfMemory reports whether the kernel killed the processes of a control group for using too much memory. group may
// be nil.
func outOfMemory(group *os.File) bool {
	if group == nil {
		return false
	}
	events, _ := os.ReadFile(filepath.Join(group.Name(), "memory.events"))
	for line := range strings.Lines(string(events)) {
		if count, ok := strings.CutPrefix(line, "oom_kill "); ok {
			return strings.TrimSpace(count) != "0"
		}
	}
	return false
}
