package web

import (
	"testing"
	"time"

	"switchboard/handoff"
)

// A machine is added from the page: its name, the command with a button that copies it, and the wait until it has
// joined; one that joined is renamed and removed there, and what is refused is said in the dialog.
func TestPageJoin(t *testing.T) {
	t.Parallel()
	w := newWorld()
	scene(w)
	_, base := serve(t, w, func(cfg *Config) { cfg.Keys[0].Approve = handoff.ApproveAll })
	p := openTab(t, startChromium(t, true), 1280, 800)
	p.loggedIn(base)
	p.Click("Add a machine")
	p.Until(`document.querySelector("#join").open && document.activeElement.id === "join-name"`)
	p.axe("adding a machine")
	p.Press("studio", "\r")
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
	w.feed("owner").Publish(handoff.PageEvent{Kind: handoff.EventServers})
	p.Shows("studio has joined.")
	p.Until(`!document.querySelector("#join").open`)

	named := func(name string) { eval[bool](p, `(document.querySelector("#join-name").value = "`+name+`", true)`) }
	open := `(document.querySelector("section[aria-labelledby=machine-studio] details.setup").open = true)`
	eval[bool](p, open)
	p.Shows("12 GiB")
	p.Click("Rename studio")
	p.Until(`document.querySelector("#join").open && document.querySelector("#join-name").value === "studio"`)
	named("taken")
	p.Click("Rename")
	p.Shows("the name taken is taken")
	named("loft")
	p.Click("Rename")
	p.Shows("studio is loft now.")
	p.Click("Remove studio")
	p.Until(`document.querySelector("#confirm").open`)
	p.Click("Remove it")
	p.Shows("studio is removed.")
	p.Quiet("40") // the name that was taken
}
