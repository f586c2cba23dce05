package web

import (
	"context"
	"net/http"
	"strings"
	"time"

	"switchboard/handoff"
)

// Joining is who lets machines in, and what else is done with those that joined.
type Joining interface {
	// Invite returns the code with which a machine joins under a name, once and within ten minutes.
	Invite(ctx context.Context, by handoff.Caller, name string) (code string, err error)
	Remove(ctx context.Context, by handoff.Caller, name string) error
	Rename(ctx context.Context, by handoff.Caller, name, to string) error
}

// Reloaded is what came of settings that were read again.
type Reloaded struct {
	File    string   `json:"file,omitempty"`    // that was read, as the service names it
	Did     []string `json:"did"`               // what has changed, in words
	Restart []string `json:"restart,omitempty"` // settings that have changed and wait for the next start
}

// invitationLife is how long a code of [Joining] counts.
const invitationLife = 10 * time.Minute

// machines are those that join: for the owner of the service alone.
type machines struct {
	joining Joining                                                          // Set once
	again   func(context.Context) (Reloaded, error)                          // Set once: reads the settings
	line    func(w http.ResponseWriter, r *http.Request, known func()) error // Set once: takes the line of a machine
	access  accessPolicy                                                     // Set once
	owner   string                                                           // Set once: the principal
	address func() string                                                    // Set once: for whoever is inside
}

// mayManage refuses whoever is not the owner, with a key or a login that may do everything.
func (m machines) mayManage(r *http.Request, g handoff.Grant) error {
	if g.Caller != (handoff.Caller{Principal: m.owner}) || g.Servers != nil || g.Tools != nil ||
		g.Approve != handoff.ApproveAll && !inside(r) {
		return handoff.Fault(handoff.CodeNotGranted, "the machines and the settings are the owner's", "")
	}
	return nil
}

// invite answers with the command that is to be run on the new machine.
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
	code, err := m.joining.Invite(r.Context(), g.Caller, body.Name)
	if err != nil {
		return err
	}
	var address string
	switch v := newVisitor(r); {
	case m.access.publicHost != "":
		address = m.access.publicScheme + "://" + m.access.publicHost
	case inside(r):
		address = strings.TrimSuffix(m.address(), "/")
	default: // what reaches us from where the owner sits
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
	return done(w, m.joining.Remove(r.Context(), g.Caller, r.PathValue("server")))
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
	return done(w, m.joining.Rename(r.Context(), g.Caller, r.PathValue("server"), body.Name))
}

// reload reads the settings again.
func (m machines) reload(w http.ResponseWriter, r *http.Request, g handoff.Grant) error {
	if err := m.mayManage(r, g); err != nil {
		return err
	}
	told, err := m.again(r.Context())
	return answer(w, told, err)
}

// takeLine takes the line of a machine, which proves itself who it is.
func (m machines) takeLine(w http.ResponseWriter, r *http.Request, _ handoff.Grant) error {
	if !isUpgrade(r) {
		return handoff.Fault(handoff.CodeMalformed, "machines that join come by WebSocket", "")
	}
	return m.line(w, r, func() { recognized(r) })
}
