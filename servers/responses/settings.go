package responses

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"switchboard/handoff"
	"switchboard/servers"
	"switchboard/servers/responses/sandbox"
	"switchboard/servers/responses/workspace"
)

// Settings are the settings of one agent. Empty strings leave the default of the API or the model.
type Settings struct {
	URL            string `yaml:"url"`
	AllowPlaintext bool   `yaml:"allow_plaintext"`
	KeyFile        string `yaml:"key_file"`
	KeyEnv         string `yaml:"key_env"`

	Model        string    `yaml:"model"`
	Continuation string    `yaml:"continuation"`
	Store        *bool     `yaml:"store"`
	Include      []string  `yaml:"include"`
	Reasoning    Reasoning `yaml:"reasoning"`
	Verbosity    string    `yaml:"verbosity"`

	Workspace string   `yaml:"workspace"`
	Trusted   bool     `yaml:"trusted"`
	Sandbox   string   `yaml:"sandbox"`
	Approval  string   `yaml:"approval"`
	Readable  []string `yaml:"readable"`
	User      string   `yaml:"user"`
	Env       []string `yaml:"env"`
	Limits    Limits   `yaml:"limits"`

	Key func() (string, error) // reads the key for URL at each call; nil for none
}

// Reasoning is how a model reasons.
type Reasoning struct {
	Effort    string `yaml:"effort"`
	Summary   string `yaml:"summary"`
	Encrypted bool   `yaml:"encrypted"`
}

// Limits bound one command at a time. A zero leaves the default.
type Limits struct {
	Processes int `yaml:"processes"`
	MemoryMiB int `yaml:"memory_mib"`
	TmpMiB    int `yaml:"tmp_mib"`
}

// Rows implements [servers.Settings].
func (s *Settings) Rows() []any { return []any{s} }

func (s *Settings) address() servers.Address {
	return servers.Address{
		Row: "url", URL: s.URL, Plain: "http", What: "the address of a Responses API, such as https://api.openai.com/v1",
		Secret: "key", Allowed: s.AllowPlaintext,
	}
}

// Describe implements [servers.Settings].
func (s *Settings) Describe(spec *servers.Spec) {
	s.address().Describe(spec)
	spec.Dir, spec.EndsWithUs, spec.Credential = s.Workspace, true, servers.Credential{Name: "key", Read: s.Key}
	spec.About.Model, spec.About.Sandbox, spec.About.Approval = s.Model, s.Sandbox, s.Approval
}

// Check implements [servers.Settings]. It also makes paths absolute, and sets Key.
func (s *Settings) Check(to servers.Report, files servers.Files) {
	s.address().Check(to)
	if strings.Contains(s.URL, "?") {
		to.Bad("url", "has a query: paths are added to the address")
	}
	s.Key = files.Credential("key", s.KeyFile, s.KeyEnv).Read
	if s.Model == "" {
		to.Bad("model", "is missing: the name of a model of that API")
	}
	to.OneOf("continuation", s.Continuation, Replay, ResponseIDs)
	to.OneOf("reasoning.effort", s.Reasoning.Effort, "none", "minimal", "low", "medium", "high", "xhigh")
	to.OneOf("reasoning.summary", s.Reasoning.Summary, "auto", "concise", "detailed")
	to.OneOf("verbosity", s.Verbosity, "low", "medium", "high")
	to.OneOf("sandbox", s.Sandbox, string(sandbox.ReadOnly), string(sandbox.WorkspaceWrite), string(sandbox.Full))
	to.OneOf("approval", s.Approval, workspace.Untrusted, workspace.OnRequest, workspace.Never)
	stored := !s.Reasoning.Encrypted // without store: encrypted reasoning is for responses that are not stored
	if s.Store != nil {
		stored = *s.Store
	}
	switch unstored := !stored && s.Continuation == ResponseIDs; {
	case unstored && s.Store != nil:
		to.Bad("store", "%s needs stored responses: use %s, or leave store out", ResponseIDs, Replay)
	case unstored:
		to.Bad("continuation", "%s needs stored responses, but reasoning.encrypted turns storing off: use %s, leave "+
			"reasoning.encrypted out, or set store", ResponseIDs, Replay)
	}
	s.checkWorkspace(to, files)
	if !s.Trusted {
		for _, row := range []string{"env", "readable", "sandbox", "approval", "user", "limits"} {
			if to.IsSet(row) {
				to.Bad(row, "goes with trusted: true, without which the agent only reads")
			}
		}
	}
}

// checkWorkspace reports what is wrong with the directories of an agent, and with the environment and user of its
// commands.
func (s *Settings) checkWorkspace(to servers.Report, files servers.Files) {
	if s.Workspace != "" {
		s.Workspace = files.Path(s.Workspace)
		files.Apart("workspace", s.Workspace)
	}
	if !isDir(s.Workspace) {
		to.Bad("workspace", "must be a directory on this machine: the agent works there and nowhere else")
	} else if real, err := filepath.EvalSymlinks(s.Workspace); s.Trusted && err == nil && real == "/" {
		to.Bad("workspace", "must not be the root directory, with a trusted agent")
	}
	for i, dir := range s.Readable {
		row := fmt.Sprintf("readable[%d]", i)
		s.Readable[i] = files.Path(dir)
		files.Apart(row, s.Readable[i])
		if !isDir(s.Readable[i]) {
			to.Bad(row, "must be a directory on this machine")
		}
	}
	servers.CheckEnv(s.Env, to)
	if s.User == "" {
		return
	}
	if _, err := sandbox.LookupUser(s.User); err != nil {
		to.Bad("user", "%v", err)
	} else if os.Geteuid() != 0 {
		to.Bad("user", "goes with a Switchboard that runs as root: another one runs commands as its own user")
	}
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// readKey returns the key for the API, or "" if there is none. server is the name in errors.
func (s *Settings) readKey(server string) (string, error) {
	if s.Key == nil {
		return "", nil
	}
	key, err := s.Key()
	if err != nil {
		return "", &handoff.Error{
			Code: handoff.CodeUnreachable, Subject: server, Detail: "read key: " + err.Error(),
			Reason: handoff.ReasonTokenUnread,
		}
	}
	return key, nil
}

// reachWithin is how long an API may take to list its models.
const reachWithin = 3 * time.Second

// reach requests the list of models, which costs nothing, to see whether the API answers. server is the name in
// errors.
func (s *Settings) reach(ctx context.Context, server string) error {
	ctx, cancel := context.WithTimeout(ctx, reachWithin)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(s.URL, "/")+"/models", http.NoBody)
	if err != nil {
		return err
	}
	key, err := s.readKey(server)
	if err != nil {
		return err
	}
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	resp, err := HTTP.Do(r)
	if err != nil {
		return servers.DialFault(server, err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden {
		return handoff.Fault(handoff.CodeTokenRefused, server, "its API answered "+resp.Status)
	}
	return nil
}
