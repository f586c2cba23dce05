package call

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
)

var (
	conversations = flag.Int("conversations", 300, "how many random conversations are played")
	conversation  = flag.Uint64("conversation", 0, "the one random conversation that is played; 0: many")
)

// TestRandomConversations plays conversations that nobody wrote: machines that are lost, refuse and forget, a ledger
// that is slow or away, requests, stops, hang-ups and restarts at any moment. What each of them has to keep is what
// [calltest.CheckTrace] says, and that every request of the voice model is answered exactly once.
func TestRandomConversations(t *testing.T) {
	seeds := []uint64{620} // the page was told of an end that the ledger had not
	for seed := range uint64(*conversations) {
		seeds = append(seeds, seed+1)
	}
	if *conversation != 0 {
		seeds = []uint64{*conversation}
	}
	for _, seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			world, script := randomConversation(rand.New(rand.NewPCG(seed, 7)))
			synctest.Test(t, func(t *testing.T) {
				ladder := play(t, world, script)
				checkAnswers(t, ladder)
				if t.Failed() || *conversation != 0 {
					t.Logf("-- world --\n%s-- call --\n%s-- ladder --\n%s", world, script, ladder)
				}
			})
		})
	}
}

// A line that [checkAnswers] looks at: a request, an answer, or the end of a call.
var rungLine = regexp.MustCompile(`^ *(\d+)  (?:call   model: (c\d+) |say    (?:call \d+, )?answer (c\d+)\b|call   caller: (hangs up))`)

// patienceOfModel is how long a request may stay without an answer at the most, in milliseconds.
const patienceOfModel = 60_000

// checkAnswers holds that every request has an answer unless its call ended soon. That none has two, the voice of
// the ladder holds.
func checkAnswers(t *testing.T, ladder string) {
	waits := map[string]int{} // since when
	for line := range strings.Lines(ladder) {
		m := rungLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		at, _ := strconv.Atoi(m[1])
		for id, since := range waits {
			if at-since > patienceOfModel {
				t.Errorf("the request %s was not answered by %d ms", id, at)
			}
		}
		switch {
		case m[2] != "":
			waits[m[2]] = at
		case m[3] != "":
			delete(waits, m[3])
		default:
			clear(waits)
		}
	}
}

// A chance makes the choices of one conversation.
type chance struct{ *rand.Rand }

func (c chance) of(percent int) bool       { return c.IntN(100) < percent }
func (c chance) one(list ...string) string { return list[c.IntN(len(list))] }
func (c chance) ms(least, most int) string { return fmt.Sprintf("%dms", least+c.IntN(most-least)) }
func (c chance) thread() string {
	return c.one("t1", "t1", "t1", "t5", "fresh-1", "copy-t1", "aside-1")
}

// randomConversation returns a world and a script.
func randomConversation(r *rand.Rand) (world, script string) {
	c := chance{r}
	var w strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&w, format+"\n", args...) }
	line("server bigpc\nserver laptop")
	if c.of(80) {
		line("sticky bigpc t1 Auth refactor")
	}
	if c.of(60) {
		line("sticky laptop t5 Notes")
	}
	line("attach %s\nstart %s\npatience %s", c.ms(0, 900), c.ms(0, 1900), c.ms(4000, 60000))
	for _, thread := range []string{"*", "t1", "t5", "fresh-1", "copy-t1", "aside-1"} {
		line("turn %s %s", thread, c.turn())
	}
	c.trouble(line)
	return w.String(), c.script()
}

// turn is what a turn does.
func (c chance) turn() string {
	var steps []string
	ends := []string{"completed All pass.", "completed All pass.", "failed", "completed One test fails.",
		"unread Looking.", "missing"}
	if c.of(5) {
		steps, ends = append(steps, "hidden"), ends[:5] // an agent that finds a turn holds it
	}
	for range c.IntN(4) {
		steps = append(steps, c.ms(0, 9000)+" "+c.one("message Looking at it.", "command go test ./...",
			"message Half of it is done.", "gone", "gone"))
	}
	if c.of(30) { // one: a question may wait for half an hour
		steps = append(steps, c.ms(0, 9000)+" "+c.one("ask git push origin main", "ask npm install", "asks Which branch?",
			"asklost 3s npm install"))
	}
	return strings.Join(append(steps, c.ms(0, 40000)+" "+c.one(ends...)), "; ")
}

// trouble is what goes wrong.
func (c chance) trouble(line func(string, ...any)) {
	for range c.IntN(3) {
		line("%s start %s %s", c.one("once", "once", "fail"), c.thread(),
			c.one("busy", "unknown_start", "unknown_start", "unreachable", "refused", "session_gone", "session_in_use"))
	}
	for range c.IntN(3) {
		line("%s attach %s %s", c.one("once", "once", "fail"), c.thread(),
			c.one("session_gone", "session_in_use", "unreachable"))
	}
	if c.of(30) {
		line("once steer %s %s", c.thread(), c.one("unreachable", "refused", "not_pending", "unsupported"))
	}
	if c.of(20) {
		line("once interrupt %s %s", c.thread(), c.one("overloaded", "refused", "not_pending"))
	}
	for _, thread := range []string{"t1", "t5", "fresh-1"} {
		if c.of(40) {
			line("reconciles %s %s", thread, c.one("found", "never", "lost"))
		}
	}
	if c.of(15) {
		line("deaf t1")
	}
	if c.of(10) {
		line("running t1 %s", c.ms(1, 40000))
	}
	if c.of(40) {
		from := c.IntN(60000)
		line("down %s %dms %dms", c.one("bigpc", "laptop"), from, from+c.IntN(40000))
	}
	if c.of(25) {
		from := c.IntN(60000)
		line("forgetful %dms %dms", from, from+c.IntN(20000))
	}
	if c.of(50) {
		line("slow %s %s", c.one("accepted", "dispatching", "delivered"), c.ms(1, 4000))
	} else if c.of(30) {
		line("lingering %s", c.ms(1, 3000))
	}
	if c.of(15) {
		line("adopting %s", c.ms(1, 3000))
	}
	if c.of(20) {
		line("audit %s", c.ms(1, 3000))
	}
}

// script is what the caller, the voice model and the page do.
func (c chance) script() string {
	var s strings.Builder
	at, calls, requests, posts, lives := 0, 0, 0, 0, 0
	line := func(format string, args ...any) { fmt.Fprintf(&s, "%d "+format+"\n", append([]any{at}, args...)...) }
	for range 4 + c.IntN(14) {
		if c.of(70) {
			at += c.IntN(3000)
		} else {
			at += c.IntN(60000)
		}
		if calls == 0 && c.of(80) {
			line("call")
			calls++
			continue
		}
		switch n := c.IntN(100); {
		case n < 55 && calls > 0:
			requests++
			line("request c%d %s", requests, c.request(requests))
		case n < 60 && calls > 0:
			line("%s %s", c.one("heard", "typed"), c.one("yes, do it", "no", "okay, wait, don't", "how is the weather"))
		case n < 66:
			line("decide %s", c.one("accept", "decline"))
		case n < 70:
			line("%s h-%d", c.one("stop", "told"), 1+c.IntN(requests+posts+1))
		case n < 78:
			posts++
			line("post k%d %s job %d", posts, c.one("bigpc -", "bigpc t1", "bigpc new", "laptop -", "laptop new"), 100+posts)
		case n < 82 && posts > 0:
			line("steer s%d h-%d and more of %d", at, 1+c.IntN(requests+posts), at)
		case n < 88 && calls > 0:
			line("hangup")
			calls--
		case n < 92 && calls > 0:
			line("%s", c.one("spoke", "quiet on", "quiet off"))
		case n < 96 && lives < 2:
			lives++
			line("restart %s", string(rune('h'+lives)))
			calls = 0
		case calls < 2:
			line("call")
			calls++
		}
	}
	return s.String()
}

// request is a call of a tool, with words of its own.
func (c chance) request(n int) string {
	server := c.one("bigpc", "bigpc", "bigpc", "laptop", "nowhere")
	thread := c.one("", "", "", "", `"thread_id":"new",`)
	if server == "bigpc" && c.of(20) {
		thread = `"thread_id":"t1",`
	}
	switch m := c.IntN(100); {
	case m < 60:
		return fmt.Sprintf(`codex {"server":%q,%s"prompt":"job %03d"}`, server, thread, n)
	case m < 70:
		return fmt.Sprintf(`queue_next {"server":%q,"prompt":"job %03d"}`, server, n)
	case m < 78:
		return fmt.Sprintf(`run_on_server {"server":%q,"prompt":"job %03d"}`, server, n)
	case m < 88:
		return c.one(`stop_work {}`, `stop_work {"server":"bigpc"}`)
	case m < 94:
		return `status {}`
	default:
		return c.one(`list_servers {}`, `list_sessions {}`, `codex {"server":`, `set_updates {"level":"chatty"}`)
	}
}
