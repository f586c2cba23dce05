package realtime

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"switchboard/realtime/events"
)

// firstSound is how long the model of this test takes from response.create to its first sound. It is assumed; with a
// slower model the gap is longer by the difference.
const firstSound = 800 * time.Millisecond

// The worst planned renewal: the voice speaks on when the session has ten seconds left, so that it is replaced in the
// middle of a sentence. In the record are the sound that the client gets and what the next session is asked, by the
// milliseconds since the replacement was due. The gap that the caller hears is the time between the two sounds. The
// call adds nothing to what the model takes.
const gapOfAPlannedRenewal = `
   -20 client: sound of r1
     0 client: response.done incomplete
     0 model: session.update
     0 model: conversation.item.create
     0 model: response.create
   800 client: response.created
   800 client: sound of r2
gap 820 ms, at most 1500
`

func TestGapOfAPlannedRenewal(t *testing.T) {
	playRenewed(t, func(s *stage, h *successors) {
		ends := func() string {
			return string(events.Set([]byte(freshSession), "session.expires_at", jsonSeconds(time.Now().Add(time.Hour))))
		}
		h.lose()
		h.begin(ends())
		due := s.call.renewal.latest
		old, step := h.made[0], 20*time.Millisecond
		s.wait(time.Until(due.Add(-wallLead + wallLatest - time.Second)))
		s.feed(s.call.takeFrom(old), []string{began("r1", "")})
		s.wait(2 * time.Second)
		h.from(ends()) // the next session is there long before, and waits for a quiet moment
		next := h.newest()
		for time.Since(due) < -time.Second {
			s.feed(s.call.takeFrom(old), []string{audio("r1", time.Second)})
			s.wait(time.Second)
			s.client.sent()
		}
		next.sent()
		record, last, gap := "\n", time.Time{}, time.Duration(0)
		write := func(who, what string) {
			if who == "client" && strings.HasPrefix(what, "sound of r1") {
				last = time.Now()
				return // the newest is written with what follows it
			}
			if !last.IsZero() && !strings.Contains(record, "r1") {
				record += fmt.Sprintf("%6d client: sound of r1\n", last.Sub(due).Milliseconds())
			}
			record += fmt.Sprintf("%6d %s: %s\n", time.Since(due).Milliseconds(), who, what)
			if strings.HasPrefix(what, "sound of r2") {
				gap = time.Since(last)
			}
		}
		look := func() (asked string) {
			for _, e := range s.client.sent() {
				switch kind := gjson.Get(e, "type").String(); kind {
				case events.TypeAudioDelta:
					write("client", "sound of "+gjson.Get(e, "response_id").String())
				case events.TypeDone:
					write("client", kind+" "+gjson.Get(e, "response.status").String())
				default:
					write("client", kind)
				}
			}
			for _, e := range next.sent() {
				kind := gjson.Get(e, "type").String()
				if write("model", kind); kind == events.TypeCreate {
					asked = tagIn(e)
				}
			}
			return asked
		}
		answers, tag := time.Time{}, ""
		for gap == 0 && time.Since(due) < 10*time.Second {
			if answers.IsZero() {
				s.feed(s.call.takeFrom(old), []string{audio("r1", step)})
			} else if !time.Now().Before(answers) {
				h.from(began("r2", tag), audio("r2", step))
			}
			if asked := look(); asked != "" {
				answers, tag = time.Now().Add(firstSound), asked
			}
			if gap == 0 {
				s.wait(step)
			}
		}
		const most = 1500 * time.Millisecond
		record += fmt.Sprintf("gap %d ms, at most %d\n", gap.Milliseconds(), most.Milliseconds())
		if record != gapOfAPlannedRenewal || gap > most {
			t.Errorf("the record is %s", record)
		}
		s.model = next.wire
	})
}
