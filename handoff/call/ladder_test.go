package call

import (
	"flag"
	"os"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"switchboard/handoff"
	"switchboard/handoff/call/calltest"
	"switchboard/handoff/homes"
	"switchboard/handoff/router"
	"switchboard/handoff/tools"
	"switchboard/handoff/wording"
)

var update = flag.Bool("update", false, "rewrite golden files")

// A ladder is a conversation as a script and the golden record of who said what to whom at which fake
// millisecond. Its archive has a world, a call and the ladder; see [calltest.World] and [world] for the words.

// TestLadders plays every script in a bubble of fake time. An extra round trip, a lost answer or a second
// start is a red diff; -update rewrites the ladders.
func TestLadders(t *testing.T) {
	calltest.Each(t, "testdata/ladders/*.txtar", 10, func(t *testing.T, file string, archive *txtar.Archive) {
		synctest.Test(t, func(t *testing.T) { playFile(t, file, archive) })
	})
}

func playFile(t *testing.T, file string, archive *txtar.Archive) {
	got := play(t, section(archive, "world"), section(archive, "call"))
	if *update {
		for i := range archive.Files {
			if archive.Files[i].Name == "ladder" {
				archive.Files[i].Data = []byte(got)
			}
		}
		if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := gocmp.Diff(section(archive, "ladder"), got); diff != "" {
		t.Errorf("the ladder differs (-want +got):\n%s", diff)
	}
}

func section(a *txtar.Archive, name string) string {
	for _, f := range a.Files {
		if f.Name == name {
			return string(f.Data)
		}
	}
	return ""
}

// play runs a script and returns its ladder. Then, unseen, the process is restarted and the caller calls
// once more: by the end of that nothing may be lost.
func play(t *testing.T, world, script string) string {
	w := newWorld(t, world)
	p := &calltest.Player{World: w.World, NewLife: w.live, Told: w.traceSaid, Promised: w.tracePromise}
	ladder := p.Play(calltest.Lines(script))
	p.Begin("z")
	p.Call(false)
	p.End()
	w.checkTrace()
	return ladder
}

// live is a life of a router with the calls that it serves.
func (w *world) live(life string) (*homes.Homes, calltest.Calls) {
	return service(life, w.Config(life), w, wording.Language(w.Speaks))
}

// service is a life of a router with the calls that it serves in a language, without chance.
func service(
	life string, cfg router.Config, d handoff.Directory, l wording.Language,
) (*homes.Homes, *Calls) {
	cfg.IDs, cfg.Jitter = router.NewIDs(life), func(d time.Duration) time.Duration { return d }
	r := homes.New(cfg)
	trees, _ := d.(tools.Trees)
	return r, New(Config{
		Handoffs: r, Attending: r, Questions: r, Shown: r.Shown, Language: l, AskAgain: cfg.AskAgain, Life: life,
		Tools: tools.Backend{Directory: d, Resolver: cfg.Fleet, Trees: trees, Work: r, Questions: r},
	})
}
