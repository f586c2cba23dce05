package host

import (
	"encoding/json"
	"slices"
)

// locatesThread are the methods that may be called for a thread whose directory is not known: the answer names it, and
// is withheld where the directory is not allowed. Set once.
var locatesThread = []string{"thread/read", "thread/resume", "thread/fork"}

// wireThread is a Codex thread and its directory on the wire.
type wireThread struct{ ID, Cwd string }

func newGate(policy Policy) *gate {
	return &gate{
		policy: policy, pending: map[string]string{}, asked: map[string]string{}, threads: map[string]error{},
		places: map[string]error{},
	}
}

// bounded reports whether the owner allows certain directories only.
func (g *gate) bounded() bool { return len(g.policy.Dirs) > 0 }

// mayRead returns why a method may not be called for a thread: its directory is not allowed, or not known. nil: it may.
func (g *gate) mayRead(method, thread string) error {
	if !g.bounded() || thread == "" {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	why, known := g.places[thread]
	if !known && !slices.Contains(locatesThread, method) {
		return errUnknown
	}
	return why
}

// locateLocked stores whether a thread may be read, by its directory, and returns why not; nil: it may.
func (g *gate) locateLocked(thread, cwd string) error {
	if !g.bounded() {
		return nil
	}
	why := g.policy.mayBeIn(cwd)
	if len(g.places) < maxThreads || g.places[thread] != nil {
		g.places[thread] = why
	}
	return why
}

// notificationLocked returns a notification or request of the app-server, or nil if its thread may not be read.
func (g *gate) notificationLocked(params json.RawMessage, data []byte) []byte {
	if !g.bounded() {
		return data
	}
	var p struct {
		ThreadID string
		Thread   wireThread
	}
	_ = json.Unmarshal(params, &p) // without params it is about no thread
	switch {
	case p.Thread.ID != "":
		if g.locateLocked(p.Thread.ID, p.Thread.Cwd) != nil {
			return nil
		}
	case p.ThreadID != "":
		if why, known := g.places[p.ThreadID]; !known || why != nil {
			return nil
		}
	}
	return data
}

// listedLocked returns the answer to thread/list without the threads that may not be read.
func (g *gate) listedLocked(id, result json.RawMessage, data []byte) []byte {
	var r object
	var all []json.RawMessage
	if json.Unmarshal(result, &r) != nil || json.Unmarshal(r["data"], &all) != nil {
		return data // it is no list
	}
	seen := []json.RawMessage{}
	for _, one := range all {
		var t wireThread
		_ = json.Unmarshal(one, &t)
		if g.locateLocked(t.ID, t.Cwd) == nil {
			seen = append(seen, one)
		}
	}
	r.set("data", seen)
	data, _ = json.Marshal(map[string]any{"id": id, "result": r}) // what was decoded can be encoded
	return data
}
