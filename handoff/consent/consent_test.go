package consent

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// TestFindings holds replies that earlier readers took for a yes, and are none.
func TestFindings(t *testing.T) {
	push, copies := sixQuestions[0], sixQuestions[4]
	for _, c := range []struct {
		asked Question
		text  string
	}{
		{push, "yes push to upstream"},
		{push, "ノートパソコンでやって"},
		{push, "sì come no"},
		{push, "pois sim"},
		{sixQuestions[1], "it's already installed"},
		{push, "go ahead, the tests permitting"},
		{push, "yeah hi"},
		{push, "alright alright"},
		{push, "go ahead make my day"},
		{push, "yes we can"},
		{push, "no, wait, I mean yes"},
		{push, "sure sure"},
		{push, "yes dear"},
		{push, "yes my boss"},
		{push, "oh yeah right"},
		{push, "ah okay"},
		{push, "oh okay"},
		{push, "ah yes"},
		{push, "ok cool"},
		{push, "ach ja"},
		{push, "ok super"},
		{push, "ah oui"},
		{push, "아 네"},
		{copies, "copy that"},
		{copies, "yes, continue in the session"},
		{copies, "continue in that please"},
		{sixQuestions[2], "tak, może"},
		{sixQuestions[3], "yes, cart.go"},
	} {
		if got := Read(c.text, c.asked); got == Yes {
			t.Errorf("%q is a yes", c.text)
		}
	}
}

// TestRepliesThatAreNoYes holds the kinds of replies that have a yes word and allow nothing: thanks, praise, a
// vocative, an answer to another question, somebody who has understood or has enough, and what a transcriber makes up.
func TestRepliesThatAreNoYes(t *testing.T) {
	for _, text := range []string{
		"Okay. Thank you for watching!", "Yes. Thanks for watching.", "okay, thank you", "it's fine, thanks", "sure, thanks",
		"c'est bon, merci", "oui, merci", "det är bra, tack", "ja, danke", "va bene, grazie", "vale, gracias", "tak, dzięki",
		"да, спасибо", "好的，谢谢", "はい、ありがとうございます", "네, 감사합니다", "evet, teşekkürler", "हाँ, धन्यवाद", "نعم شكرا",
		"okay, perfect", "right, exactly", "yes, great", "okay, nice", "ja, super", "ok, génial", "vale, perfecto",
		"sì, perfetto", "oké, mooi", "okej, toppen", "tak, super", "да, отлично", "好，太好了", "はい、完璧です", "네, 완벽해요",
		"yes, dear", "yes, mom", "okay, Alexa", "yes sir", "ja, Schatz", "sí, mi amor", "sì, amore", "evet canım", "はい、先生",
		"yes, they are", "yes, it is", "yes, I did", "of course it is", "yes, that's right", "now and then, sure",
		"ja, stimmt", "oui, c'est ça", "sí, así es", "sì, esatto", "ja, klopt", "tak, zgadza się", "да, верно", "是的，没错",
		"はい、そうです", "네, 맞아요", "evet, doğru", "right", "exactly", "I see", "got it", "genau", "exactement", "entendido",
		"понятно", "了解です", "わかりました", "알겠습니다", "明白了", "ya vale", "vale, ya", "好了好了", "行了行了", "pode deixar",
		"sim, pode deixar", "ok, c'est bon", "va bene così", "ist schon gut", "laat maar", "まあいいよ", "됐어요",
		"yes\u200b", "y\u200bes", "yes, n\u200bo", "ye\u0336s", "yes " + strings.Repeat("\u200b", 400) + " stop",
		"yes" + strings.Repeat(" ", 1000) + "no, stop", "yes" + strings.Repeat(" ", maxHeard) + "no",
		"yes " + strings.Repeat("x", 1000) + " stop",
		"yes, die now", "sure, I am", "yes n" + strings.Repeat("o", 1000), "yes, go ahead. " + strings.Repeat("yes. ", 200),
	} {
		for _, q := range sixQuestions {
			if Read(text, q) == Yes {
				t.Errorf("%.60q is a yes", text)
				break
			}
		}
	}
}

// TestYesAllowsNothingWithMore holds, for every language, that a yes stays no yes with thanks, or with what listeners
// say, before or after it, unless both are one listed phrase.
func TestYesAllowsNothingWithMore(t *testing.T) {
	for _, l := range languages() {
		var more, yeses []string
		for phrase, does := range l.phrases.all() {
			switch {
			case isMarked(phrase):
			case does&kindThanks != 0:
				more = append(more, phrase)
			case does&kindYes != 0:
				yeses = append(yeses, phrase)
			}
		}
		for phrase := range l.back {
			if Read(phrase, sixQuestions[0]) != Nothing {
				more = append(more, phrase)
			}
		}
		if len(more) < 10 {
			t.Errorf("%s has %d words of thanks and of listeners", l.code, len(more))
		}
		for i := 0; i < len(yeses); i += 1 + len(yeses)/20 {
			for _, word := range more {
				for _, reply := range []string{yeses[i] + ", " + word, word + ", " + yeses[i]} {
					first, _, _ := strings.Cut(reply, ", ")
					if Read(reply, sixQuestions[0]) == Yes && !l.joined(hear(reply), len(hear(first).tokens)) {
						t.Errorf("%s: %q is a yes", l.code, reply)
					}
				}
			}
		}
	}
}

// joined reports whether a phrase that says yes begins before a token and ends after it: "可以" and "啊".
func (l *language) joined(h heard, between int) bool {
	for from := range between {
		for to := between + 1; to <= len(h.tokens); to++ {
			if does, _ := l.phrases.find(h.span(from, to)); does&kindYes != 0 {
				return true
			}
		}
	}
	return false
}

// TestPlainYeses holds plain yeses of all languages.
func TestPlainYeses(t *testing.T) {
	for _, text := range []string{
		"yes", "yes please", "go ahead", "yes, go ahead", "sure", "do it", "okay do it", "yeah", "Yep, do it.", "yes, yes, go ahead",
		"please do", "sure, go for it", "yes, you can do it", "okay", "absolutely", "of course, go ahead", "that's fine with me",
		"ja", "ja, mach das", "ja bitte", "klar, mach", "gerne", "ja, leg los", "in Ordnung, mach das", "oui", "oui vas-y",
		"d'accord, vas-y", "bien sûr", "oui, s'il te plaît", "sí, adelante", "sí, por favor", "claro, hazlo", "vale, adelante",
		"sim, pode", "pode fazer", "claro, vai em frente", "sì, procedi pure", "va bene, fallo", "sì, per favore", "ja, doe maar",
		"ja, graag", "ga je gang", "ja tack", "ja, gör det", "kör på", "tak, proszę", "jasne, zrób to", "evet, yap", "tamam, olur",
		"да, давай", "да, пожалуйста", "конечно", "так, звісно", "はい、お願いします", "はい、どうぞ", "いいですよ", "うん、やって", "好的，去做吧",
		"可以", "是的，可以", "好，开始吧", "네, 해 주세요", "네, 진행하세요", "그럼요", "हाँ, कर दो", "ठीक है", "نعم، تفضل",
	} {
		for _, q := range sixQuestions {
			if got := Read(text, q); got != Yes {
				t.Errorf("%q is %s", text, got)
				break
			}
		}
	}
}

// TestRead holds what each part of a reply does.
func TestRead(t *testing.T) {
	machines := []string{"bigpc", "the desktop", "my workstation"}
	q := about("git push origin main", machines, "bigpc asks for permission to run a command")
	q.Projects = []string{"api"}
	q.Said = "Bigpc wants to run git push origin main, yes or no?"
	for text, want := range map[string]Reply{
		"Yes.":                                Yes,
		"yes, on the desktop":                 Yes,
		"sure, on my workstation":             Yes,
		"yes, on big pc":                      Yes,
		"yes, in api":                         Yes,
		"push it to main":                     Yes,
		"go ahead and push":                   Yes,
		"no problem, go ahead":                Yes,
		"okay, thanks":                        Unclear,
		"yes, on the laptop":                  Unclear,
		"yes, on the desktop and the laptop":  Unclear,
		"yes, install it":                     Unclear,
		"yes, if the tests are green":         Unclear,
		"yes?":                                Unclear,
		"\"yes\"":                             Unclear,
		"yes, and":                            Unclear,
		"yes...":                              Unclear,
		"no problem":                          Unclear,
		"maybe":                               Unclear,
		strings.Repeat("yes ", maxWords+1):    Unclear,
		"push":                                Unclear,
		"the desktop":                         Unclear,
		"okay, wait, don't":                   No,
		"no":                                  No,
		"Nooo!":                               No,
		"not now":                             Later,
		"yes, but wait":                       Later,
		"um":                                  Nothing,
		"thank you":                           Nothing,
		"":                                    Nothing,
		"run git push origin main, yes or no": Echo,
		"wants to run":                        Echo,
	} {
		if got := Read(text, q); got != want {
			t.Errorf("%q is %s, not %s", text, got, want)
		}
	}
}

// aliasesOfAll are names that people give to machines; some of them are words of everyday speech. Set once.
var aliasesOfAll = []string{
	"the desktop", "big pc", "my workstation", "the big one", "basement server", "go", "stop", "yes", "no", "all",
	"the other one",
}

// nth is of how many replies a property takes one.
func nth() int {
	if testing.Short() {
		return 31
	}
	return 11
}

// TestAliases holds that the aliases of a machine, whatever they are, make no false accept and lose no yes.
func TestAliases(t *testing.T) {
	lines := corpus(t)
	for i := 0; i < len(lines); i += nth() {
		l := lines[i]
		got := l.got
		for _, q := range l.asked {
			q.Machines = slices.Concat(q.Machines, aliasesOfAll)
			if Read(l.text, q) == Yes {
				got = Yes
			}
		}
		switch {
		case strings.Contains(l.kind, "machine"), strings.HasSuffix(l.text, "on bigpc"): // it may be an alias now
		case got == Yes && l.expected != "accept":
			t.Errorf("%s: false accept: %s %q", l.file, l.lang, l.text)
		}
	}
}

// unlisted are words that no file lists. Set once.
var unlisted = []string{"kubernetes", "upstream", "Peter", "запасной", "バックアップ", "백업", "备份", "पड़ोसी", "الجيران"}

// vetoes are some words of each language that deny, ask for time or cast doubt.
func vetoes() []string {
	var out []string
	for _, l := range languages() {
		i := 0
		for phrase, does := range l.phrases.all() {
			if does&kindVeto != 0 && i%7 == 0 {
				out = append(out, phrase)
			}
			i++
		}
	}
	return out
}

// TestWordEndsYes holds that no yes stays one with an unlisted word, or with a no, a wait or a doubt of its language.
func TestWordEndsYes(t *testing.T) {
	lines, listed := corpus(t), vetoes()
	r := rand.New(rand.NewPCG(1, 2))
	for i := 0; i < len(lines); i += nth() {
		l := lines[i]
		if l.got != Yes {
			continue
		}
		text := strings.TrimRight(l.text, ".!。！।")
		for _, word := range []string{unlisted[r.IntN(len(unlisted))], listed[r.IntN(len(listed))]} {
			for _, reply := range []string{
				text + " " + word, text + ", " + word + ".", word + ", " + text, text + " " + word + " " + text,
			} {
				if isYes(reply, l.asked) && (slices.Contains(unlisted, word) || !joins(reply, l.asked)) {
					t.Errorf("%s: %q is a yes", l.lang, reply)
				}
			}
		}
	}
}

func isYes(reply string, asked []Question) bool {
	return slices.ContainsFunc(asked, func(q Question) bool { return Read(reply, q) == Yes })
}

// joins reports whether a listed word makes another listed phrase of a reply: "no" before "problem".
func joins(reply string, asked []Question) bool {
	return slices.ContainsFunc(asked, func(q Question) bool {
		return slices.ContainsFunc(readings(hear(reply), topicOf(q)), func(r reading) bool {
			veto, _, _ := r.scan()
			return veto == 0
		})
	})
}

// TestFormKeepsYes holds that case, marks and spaces change nothing of a reply.
func TestFormKeepsYes(t *testing.T) {
	lines := corpus(t)
	for i := 0; i < len(lines); i += nth() {
		l := lines[i]
		if l.got != Yes {
			continue
		}
		plain := strings.TrimRight(l.text, ".!。！।")
		for _, form := range []string{
			strings.ToUpper(l.text), strings.ToLower(l.text), plain, plain + "!", " " + l.text + "  ",
			strings.ReplaceAll(l.text, " ", "  "),
		} {
			if !slices.ContainsFunc(l.asked, func(q Question) bool { return Read(form, q) == Yes }) {
				t.Errorf("%q is no yes", form)
			}
		}
		if slices.ContainsFunc(l.asked, func(q Question) bool { return Read(plain+"?", q) == Yes }) {
			t.Errorf("%q, asked back, is a yes", plain)
		}
	}
}

// TestAgain holds in which language a question is asked once more.
func TestAgain(t *testing.T) {
	for _, c := range []struct{ reply, said, want string }{
		{"maybe", "", "Just yes or no, please."},
		{"vielleicht später irgendwann", "", "Nur ja oder nein, bitte."},
		{"peut-être", "", "Juste oui ou non, s'il vous plaît."},
		{"たぶん", "", "はいかいいえだけでお願いします。"},
		{"xyzzy", "Darf bigpc das machen, ja oder nein?", "Nur ja oder nein, bitte."},
		{"xyzzy", "", "Just yes or no, please."},
	} {
		q := Question{Said: c.said}
		if got := q.Again(c.reply); got != c.want {
			t.Errorf("%q: %q", c.reply, got)
		}
		if !AsksAgain("Okay. " + c.want) {
			t.Errorf("%q does not ask again", c.want)
		}
	}
	if AsksAgain("Shall I?") {
		t.Error("anything asks again")
	}
}

// TestAskedBy holds what the voice must have said to have asked a question: the machine, all words of the act and each
// file, and nothing else.
func TestAskedBy(t *testing.T) {
	machine := []string{"bigpc", "the desktop"}
	push, upstream := about("git push origin main", machine, ""), about("git push upstream main", machine, "")
	install, write := about("npm install evil", machine, ""), about("cat a.sh gradlew", machine, "")
	edit := about("edit files cart.go cart_test.go", machine, "")
	for _, c := range []struct {
		asked Question
		said  string
		want  bool
	}{
		{push, "bigpc wants to run git push origin main, yes or no?", true},
		{push, "Big P C wants to run git push origin main, okay?", true},
		{push, "Der Desktop möchte git push origin main ausführen, ja oder nein?", true},
		{push, "bigpc wants to do something, e.g. git push origin main, yes/no?", true},
		{push, "bigpcでgit push origin mainを実行してもいいですか", true},
		{push, "One small thing on bigpc, shall I?", false},
		{push, "Shall I git push origin main?", false},
		{push, "bigpc wants to git push, okay?", false},
		{push, "bigpcx git push origin main", false},
		{push, "May bigpc git push origin main, and upstream?", false},
		{push, "May bigpc, not the laptop, git push origin main?", false},
		{push, "May bigpc git push origin main to evil.example.com?", false},
		{upstream, "May bigpc git push origin main?", false},
		{upstream, "May bigpc git push to upstream?", false},
		{upstream, "May bigpc git push upstream main?", true},
		{install, "May bigpc run npm install?", false},
		{install, "May bigpc run npm install evil?", true},
		{write, "May bigpc read a.sh with cat?", false},
		{write, "May bigpc cat a dot sh into gradlew?", true},
		{edit, "May bigpc change two files?", false},
		{edit, "May bigpc change cart.go?", false},
		{edit, "May bigpc change cart_test.go?", false},
		{edit, "May bigpc change cart dot go and cart underscore test dot go?", true},
		{edit, "May bigpc change cart.go, cart_test.go and mise.toml?", false},
		{edit, "May bigpc change shop/cart.go and cart_test.go?", true},
		{edit, "May bigpc change lib/cart.go and cart_test.go?", false},
		{edit, "Darf bigpc cart Punkt go und cart_test.go ändern?", true},
		{about("copy session", machine, ""), "Soll ich auf bigpc in einer Kopie weitermachen?", true},
		{about("copy session", machine, ""), "Soll ich auf bigpc weitermachen?", false},
	} {
		c.asked.Others, c.asked.Paths = []string{"laptop", "pc"}, []string{"/src/shop", "/src/shop/cart.go"}
		if got := c.asked.AskedBy(c.said); got != c.want {
			t.Errorf("%q by %q: %t", c.asked.Acts, c.said, got)
		}
	}
	if !push.Names("yes, push it") || !push.Names("on the desktop") || push.Names("yes") {
		t.Error("a reply is not told apart by what it names")
	}
}

// TestEcho holds that what the voice said since the question is no reply, however short, and that a no still is one.
func TestEcho(t *testing.T) {
	q := sixQuestions[0]
	q.Said = "Bigpc asks: may I run git push origin main? Yes or no?"
	for text, want := range map[string]Reply{
		"yes": Yes, "go ahead": Yes, "git push origin main": Echo, "okay": Yes,
	} {
		if got := Read(text, q); got != want {
			t.Errorf("%q is %v before the voice said more", text, got)
		}
	}
	q.Since = []string{"Mini says: yes, go ahead. Or no.", "好的，可以做"}
	for text, want := range map[string]Reply{
		"yes": Echo, "go ahead": Echo, "Yes, go ahead.": Echo, "mini says yes go ahead": Echo, "好的": Echo, "no": No,
		"okay": Yes, "yes, push it": Yes,
	} {
		if got := Read(text, q); got != want {
			t.Errorf("%q is %v", text, got)
		}
	}
}

// FuzzRead holds that no text makes the reader panic, and that a yes is short and asks nothing.
func FuzzRead(f *testing.F) {
	f.Add("yes, on bigpc")
	f.Add("はい、お願いします")
	f.Add("@ @ no @")
	f.Fuzz(func(t *testing.T, text string) {
		if got := Read(text, sixQuestions[0]); got == Yes && (hear(text).words() > maxWords || strings.Contains(text, "?")) {
			t.Errorf("%q is a yes", text)
		}
	})
}
