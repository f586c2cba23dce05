package host

import (
	"context"
	"net"
	"slices"
	"strings"
	"time"
)

// networkEvery is how often the addresses of this machine are looked at.
const networkEvery = 2 * time.Second

// asleepFor is how far the wall clock must run ahead of the monotonic clock for the machine to have slept.
const asleepFor = 10 * time.Second

// watchNetwork puts a token into moved when the machine's addresses changed, and when the machine slept: then a line
// may be dead without a sign, or can be opened again. It never blocks on moved.
func watchNetwork(ctx context.Context, moved chan<- struct{}) {
	tick := time.NewTicker(networkEvery)
	defer tick.Stop()
	last, at := addresses(), time.Now()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		now := time.Now()
		slept := now.Round(0).Sub(at.Round(0))-now.Sub(at) > asleepFor // wall clock against monotonic clock
		if is := addresses(); is != last || slept {
			last = is
			select {
			case moved <- struct{}{}:
			default: // a token is there already
			}
		}
		at = now
	}
}

// addresses returns the addresses of this machine in one string.
func addresses() string {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return ""
	}
	var texts []string
	for _, a := range all {
		texts = append(texts, a.String())
	}
	slices.Sort(texts)
	return strings.Join(texts, " ")
}
