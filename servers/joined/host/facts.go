package host

import (
	"os"
	"syscall"

	"switchboard/servers/joined"
)

// live is what changes while the machine is up.
func (a *agents) live() joined.Live {
	var live joined.Live
	dir := a.cfg.Dir
	if len(a.cfg.Policy.Dirs) > 0 {
		dir = a.cfg.Policy.Dirs[0]
	} else if home, err := os.UserHomeDir(); err == nil {
		dir = home
	}
	var disk syscall.Statfs_t
	if err := syscall.Statfs(dir, &disk); err == nil {
		const step = 1 << 30 // less changes nothing for anybody
		live.DiskFree = int64(disk.Bavail) * int64(disk.Bsize) / step * step
	}
	return live
}
