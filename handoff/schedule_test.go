package handoff

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
)

// A script is a call as lines "+milliseconds event", counted from the line before. What the schedule
// wants follows each line, indented; it is the golden part. Between the lines time passes: the wakes that
// the schedule asked for come by themselves and are golden too. Events:
//
//	level LEVEL | spoke | heard | typed | quiet on|off|invited | said ID|last [cut|unheard] | hangup
//	sentence (over just now) | began ID SERVER [TITLE] | adopted ID SERVER | answered ID | lookup ID [SERVER] | doing ID KIND TEXT | remark ID TEXT
//	question QID WORK TEXT | closed QID | claimed QID | asked QID UTTERANCE | done ID SERVER TEXT | failed ID SERVER | gave UTTERANCE WORK TEXT | concerned ID

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
	schedule   *schedule
	start, now time.Time
	wake       time.Time
	last       string // id of the newest doSay
	out        strings.Builder
}

func playSchedule(t *testing.T, script string) string {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	p := &schedulePlayer{schedule: newSchedule(LevelMilestones, AskAgainAfter), start: start, now: start}
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
		p.give(wakeEvent{})
	}
	p.now = end
}

func (p *schedulePlayer) give(e scheduleEvent) {
	for _, x := range p.schedule.step(p.now, e) {
		if x.act == doWake {
			p.wake = x.at
			continue
		}
		if x.act == doSay {
			p.last = x.id
		}
		fmt.Fprintf(&p.out, "\t%s %s\n", p.clock(p.now), showEffect(x))
	}
}

func (p *schedulePlayer) clock(at time.Time) string {
	return strconv.FormatFloat(at.Sub(p.start).Seconds(), 'f', -1, 64) + "s"
}

func showEffect(x scheduleEffect) string {
	parts := []string{[]string{"note", "say", "answer", "given", "keep", "drop", "take back", "notify", "wake"}[x.act]}
	if x.act == doSay {
		parts = append(parts, x.class.String())
	}
	if x.id != "" {
		parts = append(parts, x.id)
	}
	if len(x.works) > 0 {
		parts = append(parts, strings.Join(x.works, ","))
	}
	if x.question != "" {
		parts = append(parts, string(x.question))
	}
	if x.cut {
		parts = append(parts, "cut")
	}
	if x.count > 0 {
		parts = append(parts, strconv.Itoa(x.count))
	}
	if x.text != "" {
		parts = append(parts, "| "+strings.ReplaceAll(x.text, "\n", " / "))
	}
	return strings.Join(parts, " ")
}

// parseScheduleEvent reads the words of an event; see the top of the file.
func parseScheduleEvent(line string, now time.Time) (scheduleEvent, error) {
	word := strings.SplitN(line, " ", 4)
	for len(word) < 4 {
		word = append(word, "")
	}
	rest := strings.TrimSpace(word[2] + " " + word[3])
	switch word[0] {
	case "level":
		level, ok := ParseSpeechLevel(word[1])
		if !ok {
			return nil, fmt.Errorf("no level %q", word[1])
		}
		return levelEvent{level}, nil
	case "spoke":
		return Spoke{At: now}, nil
	case "heard", "typed":
		return Heard{Text: "words", Typed: word[0] == "typed", Began: now}, nil
	case "quiet":
		return Quiet{On: word[1] != "off", Invited: word[1] == "invited"}, nil
	case "said":
		said := Said{ID: word[1], At: now, Cut: word[2] != ""}
		if word[2] == "unheard" {
			said.At = time.Time{}
		}
		return said, nil
	case "sentence":
		return sentenceEvent{now}, nil
	case "hangup":
		return CallEnded{}, nil
	case "began":
		return beganEvent{id: word[1], server: word[2], title: word[3]}, nil
	case "adopted":
		return beganEvent{id: word[1], server: word[2], answered: true}, nil
	case "answered":
		return answeredEvent{word[1]}, nil
	case "lookup":
		return lookupEvent{word[1], word[2]}, nil
	case "doing":
		return doingEvent{word[1], ItemKind(word[2]), word[3]}, nil
	case "remark":
		return remarkEvent{word[1], rest}, nil
	case "question":
		return questionEvent{QuestionID(word[1]), word[2], word[3]}, nil
	case "closed":
		return questionClosedEvent{QuestionID(word[1])}, nil
	case "claimed":
		return claimedEvent{QuestionID(word[1])}, nil
	case "asked":
		return askedEvent{QuestionID(word[1]), word[2]}, nil
	case "done":
		return outcomeEvent{rec: Record{ID: word[1], Server: word[2], Outcome: OutcomeResult, Text: word[3]}}, nil
	case "failed":
		return outcomeEvent{rec: Record{ID: word[1], Server: word[2], Outcome: OutcomeFailed, Fault: Fault(CodeAgentFailed, word[2], "")}}, nil
	case "gave":
		return gaveEvent{utterance: word[1], works: []string{word[2]}, text: word[3]}, nil
	case "concerned":
		return concernedEvent{word[1]}, nil
	}
	return nil, fmt.Errorf("no event %q", word[0])
}

func TestParseSpeechLevel(t *testing.T) {
	for in, want := range map[string]SpeechLevel{"": LevelMilestones, "milestones": LevelMilestones, "chatty": LevelChatty, "quiet": LevelQuiet} {
		if got, ok := ParseSpeechLevel(in); !ok || got != want {
			t.Errorf("%q: %q %v", in, got, ok)
		}
	}
	if got, ok := ParseSpeechLevel("loud"); ok {
		t.Errorf("loud: %q", got)
	}
}

// TestBeats holds the ages at which a silent work gives a sign of life.
func TestBeats(t *testing.T) {
	var got []time.Duration
	for n := range 6 {
		got = append(got, beatAge(n))
	}
	want := []time.Duration{35 * time.Second, 2 * time.Minute, 5 * time.Minute, 15 * time.Minute, 25 * time.Minute, 35 * time.Minute}
	if !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
}

// TestScheduleBounds holds that nothing grows without end, and that no outcome is lost to a bound.
func TestScheduleBounds(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s := newSchedule(LevelChatty, AskAgainAfter)
	settled := map[string]int{}
	give := func(e scheduleEvent) {
		for _, x := range s.step(now, e) {
			if _, last := e.(CallEnded); x.act == doKeep && !last {
				t.Fatalf("kept while the call goes on: %v", x.works)
			}
			if x.act == doGiven || x.act == doKeep {
				for _, id := range x.works {
					settled[id]++
				}
			}
		}
	}
	give(Quiet{On: false})
	for i := range 2 * maxPaced {
		id := "w" + strconv.Itoa(i)
		give(beganEvent{id: id, server: "bigpc", answered: true})
		give(lookupEvent{id: "r" + id})
		give(questionEvent{id: QuestionID("q" + id), work: id, text: "May I?"})
		for range min(maxPacedNotes, 1000/(i+1)) + 2 {
			give(remarkEvent{id, "Something."})
		}
	}
	if s.works[0].notes != maxPacedNotes {
		t.Errorf("%d notes", s.works[0].notes)
	}
	if len(s.works) != maxPaced || len(s.lookups) != maxLookups || len(s.questions) != maxOpenQuestions || s.counts.overflow == 0 {
		t.Errorf("%d works, %d lookups, %d questions, %d refused", len(s.works), len(s.lookups), len(s.questions), s.counts.overflow)
	}
	for _, w := range s.works {
		if len(w.remarks) > maxHeldRemarks {
			t.Fatalf("%d remarks held", len(w.remarks))
		}
	}
	const finals = maxFlights*maxHeldFinals + maxUnheard/2
	for i := range finals {
		give(outcomeEvent{rec: Record{ID: "w" + strconv.Itoa(i), Server: "bigpc", Outcome: OutcomeResult, Text: "Done."}})
		if len(s.finals) >= maxHeldFinals || len(s.flights) > maxFlights {
			t.Fatalf("%d outcomes held, %d on their way", len(s.finals), len(s.flights))
		}
	}
	give(CallEnded{})
	for i := range finals {
		if id := "w" + strconv.Itoa(i); settled[id] != 1 {
			t.Fatalf("outcome of %s settled %d times", id, settled[id])
		}
	}
}
