package call

import (
	"strings"
	"testing"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/call/calltest"
	"switchboard/handoff/consent"
	"switchboard/handoff/evidence"
	"switchboard/handoff/tools"
	"switchboard/handoff/wording"
)

// replies are a yes of each language, and a reply that begins as one and is none.
var replies = map[wording.Language][2]string{
	"ar": {"نعم، افعل ذلك", "حسنا، انتظر، لا"},
	"de": {"Ja, mach das.", "Okay, warte, nein."},
	"en": {"Yes, do that.", "Okay, wait, no."},
	"es": {"Sí, hazlo.", "Vale, espera, no."},
	"fr": {"Oui, vas-y.", "D'accord, attends, non."},
	"hi": {"हाँ, कर दो", "ठीक है, रुको, नहीं"},
	"it": {"Sì, fallo.", "Va bene, aspetta, no."},
	"ja": {"はい、お願いします。", "はい、待って、やめて。"},
	"ko": {"네, 해 주세요.", "네, 잠깐만요, 아니요."},
	"nl": {"Ja, doe dat.", "Oké, wacht, nee."},
	"pl": {"Tak, zrób to.", "Dobra, czekaj, nie."},
	"pt": {"Sim, pode fazer.", "Tá bom, espera, não."},
	"ru": {"Да, сделай это.", "Хорошо, подожди, нет."},
	"sv": {"Ja, gör det.", "Okej, vänta, nej."},
	"tr": {"Evet, yap.", "Tamam, bekle, hayır."},
	"uk": {"Так, зроби це.", "Добре, зачекай, ні."},
	"zh": {"好的，做吧。", "好的，等等，不要。"},
}

// TestChosenLanguage: who chose a language for a call is told in it, also by the tools; in one that there is not, in
// English.
func TestChosenLanguage(t *testing.T) {
	for chosen, want := range map[string][]string{
		"":   {"Working on it on bigpc", "Nothing is running on laptop.", "I don't know a machine"},
		"xx": {"Working on it on bigpc", "Nothing is running on laptop.", "I don't know a machine"},
		"de": {"Ich bin dran, auf bigpc", "Auf laptop läuft nichts.", "Ich kenne keine Maschine"},
	} {
		g := calltest.Grant
		g.Language = chosen
		world := "server bigpc\nserver laptop\nsticky bigpc t1 Auth\nturn t1 10s completed Done."
		inCall(t, world, g, func(t *testing.T, c *liveCall) {
			c.ask("c1", tools.Codex, `{"server":"bigpc","prompt":"x"}`)
			c.ask("c2", tools.StopWork, `{"server":"laptop"}`)
			c.ask("c3", tools.Codex, `{"server":"mac","prompt":"x"}`)
			time.Sleep(time.Minute)
			for _, words := range want {
				if c.count(func(u handoff.Utterance) bool { return strings.Contains(u.Text, words) }) == 0 {
					t.Errorf("who chose %q does not hear %q: %+v", chosen, words, c.said)
				}
			}
		})
	}
}

// TestQuestionsInEachLanguage: a voice that asks as it is told to has named machine and act, so the yes of that
// language counts, and what only begins as one denies. Our own words, heard back, are an echo.
func TestQuestionsInEachLanguage(t *testing.T) {
	ask := []handoff.Decision{handoff.DecisionAccept, handoff.DecisionDecline}
	for _, q := range []handoff.Question{
		{ID: "push", Kind: handoff.QuestionCommand, Command: "git push origin main", Decisions: ask},
		{ID: "edit", Kind: handoff.QuestionFileChange, Changes: []string{"/src/auth.go", "/src/login.go"}, Decisions: ask},
		{ID: "copy", Kind: handoff.QuestionCopy, Decisions: ask},
		{ID: "in use", Kind: handoff.QuestionCopy, Reason: "It is open in another program on that machine.", Decisions: ask},
		{ID: "in vim", Kind: handoff.QuestionCopy, Reason: "It is open in vim on that machine.", Program: "vim", Decisions: ask},
	} {
		shown := handoff.RecordQuestion{ID: q.ID, Kind: q.Kind, Server: "bigpc", Title: "Auth refactor", Label: "q1",
			Command: q.Command, Changes: q.Changes, Reason: q.Reason, Program: q.Program}
		for l, reply := range replies {
			message := l.QuestionMessage(shown)
			said := strings.Join([]string{message.Say, message.Asked, message.Ask}, " ")
			if message.Say != l.QuestionLead(shown) {
				t.Errorf("%s, %s: %s", l, q.ID, message.Say)
			}
			about := evidence.AskedAbout(handoff.OpenQuestion{Question: q, Names: []string{"bigpc"}}, l.QuestionLead(shown))
			if got := consent.Read(l.QuestionLead(shown), about); got != consent.Echo {
				t.Errorf("%s, %s: our question, heard back, is %v", l, q.ID, got)
			}
			for _, d := range []handoff.Decision{handoff.DecisionAccept, handoff.DecisionDecline, handoff.DecisionStop} {
				if said := l.DecidedAnswer(shown, d).Say; consent.Read(said, about) == consent.Yes {
					t.Errorf("%s, %s: %q, heard back, is a yes", l, q.ID, said)
				}
			}
			for i, want := range []evidence.Ruling{evidence.RulingAccept, evidence.RulingDecline} {
				var e evidence.Evidence
				at := func(ms int) time.Time { return time.UnixMilli(1e12 + int64(ms)) }
				e.Open(handoff.OpenQuestion{
					Shown: shown, Question: q, Workspace: "/src", Names: []string{"bigpc"},
				}, l.QuestionLead(shown))
				e.Announced(q.ID, "s1", at(0))
				e.Said(handoff.Said{ID: "s1", At: at(4000), Text: said})
				e.Heard(handoff.Heard{Text: reply[i], Began: at(5000)})
				got := e.Judge(evidence.Claim{Question: q.ID, Hash: handoff.CommandHash(q, "bigpc"),
					Wants: handoff.DecisionAccept, Came: at(5500)}, at(6000))
				if got.Ruling != want {
					t.Errorf("%s, %s: %q to %q is %v, want %v (%v)", l, q.ID, reply[i], said, got.Ruling, want, got.Fault)
				}
			}
		}
	}
	for _, code := range wording.Languages() {
		if _, ok := replies[wording.Language(code)]; !ok {
			t.Errorf("nothing is replied in %s", code)
		}
	}
}

// TestNormalName: how a transcript writes a name makes no difference, and no other name is taken for it.
func TestNormalName(t *testing.T) {
	for _, row := range []struct {
		a, b string
		same bool
	}{
		{"build-02", "Build 02", true}, {"Auth refactor.", "auth  refactor", true}, {"", " ", true},
		{"C", "C++", false}, {"C", "C#", false}, {"🚀", "🔥", false}, {"🚀", "", false}, {"🚀 launch", "launch", true},
		{"कि", "की", false},
	} {
		if got := normalName(row.a) == normalName(row.b); got != row.same {
			t.Errorf("%q and %q: the same is %t", row.a, row.b, got)
		}
	}
}
