package host

import (
	"encoding/json"
	"slices"
)

// finds are the methods that may be called for a session of which nobody knows where it is: their answer tells, and is
// held back where it may not be seen. Set once.
var finds = []string{"thread/read", "thread/resume", "thread/fork"}

// wireThread is what tells where a session of Codex is.
type wireThread struct{ ID, Cwd string }

func newGate(policy Policy) *gate {
	return &gate{policy: policy, watched: map[string]string{}, threads: map[string]error{}, placed: map[string]error{}}
}

// bounded reports whether not every directory may be worked in, and read of.
func (g *gate) bounded() bool { return len(g.policy.Dirs) > 0 }

// mayRead reports why a method may not be called for a session: it is where agents may not be, or nobody knows where.
func (g *gate) mayRead(method, thread string) error {
	if !g.bounded() || thread == "" {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	why, known := g.placed[thread]
	if !known && !slices.Contains(finds, method) {
		return errUnknown
	}
	return why
}

// placeLocked notes where a session is, and returns why it may not be read.
func (g *gate) placeLocked(thread, cwd string) error {
	if !g.bounded() {
		return nil
	}
	why := g.policy.mayBeIn(cwd)
	if len(g.placed) < maxThreads || g.placed[thread] != nil {
		g.placed[thread] = why
	}
	return why
}

// aboutLocked passes on what an app-server says unasked, unless it is of a session that may not be read.
func (g *gate) aboutLocked(params json.RawMessage, data []byte) []byte {
	if !g.bounded() {
		return data
	}
	var p struct {
		ThreadID string
		Thread   wireThread
	}
	_ = json.Unmarshal(params, &p) // without them it is of no session
	switch {
	case p.Thread.ID != "":
		if g.placeLocked(p.Thread.ID, p.Thread.Cwd) != nil {
			return nil
		}
	case p.ThreadID != "":
		if why, known := g.placed[p.ThreadID]; !known || why != nil {
			return nil
		}
	}
	return data
}

// listedLocked is a list of sessions without those that may not be seen.
func (g *gate) listedLocked(id, result json.RawMessage, data []byte) []byte {
	var r object
	var all []json.RawMessage
	if json.Unmarshal(result, &r) != nil || json.Unmarshal(r["data"], &all) != nil {
		return data // it is refused
	}
	seen := []json.RawMessage{}
	for _, one := range all {
		var t wireThread
		_ = json.Unmarshal(one, &t)
		if g.placeLocked(t.ID, t.Cwd) == nil {
			seen = append(seen, one)
		}
	}
	r.set("data", seen)
	data, _ = json.Marshal(map[string]any{"id": id, "result": r}) // it can be
	return data
}
