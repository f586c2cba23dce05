package simulator

import (
	"cmp"
	"slices"
	"strings"
	"time"
	"unicode"
)

// A frame is one action of a turn, after a delay. It returns true if the turn has to wait for something other than
// time.
type frame struct {
	after time.Duration
	do    func(*turn) bool
}

// at returns a frame that never waits.
func at(after time.Duration, do func(*turn)) frame {
	return frame{after, func(u *turn) bool { do(u); return false }}
}

// frames returns the frames of steps.
func frames(steps []Step) []frame {
	var all []frame
	for _, s := range steps {
		switch s := s.(type) {
		case Think:
			it := &item{kind: "reasoning"}
			all = append(all, at(0, func(u *turn) {
				u.openItem(it)
				it.text = s.Text
				u.thread.publish("item/reasoning/summaryTextDelta",
					map[string]any{"turnId": u.id, "itemId": it.id, "summaryIndex": 0, "delta": s.Text})
			}), at(s.For, func(u *turn) { u.closeItem(it) }))
		case Say:
			all = append(all, sayFrames(s)...)
		case Run:
			all = append(all, runFrames(s)...)
		case Both:
			all = append(all, bothFrames(s)...)
		case Edit:
			it := &item{kind: "fileChange", changes: s.Changes, status: turnRunning}
			all = append(all, at(0, func(u *turn) { u.openItem(it) }))
			all = append(all, changeFrames(it, s.For)...)
		case Ask:
			all = append(all, frame{do: func(u *turn) bool { return u.askApproval(s) }})
		case Review:
			all = append(all, at(0, func(u *turn) { u.publishReview(s) }))
		case Plan:
			all = append(all, at(0, func(u *turn) {
				it := &item{kind: "plan"}
				u.openItem(it)
				u.delta(it, "item/plan/delta", s.Text)
				it.text = s.Text
				u.closeItem(it)
				u.usage()
			}))
		case Input:
			all = append(all, frame{do: func(u *turn) bool { return u.askInput(s) }})
		case Permit:
			all = append(all, frame{do: func(u *turn) bool { return u.askPermit(s) }})
		case Elicit:
			all = append(all, frame{do: func(u *turn) bool { return u.askElicit(s) }})
		case Pause:
			all = append(all, at(s.For, func(*turn) {}))
		case Effect:
			all = append(all, at(0, func(u *turn) { u.thread.learn(s.Fact) }))
		case Fail:
			all = append(all, at(0, func(u *turn) { u.finish(turnFailed, s.Message) }))
		case Hang:
			all = append(all, frame{do: func(u *turn) bool { u.hangs = !u.thread.m.released; return u.hangs }})
		}
	}
	return all
}

func sayFrames(s Say) []frame {
	it := &item{kind: "agentMessage"}
	all := []frame{at(0, func(u *turn) { u.openItem(it) })}
	for i, piece := range pieces(s.Text) {
		after := s.Every
		if i == 0 {
			after = 0
		}
		all = append(all, at(after, func(u *turn) {
			u.delta(it, "item/agentMessage/delta", piece)
		}))
	}
	return append(all, at(s.Every, func(u *turn) {
		it.text = s.Text
		u.closeItem(it)
		u.usage()
	}))
}

// pieces splits a text after its spaces.
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
	it := &item{kind: "commandExecution", command: s.Command, status: turnRunning}
	open := at(0, func(u *turn) {
		it.cwd = u.thread.cwd
		u.openItem(it)
	})
	return append([]frame{open}, outputFrames(it, s.Lines, s.Exit)...)
}

// bothFrames merges the frames of commands that begin at once, by their time.
func bothFrames(runs []Run) []frame {
	type moment struct {
		at time.Duration
		frame
	}
	var moments []moment
	for _, run := range runs {
		now := time.Duration(0)
		for i, f := range runFrames(run) {
			now += f.after
			when := now
			if i == 0 {
				when = -1 // all commands begin before any output
			}
			moments = append(moments, moment{when, f})
		}
	}
	slices.SortStableFunc(moments, func(a, b moment) int { return cmp.Compare(a.at, b.at) })
	var all []frame
	passed := time.Duration(0)
	for _, m := range moments {
		m.after = max(m.at, 0) - passed
		passed = max(m.at, 0)
		all = append(all, m.frame)
	}
	return all
}

// outputFrames returns the frames that stream the output of an open command and end it.
func outputFrames(it *item, output []Line, exit int) []frame {
	var all []frame
	for _, line := range output {
		all = append(all, at(line.After, func(u *turn) {
			text := strings.TrimSuffix(line.Text, "\n") + "\n"
			it.output += text
			u.delta(it, "item/commandExecution/outputDelta", text)
		}))
	}
	return append(all, at(0, func(u *turn) {
		it.exit, it.status = &exit, "completed"
		if exit != 0 {
			it.status = "failed"
		}
		u.closeItem(it)
		u.usage()
	}))
}

// changeFrames returns the frames that end an open edit.
func changeFrames(it *item, took time.Duration) []frame {
	return []frame{at(took, func(u *turn) {
		it.status = "completed"
		u.closeItem(it)
		u.usage()
		var diff strings.Builder
		for _, c := range it.changes {
			diff.WriteString("diff --git a/" + c.Path + " b/" + c.Path + "\n" + c.Diff)
		}
		u.thread.publish("turn/diff/updated", map[string]any{"turnId": u.id, "diff": diff.String()})
	})}
}
