package consent

import (
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

// TestFormKeepsYes holds that how a yes is written makes no no of it, and hardly ever anything else: its case,
// its marks, its spaces, and thanks after it.
func TestFormKeepsYes(t *testing.T) {
	texts, asked := acceptances(t)
	var lost atomic.Int64
	inParallel(len(texts), func(i int) {
		text := texts[i]
		plain := strings.TrimRight(text, ".!。！।")
		forms := []string{
			strings.ToUpper(text), strings.ToLower(text), plain, plain + ".", plain + "!", plain + "。", " " + text + "  ",
			strings.ReplaceAll(text, " ", "  "), strings.ReplaceAll(text, ", ", " "), plain + ", thank you", plain + ". Thanks.",
		}
		var before []heard
		for _, form := range forms {
			h := hear(form)
			if slices.ContainsFunc(before, func(b heard) bool { return reflect.DeepEqual(b, h) }) {
				continue // what is heard the same is read the same
			}
			before = append(before, h)
			switch Read(form, asked[i]) {
			case Yes:
			case No:
				t.Errorf("%q is a no", form)
			default:
				lost.Add(1)
				t.Logf("%q is no yes", form)
			}
		}
	})
	if lost.Load()*100 > int64(len(texts))*11 {
		t.Errorf("%d forms of %d yeses are lost", lost.Load(), len(texts))
	}
}

// TestWaitEndsYes holds that a yes with a word that takes it back, in any language, is none.
func TestWaitEndsYes(t *testing.T) {
	texts, asked := acceptances(t)
	inParallel(len(texts), func(i int) {
		text := texts[i]
		for turn, back := range []string{
			"wait", "don't", "no", "stop", "nein", "warte", "nicht", "non", "attends", "espera", "para", "aspetta", "não", "espera aí", "nee", "wacht",
			"nie", "czekaj", "нет", "подожди", "ні", "зачекай", "hayır", "bekle", "nej", "vänta", "नहीं", "रुको", "لا", "انتظر", "いいえ", "待って", "不要", "等等", "아니", "잠깐",
		} {
			if (i+turn)%3 != 0 { // every word after a third of them
				continue
			}
			places := []string{text + " " + back, text + ", " + back, text + ". " + back + ".", back + ", " + text}
			if reply := places[(i+turn)%len(places)]; Read(reply, asked[i]) == Yes && !hear(reply).correctsItself(askedWords(asked[i])) {
				t.Errorf("%q is a yes", reply)
			}
		}
	})
}

// TestUncertainLanguage holds that a word that denies in one language only is told apart by the rest of the
// reply, and that the question is asked again where the rest does not tell.
func TestUncertainLanguage(t *testing.T) {
	q := about("git push origin main", bigpc, "May I push to origin main on bigpc?")
	for text, want := range map[string]Reply{
		"no":                                     No,
		"no no no":                               No,
		"No, gracias":                            No,
		"claro, no":                              No,
		"pode rodar no bigpc":                    Yes,
		"sim, no bigpc":                          Yes,
		"no bigpc":                               Unclear,
		"claro no bigpc":                         Unclear,
		"no dobra":                               Yes,
		"no ok":                                  Unclear,
		"ok no":                                  No,
		"sì, nel progetto":                       Yes,
		"para mim tudo bem":                      Yes,
		"para":                                   Later,
		"no no, go ahead":                        Unclear,
		"don't go ahead":                         No,
		"no, don't do it":                        No,
		"you would not break it?":                Unclear,
		"no, would you?":                         No,
		"go ahead, it can't work without that":   Yes,
		"it can't work without that":             Unclear,
		"yes, that isn't much to push, go ahead": Unclear,
		"mach das, sonst geht gar nichts mehr":   Yes,
		"go ahead, no, I don't want that":        No,
		"go ahead, oh no, stop":                  No,
		"go ahead, don't":                        No,
		"sure, I don't want that":                No,
		"I don't want that, okay":                No,
		"may I rub git push on bigpc no or yes":  Unclear,
	} {
		if got := Read(text, q); got != want {
			t.Errorf("%q is %s, not %s", text, got, want)
		}
	}
	q.Said = "bigpc would like to push to origin main. Say no, or yes if it may."
	for text, want := range map[string]Reply{
		"say no or yes": Echo,
		"bigpc would like to bush to origin main say no": Echo,
		"no don't push to origin main":                   No,
		"push to origin main, yes":                       Yes,
	} {
		if got := Read(text, q); got != want {
			t.Errorf("%q is %s, not %s", text, got, want)
		}
	}
}
