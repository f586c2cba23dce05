package speech

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"switchboard/handoff"
	"switchboard/handoff/wording"
)

var update = flag.Bool("update", false, "rewrite golden files")

// A script is a call as lines "+milliseconds event", counted from the line before. What the schedule
// wants follows each line, indented; it is the golden part. Between the lines time passes: the wakes that
// the schedule asked for come by themselves and are golden too. Events:
//
//	level LEVEL | spoke | heard | typed | murmur | hush [sometime] | quiet on|off|invited | hangup
//	said ID|last [cut|unheard|unsaid [SHARE TEXT]] (how much of the sound of TEXT was heard; 0.4+: more was to be made)
//	sentence (over just now) | began ID SERVER [ASKED] | adopted ID SERVER [SECONDS ago] | waits ID on|off | answered ID | lookup ID [SERVER]
//	doing ID KIND TEXT | remark ID TEXT | question QID WORK TEXT | closed QID | claimed QID | asked QID UTTERANCE
//	done ID SERVER TEXT | failed ID SERVER | gave UTTERANCE WORK TEXT | told ID | concerned ID | news TEXT
//	unheard ID,ID SERVER TEXT (they ended before the call)

// TestSchedules plays every script; -update rewrites the golden lines.
func TestSchedules(t *testing.T) {
	files, err := filepath.Glob("testdata/schedules/*.txt")
	if err != nil || len(files) < 10 {
		t.Fatalf("found %d scripts, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := playSchedule(t, string(b))
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if diff := gocmp.Diff(string(b), got); diff != "" {
				t.Errorf("the schedule differs (-want +got):\n%s", diff)
			}
		})
	}
}

// A schedulePlayer plays a script.
type schedulePlayer struct {
	schedule   *Schedule
	start, now time.Time
	wake       time.Time
	last       string // id of the newest DoSay
	counts     counted
	out        strings.Builder
}

// counted is what schedules counted, by word.
type counted map[string]int

func (c counted) add(word string, n int) { c[word] += n }

func playSchedule(t *testing.T, script string) string {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	p := &schedulePlayer{counts: counted{}, start: start, now: start}
	p.schedule = New(handoff.LevelMilestones, handoff.AskAgainAfter, "", p.counts.add)
	for line := range strings.Lines(script) {
		line = strings.TrimRight(line, "\n")
		switch {
		case strings.HasPrefix(line, "\t"): // golden
		case line == "" || line[0] == '#':
			p.out.WriteString(line + "\n")
		default:
			offset, event, _ := strings.Cut(line, " ")
			ms, err := strconv.Atoi(offset)
			if err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			p.passTo(p.now.Add(time.Duration(ms) * time.Millisecond))
			p.out.WriteString(line + "\n")
			if event == "wait" {
				continue
			}
			e, err := parseScheduleEvent(strings.Replace(event, "said last", "said "+p.last, 1), p.now)
			if err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			p.give(e)
		}
	}
	return p.out.String()
}

// passTo lets time pass, with the wakes in it.
func (p *schedulePlayer) passTo(end time.Time) {
	for !p.wake.IsZero() && !p.wake.After(end) {
		p.now, p.wake = p.wake, time.Time{}
		fmt.Fprintf(&p.out, "\t%s wake\n", p.clock(p.now))
		p.give(Wake{})
	}
	p.now = end
}

func (p *schedulePlayer) give(e Event) {
	stale := p.counts["stale"]
	effects := p.schedule.Step(p.now, e)
	if n := p.counts["stale"] - stale; n > 0 {
		fmt.Fprintf(&p.out, "\t%s drop %d\n", p.clock(p.now), n)
	}
	for _, x := range effects {
		if x.Act == DoWake {
			p.wake = x.At
			continue
		}
		if x.Act == DoSay {
			p.last = x.ID
		}
		shown := showEffect(x)
		if said, ok := e.(handoff.Said); ok && said.Cut && x.Act == DoGiven {
			shown += " cut"
		}
		fmt.Fprintf(&p.out, "\t%s %s\n", p.clock(p.now), shown)
	}
}

func (p *schedulePlayer) clock(at time.Time) string {
	return strconv.FormatFloat(at.Sub(p.start).Seconds(), 'f', -1, 64) + "s"
}

// class is how urgent it is that an utterance is heard.
func (x Effect) class() class {
	switch {
	case len(x.Works) > 0:
		return classFinal
	case x.Question != "":
		return classUrgent
	}
	return classSpeakable
}

func showEffect(x Effect) string {
	parts := []string{[]string{"note", "say", "given", "take back", "notify", "wake"}[x.Act]}
	if x.Act == DoSay {
		parts = append(parts, []string{"speakable", "urgent", "final"}[x.class()])
	}
	if x.ID != "" {
		parts = append(parts, x.ID)
	}
	if len(x.Works) > 0 {
		parts = append(parts, strings.Join(x.Works, ","))
	}
	if x.Question != "" {
		parts = append(parts, string(x.Question))
	}
	if x.Text != "" {
		parts = append(parts, "| "+strings.ReplaceAll(x.Text, "\n", " / "))
	}
	return strings.Join(parts, " ")
}

// parseScheduleEvent reads the words of an event; see the top of the file.
func parseScheduleEvent(line string, now time.Time) (Event, error) {
	word := strings.SplitN(line, " ", 4)
	for len(word) < 4 {
		word = append(word, "")
	}
	rest := strings.TrimSpace(word[2] + " " + word[3])
	switch word[0] {
	case "level":
		level, ok := handoff.ParseSpeechLevel(word[1])
		if !ok {
			return nil, fmt.Errorf("no level %q", word[1])
		}
		return LevelSet{level}, nil
	case "spoke":
		return handoff.Spoke{At: now}, nil
	case "heard", "typed":
		return handoff.Heard{Text: "words", Typed: word[0] == "typed", Began: now}, nil
	case "murmur":
		return Backchannel{}, nil
	case "hush":
		if word[1] == "sometime" {
			return Hush{}, nil
		}
		return Hush{Began: now}, nil
	case "quiet":
		return handoff.Quiet{On: word[1] != "off", Invited: word[1] == "invited"}, nil
	case "said":
		unsaid := word[2] == "unsaid"
		said := handoff.Said{ID: word[1], At: now, Cut: word[2] != "" && !unsaid, Unsaid: unsaid}
		if word[2] == "unheard" || unsaid {
			said.At = time.Time{}
		}
		share, text, _ := strings.Cut(word[3], " ")
		said.Share, _ = strconv.ParseFloat(strings.TrimSuffix(share, "+"), 64)
		said.Made, said.Text = share != "" && !strings.HasSuffix(share, "+"), text
		return said, nil
	case "sentence":
		return Sentence{now}, nil
	case "hangup":
		return handoff.CallEnded{}, nil
	case "began":
		return Began{ID: word[1], Server: word[2], Asked: word[3]}, nil
	case "adopted":
		ago, _ := strconv.Atoi(word[3])
		return Began{ID: word[1], Server: word[2], Since: now.Add(-time.Duration(ago) * time.Second), Answered: true}, nil
	case "waits":
		return Waits{word[1], word[2] == "on"}, nil
	case "answered":
		return AnsweredEvent{word[1]}, nil
	case "lookup":
		return Lookup{word[1], word[2]}, nil
	case "doing":
		return Doing{word[1], handoff.ItemKind(word[2]), word[3]}, nil
	case "remark":
		return Remark{word[1], rest}, nil
	case "question":
		return Question{handoff.QuestionID(word[1]), word[2], wording.Answer{Say: word[3]}}, nil
	case "closed":
		return QuestionClosed{handoff.QuestionID(word[1])}, nil
	case "claimed":
		return Claimed{handoff.QuestionID(word[1])}, nil
	case "asked":
		return Asked{handoff.QuestionID(word[1]), word[2]}, nil
	case "done":
		return Ended{Rec: handoff.Record{ID: word[1], Server: word[2], Prompt: "do " + word[1],
			Outcome: handoff.OutcomeResult, Text: word[3]}}, nil
	case "failed":
		return Ended{Rec: handoff.Record{ID: word[1], Server: word[2], Outcome: handoff.OutcomeFailed,
			Fault: handoff.Fault(handoff.CodeAgentFailed, word[2], "")}}, nil
	case "gave":
		return Gave{Utterance: word[1], Work: word[2], Message: wording.Answer{Say: word[3]}}, nil
	case "unheard":
		e := Unheard{Away: true}
		for id := range strings.SplitSeq(word[1], ",") {
			e.Recs = append(e.Recs, handoff.Record{ID: id, Server: word[2], Prompt: "do " + id,
				Outcome: handoff.OutcomeResult, Text: word[3]})
		}
		return e, nil
	case "news":
		return News{wording.Answer{Say: strings.TrimSpace(word[1] + " " + rest)}}, nil
	case "told":
		return Told{word[1]}, nil
	case "concerned":
		return Concerned{word[1]}, nil
	}
	return nil, fmt.Errorf("no event %q", word[0])
}

func TestParseSpeechLevel(t *testing.T) {
	for in, want := range map[string]handoff.SpeechLevel{"": handoff.LevelMilestones,
		"milestones": handoff.LevelMilestones, "chatty": handoff.LevelChatty, "quiet": handoff.LevelQuiet} {
		if got, ok := handoff.ParseSpeechLevel(in); !ok || got != want {
			t.Errorf("%q: %q %v", in, got, ok)
		}
	}
	if got, ok := handoff.ParseSpeechLevel("loud"); ok {
		t.Errorf("loud: %q", got)
	}
}

// TestHeartbeats holds the ages at which a silent work gives a heartbeat.
func TestHeartbeats(t *testing.T) {
	var got []time.Duration
	for n := range 6 {
		got = append(got, heartbeatAge(n))
	}
	want := []time.Duration{35 * time.Second, 2 * time.Minute, 5 * time.Minute, 15 * time.Minute, 25 * time.Minute,
		35 * time.Minute}
	if !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
}

// TestScheduleBounds holds that nothing grows without end, and that no outcome is lost to a bound.
func TestScheduleBounds(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	counts := counted{}
	s := New(handoff.LevelChatty, handoff.AskAgainAfter, "", counts.add)
	said := map[string]int{}
	give := func(e Event) {
		for _, x := range s.Step(now, e) {
			if x.Act == DoSay {
				for _, id := range x.Works {
					said[id]++
				}
			}
		}
	}
	give(handoff.Quiet{On: false})
	for i := range 2 * maxPaced {
		id := "w" + strconv.Itoa(i)
		give(Began{ID: id, Server: "bigpc", Answered: true})
		give(Lookup{ID: "r" + id})
		give(Question{ID: handoff.QuestionID("q" + id), Work: id, Message: wording.Answer{Say: "May I?"}})
		for range min(MaxPacedNotes, 1000/(i+1)) + 2 {
			give(Remark{id, "Something."})
		}
	}
	if s.works[0].notes != MaxPacedNotes {
		t.Errorf("%d notes", s.works[0].notes)
	}
	if len(s.works) != maxPaced || len(s.lookups) != maxLookups || len(s.questions) != maxOpenQuestions ||
		counts["full"] == 0 {
		t.Errorf("%d works, %d lookups, %d questions, %d refused", len(s.works), len(s.lookups), len(s.questions),
			counts["full"])
	}
	for _, w := range s.works {
		if len(w.remarks) > maxHeldRemarks {
			t.Fatalf("%d remarks held", len(w.remarks))
		}
	}
	const finals = (maxDeliveries + 32) * maxHeldFinals
	for i := range finals {
		give(Ended{Rec: handoff.Record{ID: "w" + strconv.Itoa(i), Server: "bigpc", Outcome: handoff.OutcomeResult,
			Text: "Done."}})
		if len(s.finals) >= maxHeldFinals && !s.asking() || len(s.deliveries) > maxDeliveries {
			t.Fatalf("%d outcomes held, %d on their way", len(s.finals), len(s.deliveries))
		}
	}
	for i := range finals {
		if id := "w" + strconv.Itoa(i); said[id] != 1 {
			t.Fatalf("outcome of %s said %d times", id, said[id])
		}
	}
}
