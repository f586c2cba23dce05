package handoff

import "time"

// Wishes are what a browser is told of by [Notice]s, and when it makes no sound. The zero Wishes are everything, at any
// time.
type Wishes struct {
	For   string `json:"for,omitempty"` // "questions"; "failures", and questions; "": everything
	Quiet *Hours `json:"quiet,omitempty"`
}

// Hours are a part of each day, in minutes after midnight UTC, From included. If To is not after From, they go over
// midnight.
type Hours struct {
	From int `json:"from"`
	To   int `json:"to"`
}

// Valid reports whether the wishes are ones that can be kept.
func (w Wishes) Valid() bool {
	const day = 24 * 60
	minute := func(m int) bool { return m >= 0 && m < day }
	return (w.For == "" || w.For == "questions" || w.For == "failures") &&
		(w.Quiet == nil || minute(w.Quiet.From) && minute(w.Quiet.To))
}

// Wants reports whether a notice is to be sent.
func (w Wishes) Wants(n Notice) bool { return w.For == "" || n.Kind == NoticeQuestion || w.Rings(n) }

// Rings reports whether a notice is to ring: its page opens with the offer of a call.
func (w Wishes) Rings(n Notice) bool {
	return n.Kind == NoticeQuestion || w.For != "questions" && n.Failed
}

// Silent reports whether a notice makes no sound now.
func (w Wishes) Silent(now time.Time) bool {
	if w.Quiet == nil {
		return false
	}
	from, to, at := w.Quiet.From, w.Quiet.To, now.UTC().Hour()*60+now.UTC().Minute()
	if from < to {
		return from <= at && at < to
	}
	return at >= from || at < to
}
