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

// asleepFor is by how much the clock on the wall must run ahead for the machine to have slept.
const asleepFor = 10 * time.Second

// watchNetwork says that the machine has other addresses than before, or that it slept: then a line may be dead without
// a sign, or can be opened again. It never waits for whoever hears it.
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
			default: // it is known
			}
		}
		at = now
	}
}

// addresses are those of this machine, in one text.
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
