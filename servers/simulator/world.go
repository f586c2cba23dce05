package simulator

import (
	"net/http"
	"slices"
	"time"

	"go.uber.org/zap"
)

// Names of the built-in world.
const (
	shopDir  = "/home/me/src/shop"
	notesDir = "/home/me/src/notes"
)

// Config of a [World].
type Config struct {
	Log *zap.Logger // nil: nothing is logged
	// Speed makes everything the agents do so many times faster. 0 is as is.
	Speed float64
	// Script, when set, decides what an agent does for a prompt; nil for what the built-in agent does. It
	// is called by the machine's loop: it must return at once and must not use the world.
	Script func(Prompt) []Step
}

// A Prompt is what an agent is asked.
type Prompt struct {
	Machine string
	Thread  string // id
	Text    string
	Steered bool // added to a turn that was running
}

// A Machine is one simulated machine.
type Machine struct {
	Name     string
	Aliases  []string
	Dir      string            // of new threads
	Projects map[string]string // named directories
	Down     bool              // nothing listens for it, on purpose
}

// A World is a set of simulated machines. What happens on them lasts as long as the world, also while
// nobody serves them.
type World struct {
	log      *zap.Logger // Set once
	machines []*machine  // Set once
}

// NewWorld makes the built-in world. Nothing runs before [World.Serve] or [World.Run].
func NewWorld(c Config) *World {
	w := &World{log: c.Log}
	if w.log == nil {
		w.log = zap.NewNop()
	}
	if c.Speed <= 0 {
		c.Speed = 1
	}
	now := time.Now()
	for _, about := range []Machine{
		{Name: "bigpc", Aliases: []string{"big pc", "the desktop"}, Dir: shopDir, Projects: map[string]string{"shop": shopDir}},
		{Name: "laptop", Dir: notesDir},
		{Name: "attic", Down: true},
	} {
		m := newMachine(about, c, w.log)
		for _, s := range seeds {
			if s.machine == about.Name {
				m.add(s.thread(now))
			}
		}
		w.machines = append(w.machines, m)
	}
	return w
}

// Machines lists the machines.
func (w *World) Machines() []Machine {
	var all []Machine
	for _, m := range w.machines {
		all = append(all, m.about)
	}
	return all
}

// find returns a machine, nil when there is none of that name.
func (w *World) find(name string) *machine {
	i := slices.IndexFunc(w.machines, func(m *machine) bool { return m.about.Name == name })
	if i < 0 {
		return nil
	}
	return w.machines[i]
}

// Handler serves the app-server of a machine: WebSocket on any path, /healthz and /readyz. Somebody must
// run the machine meanwhile ([World.Run]); without that it answers 503. An unknown machine is 404.
func (w *World) Handler(machine string) http.Handler {
	m := w.find(machine)
	if m == nil {
		return http.NotFoundHandler()
	}
	return &front{machine: m}
}

// A seed is a thread that is there from the start. Ids are fixed, so that what was remembered of them
// holds after a restart.
type seed struct {
	machine, id, title, dir, branch string
	old                             time.Duration
	done                            []string
	turns                           []seedTurn
}

type seedTurn struct {
	prompt, command, output, answer string
}

// seeds are the threads of the built-in world, oldest first. Set once.
var seeds = []seed{
	{
		machine: "laptop", id: "01990000-0000-7000-8000-000000000001", title: "Invoice PDF spike", dir: "/home/me/src/invoices", branch: "pdf-spike", old: 4 * 24 * time.Hour,
		done: []string{"tried two ways to make invoices as PDF"},
		turns: []seedTurn{{"try whether we can make the invoices as PDF without a browser", "go run ./spike", "wrote invoice-1001.pdf (38 KB)\n",
			"It works without a browser: one invoice takes 41 milliseconds and 38 kilobytes.\n\nInvoices can be made as PDF without a browser."}},
	},
	{
		machine: "laptop", id: "01990000-0000-7000-8000-000000000002", title: "Release notes 2.4", dir: notesDir, branch: "release-2.4", old: 24 * time.Hour,
		done:  []string{"collected what goes into version 2.4"},
		turns: []seedTurn{{"what goes into the next release?", "git log --oneline v2.3..HEAD", "8d41b07 checkout: remember the address\n5c90e1d auth: refuse expired tokens\n", "Four changes are worth telling; the notes are not written yet.\n\nFour changes go into the next release."}},
	},
	{
		machine: "bigpc", id: "01990000-0000-7000-8000-000000000003", title: "Checkout page polish", dir: shopDir, branch: "checkout-polish", old: 3 * time.Hour,
		done: []string{"aligned the buttons of the checkout page"},
		turns: []seedTurn{
			{"the buttons on the checkout page jump when the price loads", "", "", "The row now keeps its height while the price loads.\n\nThe buttons on the checkout page stay where they are."},
		},
	},
	{
		machine: "bigpc", id: "01990000-0000-7000-8000-000000000004", title: "Auth refactor", dir: shopDir, branch: "auth-refactor", old: 12 * time.Minute,
		done: []string{"moved the token refresh into a package of its own", "renamed Renew to Refresh"},
		turns: []seedTurn{
			{"move the token refresh into its own package", "git mv session/refresh.go internal/auth/refresh.go", "", "The refresh lives in `internal/auth` now and nothing else imports it directly.\n\nThe token refresh has a package of its own."},
			{"call it Refresh instead of Renew", "gofmt -r 'Renew -> Refresh' -l -w .", "internal/auth/refresh.go\nsession/session.go\n", "Renamed in two files.\n\nRenew is called Refresh everywhere now."},
			{"is there a test for expired tokens?", "grep -rn Expired internal/auth", "internal/auth/refresh_test.go:51:func TestRefreshExpiredToken(t *testing.T) {\n", "There is `TestRefreshExpiredToken`; I have not run it since the move.\n\nThere is a test for expired tokens, but it was not run since the move."},
		},
	},
}
