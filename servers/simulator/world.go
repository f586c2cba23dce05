package simulator

import (
	"slices"
	"time"

	"go.uber.org/zap"
)

// Directories of the built-in world.
const (
	shopDir  = "/home/me/src/shop"
	notesDir = "/home/me/src/notes"
)

// Config configures a [World].
type Config struct {
	Log *zap.Logger // nil: nothing is logged
	// Speed divides the delays of the agents; 0 is 1.
	Speed float64
	// Story lets attic run until it is given work. Without it attic never listens.
	Story bool
	// Script, if set, returns the steps of an agent for a prompt; nil steps leave them to the built-in agent. It is
	// called with mu of the machine held: it must return at once and must not use the world.
	Script func(Prompt) []Step
}

// A Prompt is an input of an agent.
type Prompt struct {
	Text    string
	Steered bool   // it steers a running turn
	Known   []Step // what the built-in agent would do
}

// A Machine is one simulated machine.
type Machine struct {
	Name     string
	Aliases  []string
	Dir      string            // directory of new threads
	Projects map[string]string // named directories
	Down     bool              // it never listens
	Leaves   bool              // it is lost for good when it is given work, which it never begins
}

// A World is a set of simulated machines. Their state lasts as long as the world, also while nobody serves them.
type World struct {
	machines []*machine // Set once
}

// NewWorld returns the built-in world. Nothing runs before [World.Serve].
func NewWorld(c Config) *World {
	w := &World{}
	if c.Log == nil {
		c.Log = zap.NewNop()
	}
	if c.Speed <= 0 {
		c.Speed = 1
	}
	now := time.Now()
	for _, about := range []Machine{
		{Name: "bigpc", Aliases: []string{"big pc", "the desktop"}, Dir: shopDir,
			Projects: map[string]string{"shop": shopDir}},
		{Name: "laptop", Dir: notesDir},
		{Name: "attic", Down: !c.Story, Leaves: c.Story},
	} {
		m := newMachine(about, c)
		for _, s := range seeds {
			if s.Machine == about.Name {
				m.add(s.thread(now))
			}
		}
		w.machines = append(w.machines, m)
	}
	return w
}

// Machines returns the machines.
func (w *World) Machines() []Machine {
	var all []Machine
	for _, m := range w.machines {
		all = append(all, m.about)
	}
	return all
}

// find returns the machine with a name, nil for none.
func (w *World) find(name string) *machine {
	i := slices.IndexFunc(w.machines, func(m *machine) bool { return m.about.Name == name })
	if i < 0 {
		return nil
	}
	return w.machines[i]
}

// A Seed is a thread that exists from the start. Its id is fixed, so that clients may remember it across restarts.
type Seed struct {
	Machine, ID, Title, Dir, Branch string
	Old                             time.Duration // time since its newest turn
	Done                            []string      // what it did, such as "fixed ..."
	Exec                            bool          // made by codex exec
	Turns                           []SeedTurn
}

// A SeedTurn is a turn of a [Seed]. Command may be "".
type SeedTurn struct {
	Prompt, Command, Output, Answer string
}

// Seeds returns the threads that a machine of the built-in world has from the start, oldest first.
func Seeds(machine string) []Seed {
	return slices.DeleteFunc(slices.Clone(seeds), func(s Seed) bool { return s.Machine != machine })
}

// seeds are the threads of the built-in world, oldest first. Set once.
var seeds = []Seed{
	{
		Machine: "laptop", ID: "01990000-0000-7000-8000-000000000001", Title: "Invoice PDF spike",
		Dir: "/home/me/src/invoices", Branch: "pdf-spike", Old: 4 * 24 * time.Hour, Exec: true,
		Done: []string{"tried two ways to make invoices as PDF"},
		Turns: []SeedTurn{{"try whether we can make the invoices as PDF without a browser", "go run ./spike",
			"wrote invoice-1001.pdf (38 KB)\n",
			"It works without a browser: one invoice takes 41 milliseconds and 38 kilobytes.\n\nInvoices can be made as PDF " +
				"without a browser."}},
	},
	{
		Machine: "laptop", ID: "01990000-0000-7000-8000-000000000002", Title: "Release notes 2.4", Dir: notesDir,
		Branch: "release-2.4", Old: 24 * time.Hour,
		Done: []string{"collected what goes into version 2.4"},
		Turns: []SeedTurn{{"what goes into the next release?", "git log --oneline v2.3..HEAD",
			"8d41b07 checkout: remember the address\n5c90e1d auth: refuse expired tokens\n",
			"Four changes are worth telling; the notes are not written yet.\n\nFour changes go into the next release."}},
	},
	{
		Machine: "bigpc", ID: "01990000-0000-7000-8000-000000000003", Title: "Checkout page polish", Dir: shopDir,
		Branch: "checkout-polish", Old: 3 * time.Hour,
		Done: []string{"aligned the buttons of the checkout page"},
		Turns: []SeedTurn{
			{"the buttons on the checkout page jump when the price loads", "", "",
				"The row now keeps its height while the price loads.\n\nThe buttons on the checkout page stay where they are."},
		},
	},
	{
		Machine: "bigpc", ID: "01990000-0000-7000-8000-000000000004", Title: "Auth refactor", Dir: shopDir,
		Branch: "auth-refactor", Old: 12 * time.Minute,
		Done: []string{"moved the token refresh into a package of its own", "renamed Renew to Refresh"},
		Turns: []SeedTurn{
			{"move the token refresh into its own package", "git mv session/refresh.go internal/auth/refresh.go", "",
				"The refresh lives in `internal/auth` now and nothing else imports it directly.\n\nThe token refresh has a " +
					"package of its own."},
			{"call it Refresh instead of Renew", "gofmt -r 'Renew -> Refresh' -l -w .",
				"internal/auth/refresh.go\nsession/session.go\n",
				"Renamed in two files.\n\nRenew is called Refresh everywhere now."},
			{"is there a test for expired tokens?", "grep -rn Expired internal/auth",
				"internal/auth/refresh_test.go:51:func TestRefreshExpiredToken(t *testing.T) {\n",
				"There is `TestRefreshExpiredToken`; I have not run it since the move.\n\nThere is a test for expired tokens, " +
					"but it was not run since the move."},
		},
	},
}
