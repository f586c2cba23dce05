package evidence

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/consent"
)

// A timeline is a call with questions, as lines of seconds and what happens then.
type timeline struct {
	t     *testing.T
	e     Evidence
	began time.Time
	asks  map[string]OpenQuestion
	again bool // the words that ask again are shown
}

// timelineQuestions are what agents may ask in a timeline.
var timelineQuestions = map[string]OpenQuestion{
	"install": askedInTimeline("bigpc", "npm install", "Bigpc wants to run npm install. May it?"),
	"push":    askedInTimeline("laptop", "git push origin main", "The laptop wants to run git push origin main. May it?"),
	"test":    askedInTimeline("bigpc", "npm test", "Bigpc wants to run npm test. May it?"),
	"status":  askedInTimeline("bigpc", "git status", "Bigpc wants to run git status. May it?"),
	"fetch":   askedInTimeline("bigpc", "curl https://docs.example.com -o x", "Bigpc wants to run curl. May it?"),
	"long": askedInTimeline("bigpc", "npm install zod vite react jest vitest",
		"Bigpc wants to run npm install. May it?"),
	"edit": editsInTimeline("bigpc", "/src/api/cart.go", "/src/api/cart_test.go"),
	"sudo": askedInTimeline("bigpc", "sudo reboot", "Bigpc wants to run sudo reboot. May it?"),
}

func askedInTimeline(server, command, text string) OpenQuestion {
	q := handoff.Question{ID: handoff.QuestionID(server + ":1:" + command), Kind: handoff.QuestionCommand,
		Command: command, Cwd: "/src/api", Decisions: []handoff.Decision{handoff.DecisionAccept, handoff.DecisionDecline}}
	return OpenQuestion{Question: q, Server: server, Workspace: "/src/api",
		About: AskedAbout(q, []string{server}, "", text)}
}

func editsInTimeline(server string, files ...string) OpenQuestion {
	q := handoff.Question{ID: handoff.QuestionID(server + ":1:edit"), Kind: handoff.QuestionFileChange, Changes: files,
		Cwd: "/src/api", Decisions: []handoff.Decision{handoff.DecisionAccept, handoff.DecisionDecline}}
	return OpenQuestion{Question: q, Server: server, Workspace: "/src/api",
		About: AskedAbout(q, []string{server}, "", server+" asks for permission to change files")}
}

func newTimeline(t *testing.T) *timeline {
	return &timeline{t: t, began: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), asks: timelineQuestions}
}

func (l *timeline) at(second string) time.Time {
	d, err := time.ParseDuration(second + "s")
	if err != nil {
		l.t.Fatal(err)
	}
	return l.began.Add(d)
}

// play performs a line and returns the ruling of a claim, else "".
func (l *timeline) play(line string) string {
	f := strings.Fields(line)
	at := l.at(f[0])
	switch f[1] {
	case "open":
		o := l.asks[f[2]]
		if len(f) > 3 {
			o.Level = f[3]
		}
		l.e.Open(o)
	case "ask": // the announcement goes out; its utterance is named after the question and the time
		l.e.Announced(l.asks[f[2]].Question.ID, f[2], at)
	case "said": // with what the voice said, if it tells
		l.e.Said(handoff.Said{ID: f[2], At: at, Text: strings.Join(f[3:], " ")})
	case "unsaid": // the voice model did not say it
		l.e.Said(handoff.Said{ID: f[2]})
	case "cut":
		l.e.Said(handoff.Said{ID: f[2], At: at, Cut: true})
	case "spoke":
		l.e.Spoke(handoff.Spoke{At: at})
	case "undated": // the voice does not know when they began
		l.e.Heard(handoff.Heard{Text: strings.Join(f[2:], " ")})
	case "heard", "typed", "seen", "loose": // seen: typed, with the page before them; loose: by whomever
		l.e.Heard(handoff.Heard{Text: strings.Join(f[2:], " "), Typed: f[1] != "heard",
			Shown: f[1] == "seen" || f[1] == "loose", Loose: f[1] == "loose", Began: at})
	case "close":
		l.e.Closed(l.asks[f[2]].Question.ID, at)
	case "claim": // "10 claim install accept", with "@6" when it came earlier than just before
		o := l.asks[f[2]]
		c := Claim{Question: o.Question.ID, Hash: handoff.CommandHash(o.Question, o.Server), Wants: handoff.Decision(f[3]),
			Came: at.Add(-lastWord)}
		for _, extra := range f[4:] {
			if came, ok := strings.CutPrefix(extra, "@"); ok {
				c.Came = l.at(came)
			} else {
				c.Hash = extra
			}
		}
		v := l.e.Judge(c, at)
		out := v.Ruling.String()
		if v.Decision != "" {
			out += " " + string(v.Decision) + " by " + v.By
		}
		if v.Fault != nil {
			out += " (" + v.Fault.Subject + ")"
		}
		out = strings.TrimSuffix(out, " ()")
		if v.Again != "" && l.again {
			out += " " + v.Again
		}
		return out
	default:
		l.t.Fatalf("no verb in %q", line)
	}
	return ""
}

// askedOnce and askedTwo begin scripts: one question was heard, or two.
const (
	askedOnce = "0 open install\n1 ask install\n4 said install\n"
	askedTwo  = askedOnce + "4 open push\n5 ask push\n8 said push\n"
)

// evidenceCases are scripts and what is judged at each claim.
var evidenceCases = []struct{ name, script, want string }{
	{"yes after the question", askedOnce + "5 heard Yes, go ahead.\n6 claim install accept", "accept accept by voice"},
	{"what the voice really said, heard back",
		"0 open install\n1 ask install\n4 said install Okay, bigpc would run npm install, and you decide: no or go ahead " +
			"and do it\n5 heard go ahead and do it\n6 claim install accept\n10 claim install accept @6",
		"wait; ask again (I heard no answer after the question)"},
	{"its echo, and then a yes", "0 open install\n1 ask install\n4 said install Shall I run npm install on bigpc, or " +
		"no?\n5 heard run npm install on big pc or no\n6 heard yes\n7 claim install accept", "accept accept by voice"},
	{"silence that a recogniser made words of takes no yes away",
		askedOnce + "5 heard yes\n6 heard Thanks for watching!\n7 claim install accept", "accept accept by voice"},
	{"such words do not turn a claimed no against a yes",
		askedOnce + "5 heard yes\n6 heard Thanks for watching!\n7 claim install decline",
		"ask again (I heard both a yes and a no)"},
	{"a yes that names the act is not idle", askedOnce + "5 heard okay install\n6 claim install accept",
		"accept accept by voice"},
	{"not yet is later", askedOnce + "5 heard not yet\n6 claim install accept", "later (they asked for time)"},
	{"they do not know", askedOnce + "5 heard I don't know\n6 claim install accept",
		"ask again (the answer was not plain)"},
	{"typed", askedOnce + "5 typed yes\n6 claim install accept", "accept accept by typed"},
	{"yes before the question was heard", askedOnce + "3 heard yes\n6 claim install accept\n10 claim install accept @6",
		"wait; ask again (I heard no answer after the question)"},
	{"typed by whomever", askedOnce + "5 loose yes\n6 claim install accept",
		"ask again (in this call I can't tell who types)"},
	{"a no typed by whomever", askedOnce + "5 loose no\n6 claim install accept", "decline decline by typed"},
	{"spoken, and a no typed by whomever", askedOnce + "5 heard yes\n6 loose wait, don't\n7 claim install accept",
		"decline decline by typed"},
	{"typed by whomever, and spoken", askedOnce + "5 loose yes\n6 spoke\n6.1 heard yes\n8 claim install accept",
		"accept accept by voice"},
	{"typed into the question that the page shows", "0 open install\n1 ask install\n3 seen yes\n3.1 claim install accept",
		"accept accept by typed"},
	{"typed into the question that no page shows", "0 open install\n1 ask install\n3 typed yes\n3.1 claim install accept",
		"ask again (the question had not been heard to its end)"},
	{"typed before the question can have been read",
		"0 open install\n1 ask install\n2 seen yes\n2.1 claim install accept",
		"ask again (the question had not been heard to its end)"},
	{"typed before the question was shown", "0 seen yes\n0.5 open install\n1 ask install\n2 claim install accept", "wait"},
	{"typed into the question, but spoken against",
		"0 open install\n1 ask install\n3 seen yes\n3.1 spoke\n3.2 claim install accept\n4 heard wait don't\n4.5 claim " +
			"install accept @3.2", "wait; decline decline by voice"},
	{"a no typed into the question", "0 open install\n1 ask install\n3 seen no\n3.1 claim install accept",
		"decline decline by typed"},
	{"typed for one of two that the page shows",
		"0 open install\n0 open push\n1 ask install\n2 ask push\n5 seen yes\n5.1 claim install accept",
		"ask again (more than one question is open)"},
	{"typed into it after it was asked again",
		"0 open install\n1 ask install\n3 seen what does it do\n3.1 claim install accept\n3.2 ask install\n4 claim install " +
			"accept", "ask again (the answer was not plain); wait"},
	{"typed before it was heard", askedOnce + "2 typed yes\n10 claim install accept @6",
		"ask again (I heard no answer after the question)"},
	{"yes the moment it ended", askedOnce + "4 heard yes\n10 claim install accept @6",
		"ask again (I heard no answer after the question)"},
	{"barge-in", "0 open install\n1 ask install\n2 spoke\n2 cut install\n2 heard yes\n3 claim install accept",
		"ask again (the question had not been heard to its end)"},
	{"not announced", "0 open install\n2 heard yes\n3 claim install accept",
		"ask again (the question had not been heard to its end)"},
	{"still being asked", "0 open install\n1 ask install\n3 heard yes\n3 claim install accept\n7 claim install accept @3",
		"wait; ask again (the question had not been heard to its end)"},
	{"asked again and heard", askedOnce +
		"5 heard what does it do?\n6 claim install accept\n7 ask install\n9 said install\n10 heard yes\n11 claim install " +
		"accept", "ask again (the answer was not plain); accept accept by voice"},
	{"a yes from before asking again",
		askedOnce + "5 heard what?\n6 claim install accept\n7 heard yes\n8 ask install\n9 said install\n14 claim install " +
			"accept @10", "ask again (the answer was not plain); needs a tap (I have asked twice)"},
	{"not more than twice", askedOnce +
		"5 heard what?\n6 claim install accept\n7 ask install\n9 said install\n10 heard what?\n11 claim install accept",
		"ask again (the answer was not plain); needs a tap (I have asked twice)"},
	{"cut three times", "0 open install\n1 ask install\n2 cut install\n3 ask install\n4 cut install\n5 ask install\n6 " +
		"cut install\n7 heard yes\n12 claim install accept @7", "needs a tap (I have asked twice)"},
	{"no", askedOnce + "5 heard no\n6 claim install accept", "decline decline by voice"},
	{"okay, wait, don't", askedOnce + "5 heard Okay, wait, don't.\n6 claim install accept", "decline decline by voice"},
	{"hold on", askedOnce + "5 heard hold on\n6 claim install accept\n20 heard okay go ahead\n21 claim install accept",
		"later (they asked for time); accept accept by voice"},
	{"yes, then no", askedOnce + "5 heard yes\n6 heard no, stop\n7 claim install accept", "decline decline by voice"},
	{"no, then yes", askedOnce + "5 heard no\n6 heard yes\n7 claim install accept",
		"ask again (I heard both a yes and a no)"},
	{"wait, then yes", askedOnce + "5 heard wait\n6 heard yes\n7 claim install accept",
		"ask again (I heard both a yes and a no)"},
	{"transcripts out of order", askedOnce + "6 heard don't\n5 heard yes\n7 claim install accept",
		"decline decline by voice"},
	{"yes and thanks", askedOnce + "5 heard yes\n6 heard thank you\n7 claim install accept", "accept accept by voice"},
	{"the transcript comes late", askedOnce + "5 spoke\n6 claim install accept\n5 heard yes\n7 claim install accept @6",
		"wait; accept accept by voice"},
	{"it never comes", askedOnce + "5 spoke\n6 claim install accept\n10 claim install accept @6",
		"wait; ask again (I heard no answer after the question)"},
	{"okay, and they speak on as it is claimed",
		askedOnce + "5 spoke\n5 heard okay\n6 claim install accept @6\n5.9 spoke\n6.3 claim install accept @6\n5.9 heard " +
			"wait, don't\n7 claim install accept @6", "wait; wait; decline decline by voice"},
	{"nothing more comes", askedOnce + "5 spoke\n5 heard okay\n6 claim install accept @6\n6.3 claim install accept @6",
		"wait; accept accept by voice"},
	{"typed, nothing more is waited for", askedOnce + "5 typed okay\n6 claim install accept @6", "accept accept by typed"},
	{"they speak on", askedOnce + "5 spoke\n5 heard yes\n6 spoke\n7 claim install accept\n11 claim install accept @7",
		"wait; ask again (I did not get all of what was said)"},
	{"a yes of which nobody knows when it began",
		askedOnce + "5 undated yes\n6 claim install accept\n10 claim install accept @6",
		"wait; ask again (I heard no answer after the question)"},
	{"it is the one that began", askedOnce + "5 spoke\n5 undated yes\n6 claim install accept", "accept accept by voice"},
	{"it may be the one that began before",
		"0 open install\n1 ask install\n3 spoke\n4 said install\n5 spoke\n6 undated yes\n7 claim install accept\n11 claim " +
			"install accept @7", "wait; ask again (I heard no answer after the question)"},
	{"a cough after the yes", askedOnce + "5 spoke\n5 heard yes\n6 spoke\n6 heard\n7 claim install accept",
		"accept accept by voice"},
	{"a noise before the yes", askedOnce +
		"5 spoke\n6 spoke\n6 heard yes\n7 claim install accept\n11 claim install accept @7", "wait; accept accept by voice"},
	{"our own echo", askedOnce + "4.1 heard wants to run npm install may it\n5 heard yes\n6 claim install accept",
		"accept accept by voice"},
	{"only our own echo", askedOnce + "4.1 heard run npm install\n12 claim install accept @6",
		"ask again (I heard no answer after the question)"},
	{"too late", askedOnce + "125 heard yes\n126 claim install accept @120",
		"ask again (I heard no answer after the question)"},
	{"an old yes", askedOnce + "5 heard yes\n126 claim install accept @120",
		"ask again (I heard no answer after the question)"},
	{"once only", askedOnce + "5 heard yes\n6 claim install accept\n7 claim install accept",
		"accept accept by voice; closed"},
	{"closed", askedOnce + "5 heard yes\n5 close install\n6 claim install accept", "closed"},
	{"changed", askedOnce + "5 heard yes\n6 claim install accept 0badc0de", "needs a tap (it changed after I asked)"},
	{"for the session", askedOnce + "5 heard yes\n6 claim install accept_for_session",
		"needs a tap (allowing it for the whole session cannot be done by voice)"},
	{"another word", askedOnce + "5 heard yes\n6 claim install certainly", "needs a tap (it cannot simply be allowed)"},
	{"high", "0 open sudo\n1 ask sudo\n2 said sudo\n3 heard yes\n4 claim sudo accept",
		"needs a tap (it is too risky to be allowed by voice)"},
	{"high, declined", "0 open sudo\n1 ask sudo\n2 said sudo\n3 heard no\n4 claim sudo decline",
		"decline decline by voice"},
	{"medium where only low may",
		"0 open install low\n1 ask install\n2 said install\n3 heard yes\n4 claim install accept",
		"needs a tap (it is too risky to be allowed by voice)"},
	{"low where low may", "0 open status low\n1 ask status\n2 said status\n3 heard yes\n4 claim status accept",
		"accept accept by voice"},
	{"none", "0 open test none\n1 ask test\n2 said test\n3 heard yes\n4 claim test accept",
		"needs a tap (nothing may be allowed by voice on that machine)"},
	{"an unknown level", "0 open test all\n1 ask test\n2 said test\n3 heard yes\n4 claim test accept",
		"needs a tap (it is too risky to be allowed by voice)"},
	{"declined without a word", askedOnce + "6 claim install decline\n10 claim install decline @6",
		"wait; ask again (I heard no answer after the question)"},
	{"declined, and they only said thanks", askedOnce + "5 heard thank you\n6 claim install decline",
		"ask again (I heard no answer after the question)"},
	{"declined, and they do not know", askedOnce + "5 heard I don't know\n6 claim install decline",
		"ask again (the answer was not plain)"},
	{"declined, and they asked back", askedOnce + "5 heard which one?\n6 claim install stop",
		"ask again (the answer was not plain)"},
	{"declined, and they asked for time", askedOnce + "5 heard hold on\n6 claim install decline",
		"later (they asked for time)"},
	{"declined, and twice it was not plain",
		askedOnce + "5 heard I don't know\n6 claim install decline\n7 ask install\n9 said install\n10 heard why?\n11 claim " +
			"install decline", "ask again (the answer was not plain); needs a tap (I have asked twice)"},
	{"a no, and then more", askedOnce + "5 heard no\n6 heard I'd rather look at it myself\n7 claim install decline",
		"decline decline by voice"},
	{"they do not know, and then a no", askedOnce + "5 heard I don't know\n6 heard no\n7 claim install decline",
		"decline decline by voice"},
	{"a no and thanks", askedOnce + "5 heard no\n6 heard thank you\n7 claim install decline", "decline decline by voice"},
	{"declined, and no transcript is to be had",
		askedOnce + "5 spoke\n6 claim install decline\n10 claim install decline @6", "wait; decline decline by voice"},
	{"declined into the question",
		"0 open install\n1 ask install\n2 spoke\n2 cut install\n2 heard no, don't\n3 claim install decline\n7 claim " +
			"install decline @3", "wait; decline decline by voice"},
	{"a yes into the question, declined",
		"0 open install\n1 ask install\n2 spoke\n2 cut install\n2 heard yes\n7 claim install decline @3",
		"ask again (the question had not been heard to its end)"},
	{"a no from before the question",
		"0 open install\n1 heard no\n2 ask install\n5 said install\n10 claim install decline @6",
		"ask again (I heard no answer after the question)"},
	{"a no of which nobody knows when it began", askedOnce + "5 undated no\n10 claim install decline @6",
		"decline decline by voice"},
	{"two open, and a no of which nobody knows when it began", askedTwo + "9 undated no\n14 claim push decline @10",
		"ask again (more than one question is open)"},
	{"one no into a question is not two",
		"0 open push\n1 ask push\n2 cut push\n2 heard no, don't push\n2 open install\n7 claim push decline @3\n8 ask " +
			"install\n9 said install\n14 claim install decline @10",
		"decline decline by voice; ask again (I heard no answer after the question)"},
	{"declined before it was asked in this call", "0 heard tell bigpc no\n1 open install\n6 claim install decline @1",
		"decline decline by voice"},
	{"two open, and a no to the other into the question",
		"0 open push\n1 ask push\n3 said push\n4 open install\n5 ask install\n6 cut install\n6 heard no, don't push\n11 " +
			"claim install decline @7", "ask again (more than one question is open)"},
	{"stop", askedOnce + "5 heard no stop it\n6 claim install stop", "decline stop by voice"},
	{"declined against a yes", askedOnce + "5 heard yes\n6 claim install decline",
		"ask again (I heard both a yes and a no)"},
	{"two open, a bare yes", askedTwo + "9 heard yes\n10 claim push accept", "ask again (more than one question is open)"},
	{"two open, by machine", askedTwo + "9 heard yes, on bigpc\n10 claim install accept", "accept accept by voice"},
	{"two open, by act", askedTwo + "9 heard yes push it\n10 claim push accept", "accept accept by voice"},
	{"two open, the other claimed", askedTwo + "9 heard yes push it\n10 claim install accept",
		"ask again (the answer was not plain)"},
	{"two open, a bare no", askedTwo + "9 heard no\n10 claim push accept", "ask again (more than one question is open)"},
	{"two open, a named no", askedTwo + "9 heard no, not on the laptop\n10 claim push decline",
		"decline decline by voice"},
	{"one yes is not two", askedTwo + "9 heard yes, on bigpc\n10 claim install accept\n15 claim push accept @11",
		"accept accept by voice; ask again (I heard no answer after the question)"},
	{"two on one machine", askedOnce +
		"4 open test\n5 ask test\n8 said test\n9 heard yes on bigpc\n10 claim install accept",
		"ask again (more than one question is open)"},
	{"two on one machine, by act",
		askedOnce + "4 open test\n5 ask test\n8 said test\n9 heard yes install it\n10 claim install accept",
		"accept accept by voice"},
	{"the other was asked later", askedOnce + "5 heard yes\n5.5 open push\n6 ask push\n7 claim install accept",
		"accept accept by voice"},
	{"the other is long ago", "0 open push\n1 ask push\n2 said push\n190 open install\n191 ask install\n194 said " +
		"install\n195 heard yes\n196 claim install accept", "accept accept by voice"},
	{"the other was closed after the yes", askedTwo + "9 heard yes\n10 close push\n11 claim install accept",
		"ask again (more than one question is open)"},
	{"the other was closed before the yes", askedTwo + "8.5 close push\n9 heard yes\n10 claim install accept",
		"accept accept by voice"},
	{"a bare yes from before the other was asked again",
		askedTwo + "9 heard yes\n10 claim install accept\n11 ask install\n12 said install\n13 heard yes on bigpc\n14 claim " +
			"install accept\n14.5 claim push accept",
		"ask again (more than one question is open); accept accept by voice; ask again (more than one question is open)"},
	{"a yes half a minute old", askedOnce + "5 heard yes\n36 claim install accept", "ask again (the answer is too old)"},
	{"a no half a minute old", askedOnce + "5 heard no\n36 claim install accept", "decline decline by voice"},
	{"an old no weighs against a new yes", askedOnce + "5 heard no\n60 heard yes\n61 claim install accept",
		"ask again (I heard both a yes and a no)"},
	{"the voice named only the machine",
		"0 open install\n1 ask install\n4 said install Big P C would like to do something, yes or no?\n5 heard yes\n10 " +
			"claim install accept @6", "ask again (the question had not been heard to its end)"},
	{"the voice named only the act",
		"0 open install\n1 ask install\n4 said install May it run npm install?\n5 heard yes\n10 claim install accept @6",
		"ask again (the question had not been heard to its end)"},
	{"the voice named the machine and half of the act",
		"0 open install\n1 ask install\n4 said install May bigpc install the packages?\n5 heard yes\n10 claim install " +
			"accept @6", "ask again (the question had not been heard to its end)"},
	{"the voice named machine and act",
		"0 open install\n1 ask install\n4 said install Big P C wants to run N P M install, yes or no?\n5 heard yes\n6 " +
			"claim install accept", "accept accept by voice"},
	{"a small thing on the machine",
		"0 open push\n1 ask push\n4 said push One small thing on the laptop, shall I?\n5 heard go ahead\n10 claim push " +
			"accept @6", "ask again (the question had not been heard to its end)"},
	{"the machine wants to finish the work",
		"0 open fetch\n1 ask fetch\n4 said fetch bigpc wants to finish the work, okay?\n5 heard okay thanks\n10 claim " +
			"fetch accept @6", "ask again (the question had not been heard to its end)"},
	{"asked once more in few words",
		askedOnce + "5 heard what does it do?\n6 claim install accept\n7 ask install\n9 said install Just yes or no, " +
			"please.\n10 heard yes\n11 claim install accept",
		"ask again (the answer was not plain) Just yes or no, please.; accept accept by voice"},
	{"asked once more in few words of another language",
		askedOnce + "5 heard ja vielleicht\n6 claim install accept\n7 ask install\n9 said install Nur ja oder nein, " +
			"bitte.\n10 heard ja\n11 claim install accept",
		"ask again (the answer was not plain) Nur ja oder nein, bitte.; accept accept by voice"},
	{"few words of a question that was never heard",
		"0 open install\n1 ask install\n4 said install Just yes or no, please.\n5 heard yes\n10 claim install accept @6",
		"ask again (the question had not been heard to its end)"},
	{"asked once more in other words",
		askedOnce + "5 heard maybe\n6 claim install accept\n7 ask install\n9 said install So, shall I?\n10 heard yes\n15 " +
			"claim install accept @11",
		"ask again (the answer was not plain) Just yes or no, please.; needs a tap (I have asked twice)"},
	{"too long to be said", "0 open long\n1 ask long\n4 said long\n5 heard yes\n6 claim long accept",
		"needs a tap (it is too long to be said whole)"},
	{"two files by their number",
		"0 open edit\n1 ask edit\n4 said edit bigpc wants to change two files, yes or no?\n5 heard yes\n6 claim edit accept",
		"accept accept by voice"},
	{"two files by their names", "0 open edit\n1 ask edit\n4 said edit May bigpc change cart dot go and " +
		"cart_test.go?\n5 heard yes\n6 claim edit accept", "accept accept by voice"},
	{"one file of two", "0 open edit\n1 ask edit\n4 said edit May bigpc change cart dot go?\n5 heard yes\n10 claim edit " +
		"accept @6", "ask again (the question had not been heard to its end)"},
	{"the voice asked something else",
		"0 open install\n1 ask install\n4 said install Do you like pizza?\n5 heard yes\n10 claim install accept @6\n11 ask " +
			"install\n12 said install Shall I go on?\n13 heard yes\n18 claim install accept @14",
		"ask again (the question had not been heard to its end); needs a tap (I have asked twice)"},
	{"the voice said nothing", "0 open install\n1 ask install\n4 unsaid install\n5 heard yes\n10 claim install accept " +
		"@6\n11 ask install\n13 said install\n14 heard yes\n15 claim install accept",
		"ask again (the question had not been heard to its end); accept accept by voice"},
	{"the other could not be answered and is open again",
		askedTwo + "9 heard yes, on bigpc\n10 claim install accept\n11 open install\n12 heard yes\n13 claim push accept",
		"accept accept by voice; ask again (more than one question is open)"},
	{"open again, it was asked once",
		askedOnce + "5 heard yes\n6 claim install accept\n7 open install\n8 ask install\n9 said install\n10 heard " +
			"what?\n11 claim install accept", "accept accept by voice; needs a tap (I have asked twice)"},
	{"open again, the old yes is used up",
		askedOnce + "5 heard yes\n6 claim install accept\n7 open install\n12 claim install accept @7",
		"accept accept by voice; ask again (the question had not been heard to its end)"},
	{"the other is only shown", askedOnce + "4 open push\n5 heard yes\n6 claim install accept", "accept accept by voice"},
}

func TestEvidence(t *testing.T) {
	for _, tt := range evidenceCases {
		t.Run(tt.name, func(t *testing.T) {
			l := newTimeline(t)
			l.again = strings.Contains(tt.want, ".;")
			var got []string
			for line := range strings.Lines(tt.script) {
				if r := l.play(strings.TrimSpace(line)); r != "" {
					got = append(got, r)
				}
			}
			if joined := strings.Join(got, "; "); joined != tt.want {
				t.Errorf("got  %s\nwant %s", joined, tt.want)
			}
		})
	}
}

// readingsOf is what each text says to each question.
func readingsOf(names, texts []string) map[string]consent.Reply {
	reads := map[string]consent.Reply{}
	for _, name := range names {
		for _, text := range texts {
			reads[name+text] = consent.Read(text, timelineQuestions[name].About)
		}
	}
	return reads
}

// plainYes is when the newest unused yes to a question began after it had been heard; 0: there is none.
func plainYes(
	name string, heard map[string]float64, used map[float64]bool, clean map[float64]string, reads map[string]consent.Reply,
) float64 {
	found := 0.0
	for at, text := range clean {
		if h, ok := heard[name]; ok && at > h && !used[at] && reads[name+text] == consent.Yes {
			found = max(found, at)
		}
	}
	return found
}

// overruled reports whether a no came after a yes.
func overruled(name string, found float64, clean map[float64]string, reads map[string]consent.Reply) bool {
	for at, text := range clean {
		if at > found && reads[name+text] == consent.No {
			return true
		}
	}
	return false
}

// ambiguous reports whether another question had been asked when a yes came that did not name this one.
func ambiguous(name string, found float64, clean map[float64]string, asked map[string]float64) bool {
	for other, at := range asked {
		if other != name && at < found && !timelineQuestions[name].About.Names(clean[found]) {
			return true
		}
	}
	return false
}

// TestEvidenceWorlds plays calls by chance and holds what must be true in each: nothing is accepted
// without a plain yes that began after that very question had been heard, that decided nothing before, and
// that was not overruled, and that named the question if another one had been asked; and nothing high is
// accepted at all.
func TestEvidenceWorlds(t *testing.T) {
	texts := []string{"yes", "go ahead", "yes on bigpc", "push it", "yes push it", "no", "wait", "okay, wait, don't",
		"what?", "thanks", "run npm install", "hm", "yes install it", ""}
	names := []string{"install", "push", "test", "sudo"}
	accepts := 0
	reads := readingsOf(names, texts)
	for seed := range uint64(600) {
		r := rand.New(rand.NewPCG(seed, 7))
		l := newTimeline(t)
		heard, used, asked := map[string]float64{}, map[float64]bool{}, map[string]float64{}
		clean := map[float64]string{}
		var script []string
		now := 0.0
		do := func(format string, args ...any) string {
			line := fmt.Sprintf("%.1f ", now) + fmt.Sprintf(format, args...)
			script = append(script, line)
			return l.play(line)
		}
		for range 60 {
			now += float64(1+r.IntN(20)) / 10
			name := names[r.IntN(1+r.IntN(len(names)))]
			switch r.IntN(10) {
			case 0:
				do("open %s", name)
			case 1, 2:
				do("open %s", name)
				do("ask %s", name)
				delete(heard, name)
				if _, ok := asked[name]; !ok {
					asked[name] = now
				}
				if now++; r.IntN(4) > 0 {
					do("said %s", name)
					heard[name] = now
				}
			case 3:
				do("cut %s", name)
			case 4:
				do("spoke")
			case 5, 6, 8:
				text := texts[r.IntN(len(texts))]
				do("heard %s", text)
				clean[now] = text
			default:
				got := do("claim %s accept", name)
				if strings.HasPrefix(got, "decline") {
					delete(asked, name)
				}
				if !strings.HasPrefix(got, "accept") {
					continue
				}
				accepts++
				if found := plainYes(name, heard, used, clean, reads); found == 0 || name == "sudo" ||
					overruled(name, found, clean, reads) || ambiguous(name, found, clean, asked) {
					t.Fatalf("seed %d: %s\n%s", seed, got, strings.Join(script, "\n"))
				}
				for at := range clean {
					used[at] = used[at] || at > heard[name]
				}
				delete(heard, name)
				delete(asked, name)
			}
		}
	}
	t.Logf("%d acceptances", accepts)
	if accepts < 80 {
		t.Errorf("only %d acceptances: the worlds show nothing", accepts)
	}
}

// TestCommandHash holds that whatever differs in an act differs in its hash.
func TestCommandHash(t *testing.T) {
	q := handoff.Question{Turn: "t", Kind: handoff.QuestionCommand, Text: "May this run?", Command: "ls", Cwd: "/src",
		Changes: []string{"a", "b"}}
	seen := map[string]string{}
	for name, change := range map[string]func(*handoff.Question){
		"same": func(*handoff.Question) {}, "turn": func(q *handoff.Question) {
			q.Turn = "u"
		}, "connection": func(q *handoff.Question) {
			q.Connection = "b"
		}, "kind": func(q *handoff.Question) { q.Kind = handoff.QuestionInput },
		"text": func(q *handoff.Question) {
			q.Text = ""
		}, "command": func(q *handoff.Question) { q.Command = "ls " }, "cwd": func(q *handoff.Question) { q.Cwd = "/" },
		"changes": func(q *handoff.Question) { q.Changes = []string{"a b"} }, "bytes": func(q *handoff.Question) {
			q.Command = "ls\xff"
		}, "other bytes": func(q *handoff.Question) { q.Command = "ls\xfe" },
	} {
		other := q
		change(&other)
		h := handoff.CommandHash(other, "bigpc")
		if was, ok := seen[h]; ok || len(h) != 64 {
			t.Errorf("%s and %s have the hash %s", name, was, h)
		}
		seen[h] = name
	}
	if _, ok := seen[handoff.CommandHash(q, "laptop")]; ok {
		t.Error("another server has the same hash")
	}
	if handoff.TranscriptHash("") != "" || handoff.TranscriptHash("yes") == handoff.TranscriptHash("no") {
		t.Error("transcripts are not told apart")
	}
}
