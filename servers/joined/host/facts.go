package host

import (
	"cmp"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"switchboard/servers/joined"
)

// live returns the facts about the machine that change while it is up.
func (a *agents) live() joined.Live {
	var live joined.Live
	var disk syscall.Statfs_t
	if err := syscall.Statfs(cmp.Or(a.cfg.Policy.cwd(), a.cfg.Dir), &disk); err == nil {
		const step = 1 << 30 // rounded down to GiB, so that small changes are not sent
		live.DiskFree = int64(disk.Bavail) * int64(disk.Bsize) / step * step
	}
	live.Battery, live.Charging = battery("/sys/class/power_supply")
	return live
}

// battery reads the charge of a battery, in percent, from Linux's directory of power supplies. It is 0 where there is
// no battery, and on other systems.
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
