package codex

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"switchboard/handoff"
)

// needed is the oldest version that was tried. Older ones shake hands as well: 0.140 does not know thread/items/list
// and recency_at, 0.145 reports no commands.
var needed = [2]int{0, 150}

// checkVersion refuses a server that is too old. What tells no version, or 0.0 as a build of one's own does, is taken
// as it is.
func checkVersion(server, version string) error {
	major, rest, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	end := strings.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' }) // a dot, or a dash before "alpha"
	if end < 0 {
		end = len(rest)
	}
	found := make([]int, 0, len(needed))
	for _, part := range []string{major, rest[:end]} {
		n, err := strconv.Atoi(part)
		if err != nil {
			return nil
		}
		found = append(found, n)
	}
	if slices.Compare(found, needed[:]) >= 0 || slices.Compare(found, []int{0, 0}) == 0 {
		return nil
	}
	runs := fmt.Sprintf("runs codex %d.%d; %d.%d is needed", found[0], found[1], needed[0], needed[1])
	return handoff.Fault(handoff.CodeOutdated, server+" "+runs, "it "+runs)
}

// serverVersion reads "0.169.0" out of "switchboard/0.169.0 (Debian 12.0.0; x86_64) …".
func serverVersion(userAgent string) string {
	_, rest, ok := strings.Cut(userAgent, "/")
	if !ok {
		return ""
	}
	version, _, _ := strings.Cut(rest, " ")
	return handoff.ClipRunes(version, titleRunes)
}
