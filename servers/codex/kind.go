package codex

import (
	"iter"
	"regexp"
	"slices"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/servers"
)

// Name is what the configuration calls servers of this kind.
const Name = "codex"

// Kind returns the kind of Codex app-servers.
func Kind() servers.Kind {
	return servers.Kind{Name: Name, Check: checkSettings, Dial: dial, IsThread: threadID.MatchString}
}

// threadID is the form of a thread's id.
var threadID = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

func dial(s servers.Settings, log *zap.Logger) (servers.Dial, iter.Seq[handoff.Metric]) {
	counters := &Counters{Server: s.Name}
	return Dialer(Config{
		Name: s.Name, URL: s.URL, Unix: s.Unix, Token: s.Token, Command: s.Command, Dir: s.Dir, Env: s.Env,
		Model: s.Model, Approval: s.Approval, Sandbox: s.Sandbox, Ceiling: s.Ceiling, Log: log.Named(Name), Counters: counters,
	}), counters.Metrics
}

func checkSettings(s servers.Settings, to servers.Report) {
	checkPolicy(s, to)
	ways := 0
	for _, set := range []bool{s.URL != "", s.Unix != "", len(s.Command) > 0} {
		if set {
			ways++
		}
	}
	switch {
	case ways != 1:
		to.Bad("", "needs one of url, unix and command")
	case s.URL != "":
		servers.Address{
			Row: "url", URL: s.URL, Plain: "ws", What: "the address of an app-server, such as ws://127.0.0.1:4500", Secret: "token", Allowed: s.AllowPlaintext,
		}.Check(to)
	case s.AllowPlaintext:
		to.Bad("allow_plaintext", "goes with ws:// addresses only")
	}
	if len(s.Command) == 0 && len(s.Env) > 0 {
		to.Bad("env[0]", "goes with a command only")
	} else {
		servers.CheckEnv(s.Env, to)
	}
	for row, set := range map[string]bool{
		"workspace": s.Workspace != "", "continuation": s.Continuation != "", "store": s.Store != nil, "include": len(s.Include) > 0,
		"reasoning": s.Reasoning != servers.Reasoning{}, "verbosity": s.Verbosity != "", "user": s.User != "", "limits": s.Limits != servers.Limits{},
	} {
		if set {
			to.Bad(row, "is not for servers of kind %s", Name)
		}
	}
}

// strictFirst are the words for sandboxes, from strict to loose. Set once.
var strictFirst = []string{"read-only", "workspace-write", "danger-full-access"}

// checkPolicy checks what may be done on a server.
func checkPolicy(s servers.Settings, to servers.Report) {
	for _, word := range []struct {
		row, value string
		known      []string
	}{
		{"sandbox", s.Sandbox, strictFirst},
		{"approval", s.Approval, []string{"untrusted", "on-request", "never"}},
		{"ceiling", s.Ceiling, strictFirst},
	} {
		if word.value != "" {
			to.OneOf(word.row, word.value, word.known...)
		}
	}
	if i := slices.Index(strictFirst, s.Ceiling); i >= 0 && slices.Index(strictFirst, s.Sandbox) > i {
		to.Bad("sandbox", "%s is looser than the ceiling %s, so no new session could run", s.Sandbox, s.Ceiling)
	}
}
