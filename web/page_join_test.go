package web

import (
	"sync/atomic"
	"testing"
	"time"

	"switchboard/handoff"
)

// heldAnswers holds back what the page asks for by other methods than GET, until answer(), or goOn() for all that is
// asked later.
const heldAnswers = `((ask) => {
  window.answer = null;
  window.fetch = async (path, how) => {
    if (how.method !== "GET") await new Promise((go) => { window.answer = go; });
    return ask(path, how);
  };
  window.goOn = () => { window.fetch = ask; };
})(window.fetch), true`

// late lets an answer come to a page that has gone on, and gives it the time to make something of it.
const late = `(goOn(), answer(), new Promise((done) => setTimeout(done, 200, true)))`

// A machine is added from the page: its name, the command with a button that copies it, and the wait until it has
// joined; one that joined is renamed and removed there, and what is refused is said in the dialog. Where several
// instances are one Switchboard, they stand below the machines.
func TestPageJoin(t *testing.T) {
	t.Parallel()
	w := newScene()
	several := atomic.Bool{}
	_, base := serve(t, w, func(cfg *Config) {
		sceneOfSeveral(cfg)
		all := cfg.Instances()
		cfg.Instances = func() []InstanceInfo {
			if several.Load() {
				return all
			}
			return all[:1]
		}
	})
	p := openTab(t, startChromium(t, true), 1280, 800)
	p.loggedIn(base)
	p.Until(`document.querySelectorAll("#instance-list li").length === 1 && document.querySelector("#instances").hidden`)
	several.Store(true)
	w.feed("owner").Publish(handoff.PageEvent{Kind: handoff.PageServers})
	p.Until(`document.querySelector("#instances").checkVisibility() && document.querySelector("#instances").innerText ===
	  "Instances of Switchboard\n10.0.0.5:8090\nserves you\n10.0.0.6:8090\nis ending\nswitchboard-3.internal.example.com:8090"`)
	p.Click("Add a machine")
	p.Until(`document.querySelector("#join").open && document.activeElement.id === "join-name"`)
	// Who leaves before there is a command, and begins again, is not shown the command of before.
	eval[bool](p, heldAnswers)
	p.Paste("attic")
	p.Press("\r")
	p.Until(`window.answer`)
	p.Press("\x1b")
	p.Until(`!document.querySelector("#join").open`)
	p.Click("Add a machine")
	p.Until(`document.activeElement.id === "join-name"`)
	eval[bool](p, late)
	p.Paste("studio")
	p.Press("\r")
	p.Shows("switchboard join " + base + " code-of-studio-for-owner")
	p.Shows("Waiting for studio…")
	p.Until(`document.activeElement.id === "join-copy"`)
	p.axe("the command of a machine")
	p.look("join")
	w.mu.Lock()
	w.servers = append(w.servers, handoff.ServerInfo{Name: "studio", Kind: "codex", Health: handoff.HealthUp})
	w.desk.machines = append(w.desk.machines, handoff.Machine{
		Name: "studio", Machine: "studio", Joined: time.Now(), System: "linux/amd64", DiskFree: 12 << 30, NoYes: true,
	})
	w.mu.Unlock()
	w.feed("owner").Publish(handoff.PageEvent{Kind: handoff.PageServers})
	p.Shows("studio has joined.")
	p.Until(`!document.querySelector("#join").open`)

	named := func(name string) { eval[bool](p, `(document.querySelector("#naming-name").value = "`+name+`", true)`) }
	open := `(document.querySelector("section[aria-labelledby=machine-studio] details.setup").open = true)`
	p.OpenMachines()
	eval[bool](p, open)
	p.Shows("12 GiB")
	p.Click("Rename studio")
	p.Until(`document.querySelector("#naming").open && document.querySelector("#naming-name").value === "studio"`)
	p.look("rename-machine")
	named("taken")
	p.Click("Rename")
	p.Shows("the name taken is taken")
	// Who leaves while a name is being given, and comes back, finds the dialog as they left it when the answer comes.
	eval[bool](p, heldAnswers)
	p.Click("Rename")
	p.Until(`window.answer`)
	p.Press("\x1b")
	p.Until(`!document.querySelector("#naming").open`)
	p.Click("Rename studio")
	eval[bool](p, `(answer(), true)`)
	p.Shows("the name taken is taken")
	p.Until(`document.querySelector("#naming").open && document.querySelector("#naming-problem").hidden &&
	  !document.querySelector("#naming-yes").disabled`)
	named("loft")
	p.Click("Rename")
	p.Until(`document.querySelector("#naming-yes").disabled`)
	eval[bool](p, `(goOn(), answer(), true)`)
	p.Shows("studio is loft now.")
	p.Click("Remove studio")
	p.Until(`document.querySelector("#confirm").open`)
	p.Click("Remove it")
	p.Shows("studio is removed.")
	p.Quiet("40") // the name that was taken
}
