package simulator

import (
	"slices"
	"strings"
	"time"
	"unicode"
)

// A frame is a moment of a turn: what happens after a while. It reports true when the turn has to wait
// for something else than time.
type frame struct {
	after time.Duration
	do    func(*machine, *turn) bool
}

// at makes a frame that never waits.
func at(after time.Duration, do func(*machine, *turn)) frame {
	return frame{after, func(m *machine, u *turn) bool { do(m, u); return false }}
}

// frames takes steps apart into moments.
func frames(steps []Step) []frame {
	var all []frame
	for _, s := range steps {
		switch s := s.(type) {
		case Think:
			all = append(all, thinkFrames(s)...)
		case Say:
			all = append(all, sayFrames(s)...)
		case Run:
			all = append(all, runFrames(s)...)
		case Edit:
			all = append(all, editFrames(s)...)
		case Ask:
			all = append(all, frame{do: func(m *machine, u *turn) bool { return m.ask(u, s) }})
		case Input:
			all = append(all, frame{do: func(m *machine, u *turn) bool { return m.askInput(u, s) }})
		case Permit:
			all = append(all, frame{do: func(m *machine, u *turn) bool { return m.askPermit(u, s) }})
		case Elicit:
			all = append(all, frame{do: func(m *machine, u *turn) bool { return m.askElicit(u, s) }})
		case Pause:
			all = append(all, at(s.For, func(*machine, *turn) {}))
		case Effect:
			all = append(all, at(0, func(m *machine, u *turn) { m.learn(u.thread, s.Fact) }))
		case Drop:
			all = append(all, at(0, func(m *machine, _ *turn) { m.dropAll() }))
		case Fail:
			all = append(all, at(0, func(m *machine, u *turn) { m.finish(u, turnFailed, s.Message) }))
		case Hang:
			all = append(all, frame{do: func(*machine, *turn) bool { return true }})
		}
	}
	return all
}

func thinkFrames(s Think) []frame {
	return []frame{
		at(0, func(m *machine, u *turn) { m.openItem(u, &item{kind: "reasoning"}) }),
		at(0, func(m *machine, u *turn) {
			u.open.text = s.Text
			m.publish(u.thread, "item/reasoning/summaryTextDelta", map[string]any{"turnId": u.id, "itemId": u.open.id, "summaryIndex": 0, "delta": s.Text})
		}),
		at(s.For, func(m *machine, u *turn) { m.closeItem(u) }),
	}
}

func sayFrames(s Say) []frame {
	all := []frame{at(0, func(m *machine, u *turn) { m.openItem(u, &item{kind: "agentMessage"}) })}
	for i, piece := range pieces(s.Text) {
		after := s.Every
		if i == 0 {
			after = 0
		}
		all = append(all, at(after, func(m *machine, u *turn) {
			m.delta(u, "item/agentMessage/delta", piece)
		}))
	}
	return append(all, at(s.Every, func(m *machine, u *turn) {
		u.open.text = s.Text
		m.closeItem(u)
		m.usage(u)
	}))
}

// pieces cuts a text after its spaces, so that joined they are the text.
func pieces(text string) []string {
	var all []string
	start := 0
	space := false
	for i, r := range text {
		if space && !unicode.IsSpace(r) {
			all = append(all, text[start:i])
			start = i
		}
		space = unicode.IsSpace(r)
	}
	if start < len(text) {
		all = append(all, text[start:])
	}
	return all
}

func runFrames(s Run) []frame {
	open := at(0, func(m *machine, u *turn) {
		m.openItem(u, &item{kind: "commandExecution", command: s.Command, cwd: u.thread.cwd, status: turnRunning})
	})
	return append([]frame{open}, outputFrames(s.Lines, s.Exit)...)
}

// outputFrames stream the output of the command under way and end it.
func outputFrames(output []Line, exit int) []frame {
	var all []frame
	for _, line := range output {
		all = append(all, at(line.After, func(m *machine, u *turn) {
			text := strings.TrimSuffix(line.Text, "\n") + "\n"
			u.open.output += text
			m.delta(u, "item/commandExecution/outputDelta", text)
		}))
	}
	return append(all, at(0, func(m *machine, u *turn) {
		u.open.exit, u.open.status = &exit, "completed"
		if exit != 0 {
			u.open.status = "failed"
		}
		m.closeItem(u)
		m.usage(u)
	}))
}

func editFrames(s Edit) []frame {
	open := at(0, func(m *machine, u *turn) {
		m.openItem(u, &item{kind: "fileChange", changes: s.Changes, status: turnRunning})
	})
	return append([]frame{open}, changeFrames(s.Changes, s.For)...)
}

// changeFrames end the edit under way.
func changeFrames(changes []Change, took time.Duration) []frame {
	return []frame{at(took, func(m *machine, u *turn) {
		u.open.status = "completed"
		m.closeItem(u)
		m.usage(u)
		var diff strings.Builder
		for _, c := range changes {
			diff.WriteString("diff --git a/" + c.Path + " b/" + c.Path + "\n" + c.Diff)
		}
		m.publish(u.thread, "turn/diff/updated", map[string]any{"turnId": u.id, "diff": diff.String()})
	})}
}

// dropAll cuts every connection.
func (m *machine) dropAll() {
	for _, c := range slices.Clone(m.conns) {
		c.cut()
	}
}
