package web

import (
	"context"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"switchboard/handoff"
)

// Joining invites machines, and removes and renames those that joined.
type Joining interface {
	// Invite returns the code with which a machine joins under a name, once and within [invitationLife].
	Invite(ctx context.Context, by handoff.Caller, name string) (code string, err error)
	Remove(ctx context.Context, by handoff.Caller, name string) error
	Rename(ctx context.Context, by handoff.Caller, name, to string) error
}

// Reloaded is the result of reading the settings again.
type Reloaded struct {
	File    string   `json:"file,omitempty"`    // the absolute path of the file
	Did     []string `json:"did"`               // the changes, in words
	Restart []string `json:"restart,omitempty"` // changed settings that take effect only after a restart
}

// invitationLife is how long a code of [Joining] is valid.
const invitationLife = 10 * time.Minute

// A LogLine is a line of the log that names a machine.
type LogLine struct {
	At      time.Time      `json:"at"`
	Level   string         `json:"level"`
	Message string         `json:"message"`
	About   map[string]any `json:"about,omitempty"`
}

// Ownership has what only the owner of the service may do.
type Ownership struct {
	Owner   string // the principal
	Joining Joining
	Reload  func(context.Context) (Reloaded, error) // reads the settings again
	// Address returns the URL that invitations from inside name.
	Address func() string
	// MachineLog returns the newest lines of the log that name a machine, oldest first. Nil: none.
	MachineLog func(machine string) []LogLine
	// Line serves the line of a machine that joined. from is the address of the request, or the zero address; known is
	// called when the machine has proved who it is.
	Line func(w http.ResponseWriter, r *http.Request, from netip.Addr, known func()) error
}

// machines serves what only the owner of the service may do: invite and manage machines, and reload the settings.
type machines struct {
	Ownership              // Set once
	access    accessPolicy // Set once
}

// logLines lists the newest lines of the log that name a machine.
func (m machines) logLines(w http.ResponseWriter, r *http.Request, g handoff.Grant) error {
	if err := m.mayManage(r, g); err != nil {
		return err
	}
	var lines []LogLine
	if m.MachineLog != nil {
		lines = m.MachineLog(r.PathValue("server"))
	}
	return writeJSON(w, http.StatusOK, listOf(lines))
}

// mayManage returns an error unless the grant is the owner's, from a key or a login that may do everything.
func (m machines) mayManage(r *http.Request, g handoff.Grant) error {
	if g.Caller != (handoff.Caller{Principal: m.Owner}) || g.Servers != nil || g.Tools != nil ||
		g.Approve != handoff.ApproveAll && !inside(r) {
		return handoff.Fault(handoff.CodeNotGranted, "the machines and the settings are the owner's", "")
	}
	return nil
}

// invite answers with the command to run on the new machine.
func (m machines) invite(w http.ResponseWriter, r *http.Request, g handoff.Grant) error {
	var body struct {
		Name string `json:"name"`
	}
	if err := decode(r.Body, &body); err != nil {
		return err
	}
	if err := m.mayManage(r, g); err != nil {
		return err
	}
	ends := time.Now().Add(invitationLife)
	code, err := m.Joining.Invite(r.Context(), g.Caller, body.Name)
	if err != nil {
		return err
	}
	var address string
	switch v := newVisitor(r); {
	case m.access.publicHost != "":
		address = m.access.publicScheme + "://" + m.access.publicHost
	case inside(r):
		address = strings.TrimSuffix(m.Address(), "/")
	default: // the address by which the owner reached us
		address = m.access.scheme(v) + "://" + canonicalHost(r.Host, m.access.scheme(v))
	}
	return writeJSON(w, http.StatusCreated, map[string]any{
		"name": body.Name, "url": address, "code": code, "expires_at": ends.Unix(),
		"command": "switchboard join " + address + " " + code,
	})
}

func (m machines) remove(w http.ResponseWriter, r *http.Request, g handoff.Grant) error {
	if err := m.mayManage(r, g); err != nil {
		return err
	}
	return done(w, m.Joining.Remove(r.Context(), g.Caller, r.PathValue("server")))
}

func (m machines) rename(w http.ResponseWriter, r *http.Request, g handoff.Grant) error {
	var body struct {
		Name string `json:"name"`
	}
	if err := decode(r.Body, &body); err != nil {
		return err
	}
	if err := m.mayManage(r, g); err != nil {
		return err
	}
	return done(w, m.Joining.Rename(r.Context(), g.Caller, r.PathValue("server"), body.Name))
}

// reload reads the settings again.
func (m machines) reload(w http.ResponseWriter, r *http.Request, g handoff.Grant) error {
	if err := m.mayManage(r, g); err != nil {
		return err
	}
	result, err := m.Reload(r.Context())
	return answer(w, result, err)
}

// takeLine serves the line of a machine that joined, which proves who it is over that line.
func (m machines) takeLine(w http.ResponseWriter, r *http.Request, _ handoff.Grant) error {
	if !isUpgrade(r) {
		return handoff.Fault(handoff.CodeMalformed, "machines that join come by WebSocket", "")
	}
	return m.Line(w, r, m.access.from(r), func() { markKnown(r) })
}
