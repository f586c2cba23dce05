package acp

import (
	"bytes"
	"encoding/json"
	"path"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"switchboard/handoff"
	"switchboard/servers/turns"
)

// maxOutput is how much of the end of a command's output is kept, in bytes.
const maxOutput = 64 << 10

// A call is a tool call, merged from its updates: each update has only what changed.
type call struct {
	toolCall
	content   []content
	printed   string // the output that was streamed, at most maxOutput
	exit      *int
	announced bool
	done      bool // it has ended and was told: nothing else of it is kept
}

// merge applies an update, and returns the output that is new in it.
func (c *call) merge(u *update) (printed string) {
	if u.Name != "" {
		c.Name = handoff.ClipRunes(u.Name, 80)
	}
	if u.Title != "" {
		c.Title = u.Title
	}
	if u.ToolKind != "" {
		c.ToolKind = u.ToolKind
	}
	if u.Status != "" {
		c.Status = u.Status
	}
	if len(bytes.TrimSpace(u.Input)) > 2 { // neither {} nor absent
		c.Input = u.Input
	}
	if len(u.toolCall.Output) > 0 {
		c.Output = u.toolCall.Output
	}
	if len(u.Locations) > 0 {
		c.Locations = u.Locations
	}
	if len(u.Content) > 0 {
		c.content = nil
		_ = json.Unmarshal(u.Content, &c.content) // invalid content is not shown
	}
	if u.Meta.Exit.Code != nil {
		c.exit = u.Meta.Exit.Code
	}
	switch text := c.text(); {
	case u.Meta.Output.Data != "":
		printed = u.Meta.Output.Data
	case c.ToolKind == "execute" && c.Status == "in_progress" && strings.HasPrefix(text, c.printed):
		printed = text[len(c.printed):]
	}
	c.printed = handoff.Tail(c.printed+printed, maxOutput)
	return printed
}

// text returns the text of the call's content.
func (c *call) text() string {
	var b strings.Builder
	for _, part := range c.content {
		b.WriteString(part.Content.Text)
	}
	return b.String()
}

// input is the part of a call's input that is read.
type input struct {
	Command string `json:"command"`
	Cwd     string `json:"cwd"`
	Path    string `json:"path"`
	File    string `json:"file_path"`
	Other   string `json:"filePath"`
}

func (c *call) input() input {
	var in input
	if json.Unmarshal(c.Input, &in) != nil { // such as a command that is no string
		return input{}
	}
	return in
}

// paths returns the files that the call is about.
func (c *call) paths() []string {
	var all []string
	add := func(p string) {
		same := func(have string) bool { return have == p || path.IsAbs(have) && strings.HasSuffix(have, "/"+p) }
		if p != "" && !slices.ContainsFunc(all, same) {
			all = append(all, handoff.Clip(p, 4096))
		}
	}
	for _, part := range c.content {
		add(part.Path)
	}
	for _, l := range c.Locations {
		add(l.Path)
	}
	in := c.input()
	add(in.File)
	add(in.Path)
	add(in.Other)
	return all
}

// edits reports whether the call changes files.
func (c *call) edits() bool {
	return c.ToolKind == "edit" || c.ToolKind == "delete" || c.ToolKind == "move"
}

// reportable reports whether enough of the call is known to report it.
func (c *call) reportable() bool { return len(c.Input) > 0 || c.Status != "" && c.Status != "pending" }

// ended reports whether the call has ended.
func (c *call) ended() bool { return c.Status == "completed" || c.Status == "failed" }

// item returns the call as it is reported.
func (c *call) item() turns.Item {
	in := c.input()
	it := turns.Item{Item: handoff.Item{ID: c.ID, Text: c.Title, Failed: c.Status == "failed"}}
	switch {
	case c.ToolKind == "execute":
		it.Kind = handoff.ItemCommand
		if in.Command != "" {
			it.Text = in.Command
		}
		it.Item.Output, it.Exit = c.result()
		it.Failed = it.Failed || it.Exit != nil && *it.Exit != 0
	case c.edits():
		it.Kind, it.Paths = handoff.ItemFileChange, c.paths()
		if len(it.Paths) > 0 {
			it.Text = strings.Join(it.Paths, ", ")
		}
		it.Changes = c.changes()
	case c.ToolKind == "think":
		it.Kind = handoff.ItemReasoning
	default:
		it.Kind = handoff.ItemToolCall
		if c.Name != "" {
			it.Text = c.Name
		}
		if len(c.Input) <= 64<<10 {
			it.Arguments = string(c.Input)
		}
	}
	it.Text = handoff.Clip(it.Text, maxEntryText)
	return it
}

// result returns the output of a command, and its exit code; nil: not known.
func (c *call) result() (output string, exit *int) {
	exit = c.exit
	var out struct {
		Output   *string `json:"output"`
		Metadata struct {
			Exit *int `json:"exit"`
		} `json:"metadata"`
	}
	var line string
	switch {
	case json.Unmarshal(c.Output, &line) == nil && line != "":
		output = line
	case json.Unmarshal(c.Output, &out) == nil && out.Output != nil:
		output = *out.Output
		if out.Metadata.Exit != nil {
			exit = out.Metadata.Exit
		}
	case c.ended() && c.printed == "":
		output = c.text()
	}
	if c.printed != "" {
		output = c.printed
	}
	return handoff.Tail(output, maxOutput), exit
}

// changes returns the changed files of the call's diffs.
func (c *call) changes() []handoff.FileChange {
	var all []handoff.FileChange
	room := handoff.MaxDiff
	for _, part := range c.content {
		if part.Type != "diff" {
			continue
		}
		f := handoff.FileChange{Path: part.Path, Kind: "update"}
		old := ""
		if part.Old == nil {
			f.Kind = "add"
		} else {
			old = *part.Old
		}
		if len(old)+len(part.New) > 8*handoff.MaxDiff { // too long to be shown
			f.Cut = true
			all = append(all, f)
			continue
		}
		if _, hunks, ok := strings.Cut(udiff.Unified("a", "b", old, part.New), "\n@@ "); ok {
			room = f.Show("@@ "+hunks, room)
		}
		all = append(all, f)
	}
	return all
}
