package host

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
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
	live.Battery, live.Charging = battery("/sys/class/power_supply")
	return live
}

// battery reads what Linux tells of a battery, in percent; 0: there is none, or another system.
func battery(supplies string) (percent int, charging bool) {
	found, err := filepath.Glob(filepath.Join(supplies, "BAT*", "capacity"))
	if err != nil || len(found) == 0 {
		return 0, false
	}
	text, err := os.ReadFile(found[0])
	if err != nil {
		return 0, false
	}
	percent, err = strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || percent < 0 || percent > 100 {
		return 0, false
	}
	status, err := os.ReadFile(filepath.Join(filepath.Dir(found[0]), "status"))
	return percent, err == nil && strings.TrimSpace(string(status)) != "Discharging"
}
