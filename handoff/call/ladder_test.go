package call

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
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
// millisecond. Its archive has a world, a call and the ladder; see ladder_world_test.go for the words.

// TestLadders plays every script in a bubble of fake time. An extra round trip, a lost answer or a second
// start is a red diff; -update rewrites the ladders.
func TestLadders(t *testing.T) {
	files, err := filepath.Glob("testdata/ladders/*.txtar")
	if err != nil || len(files) < 10 {
		t.Fatalf("found %d ladders, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			synctest.Test(t, func(t *testing.T) { playFile(t, file, archive) })
		})
	}
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
	p := &player{Player: calltest.Player{World: w.World, Record: w.record, Said: w.traceSaid, Vows: w.tracePromise},
		world: w}
	p.process()
	p.live("h")
	for _, line := range calltest.Lines(script) {
		p.perform(line)
	}
	p.end()
	p.world.record("end", "", p.Summary())
	p.world.record("end", "", "ledger: "+p.world.inLedger())
	ladder := p.world.ladder()
	p.process()
	p.live("z")
	p.Call(false)
	p.end()
	p.world.checkTrace()
	return ladder
}

// service is a life of a router with the calls that it serves in a language, without chance.
func service(
	life string, cfg router.Config, d handoff.Directory, l wording.Language,
) (*homes.Homes, *Calls) {
	cfg.IDs, cfg.Jitter = router.NewIDs(life), func(d time.Duration) time.Duration { return d }
	r := homes.New(cfg)
	return r, New(Config{
		Runs: r, Attending: r, Questions: r, Shown: r.Shown, Language: l, AskAgain: cfg.AskAgain, Life: life,
		Tools: tools.Backend{Directory: d, Resolver: cfg.Fleet, Work: r, Questions: r},
	})
}

// A player performs the lines of a script: besides those of every ladder, those about the process.
type player struct {
	calltest.Player
	world    *world
	ctx      context.Context // of the process
	shutdown func()
	move     func() // ends the home of the caller, who gets another one
}

// process begins a life of the process, without a router so far.
func (p *player) process() {
	ctx, end := context.WithCancelCause(p.world.T.Context())
	p.ctx, p.shutdown, p.move = ctx, func() { end(nil) }, func() { end(router.ErrMoved) }
}

// live begins a life of the router. A former one may go on, like a process that was paused.
func (p *player) live(name string) {
	w := p.world
	r, calls := service(name, router.Config{Fleet: w, Stickies: w, Ledger: w.ledger, Notifier: w, Auditor: w,
		Patience: w.Patience}, w, wording.Language(w.Speaks))
	p.Router, p.Serve = r, calls.Serve
	ctx := p.ctx
	p.Work.Go(func() { _ = r.Run(ctx) })
}

// end lets whatever is under way end, then hangs up and ends the process.
func (p *player) end() {
	p.End()
	synctest.Wait()
	p.shutdown()
	p.Work.Wait()
}

func (p *player) perform(line string) {
	verb, rest := p.Next(line)
	switch verb {
	case "life":
		p.Record("call", "process", "another life begins")
		p.live(rest)
	case "left":
		p.world.ledger.Leave(strings.Fields(rest))
	case "join":
		p.world.Join(rest)
	case "restart":
		p.restart(rest)
	case "shutdown":
		p.Record("call", "process", "ends")
		p.world.closing.Store(true)
		p.shutdown()
	case "move":
		p.Record("call", "process", "gives the caller another home")
		p.move()
		synctest.Wait()
		p.process()
		p.live(rest)
	case "page":
		p.shows()
	case "looks": // at the page, which shows what is open
		l, _, _ := p.Router.Feed(calltest.Grant).Listen(0)
		p.world.T.Cleanup(l.Stop)
		p.Record("page", "caller", "looks at it")
	default:
		p.Perform(verb, rest)
	}
}

// shows records what the page shows of work.
func (p *player) shows() {
	all, _ := p.Router.Handoffs(calltest.Grant)
	for _, rec := range slices.Backward(all) {
		if rec.Waits != "" {
			p.Record("page", rec.ID+" waits", string(rec.State)+" after "+rec.Waits)
		}
		for _, it := range rec.Items {
			p.Record("page", rec.ID+" shows", fmt.Sprintf("%s %q %s", it.Kind, it.Text, it.State))
		}
	}
}

// A rung is one line of a ladder.
type rung struct {
	at     time.Duration
	column string
	who    string
	index  int
	text   string
}

// columnOrder sorts rungs of one millisecond: what comes in, what is asked of the fleet, what goes out; in
// a column, those of one agent or request stay together, in their order.
var columnOrder = []string{"call", "page", "store", "agent", "say", "end"}

func sortRungs(rungs []rung) {
	slices.SortFunc(rungs, func(a, b rung) int {
		return cmp.Or(cmp.Compare(a.at, b.at),
			cmp.Compare(slices.Index(columnOrder, a.column), slices.Index(columnOrder, b.column)), cmp.Compare(a.who,
				b.who), cmp.Compare(a.index, b.index))
	})
}
