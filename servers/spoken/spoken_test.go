package spoken

import (
	"strings"
	"testing"
)

func TestAlike(t *testing.T) {
	t.Parallel()
	const no, ask, take = 0, 1, 2
	for _, row := range []struct {
		a, b string
		want int
	}{
		{"laptop", "laptop", take}, {"laptop", "labtop", take}, {"laptop", "latpop", take}, {"laptop", "laptops", take},
		{"mini", "minni", take}, {"sensor", "censor", take}, {"quarantining", "quarantine", take},
		{"mailserver", "malservr", take}, {"café", "cafe", take}, {"straße", "strasse", take},
		{"ship", "shop", ask}, {"stop", "shop", ask}, {"cpu", "gpu", ask}, {"get", "git", ask}, {"pie", "pi", ask},
		{"jump", "chump", ask}, {"vite", "veet", ask}, {"colonel", "kernel", ask}, {"github", "gitlab", ask},
		{"billing", "building", ask}, {"1", "2", no}, {"12", "2", no}, {"one", "two", no}, {"eu", "us", no},
		{"perfil", "laravel", no}, {"redis", "scraper", no}, {"a", "b", no}, {"two", "2", take}, {"02", "2", take},
		{"zwei", "2", take}, {"日本", "日本", take}, {"日本語", "中国語", no},
	} {
		a, b := spell(row.a), spell(row.b)
		if len(a) != 1 || len(b) != 1 {
			t.Fatalf("%v, %v", a, b)
		}
		got := no
		switch likeness := alike(a[0], b[0], false); {
		case likeness >= heard:
			got = take
		case likeness > 0:
			got = ask
		}
		if got != row.want {
			t.Errorf("%q and %q: %d (%v), want %d", row.a, row.b, got, alike(a[0], b[0], false), row.want)
		}
		if alike(a[0], b[0], false) != alike(b[0], a[0], false) {
			t.Errorf("%q and %q depend on the order", row.a, row.b)
		}
	}
}

func TestSounds(t *testing.T) {
	t.Parallel()
	for a, b := range map[string]string{
		"cash": "cache", "jason": "json", "sensor": "censor", "century": "sentry", "hetsner": "hetzner", "lair": "layer",
		"chump": "jump", "graphanna": "grafana", "enginex": "nginx", "zoos": "zeus", "bic": "big", "photo": "foto",
		"ghcr": "cr", "ghgh-z": "z", // "gh" has no sound
	} {
		if soundOf(a) != soundOf(b) || soundOf(a) == "" {
			t.Errorf("%s is %s, %s is %s", a, soundOf(a), b, soundOf(b))
		}
	}
	for _, none := range []string{"", "12", "aeiou", "日本", "gh", "ghigh"} {
		if got := soundOf(none); got != "" {
			t.Errorf("%q is %q", none, got)
		}
	}
}

func TestSpell(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"GPU-box 01": "gpu box 1", "g p u box": "gpu box", "build zero two": "build 2", "C++": "c plus plus",
		"Fräsensteuerung": "frasensteuerung", "A/B test": "ab test", "sixteen": "16", "twenty one": "21", "U.S.": "us",
		"d dupe": "d dupe", "": "", "0": "0", "000": "0",
	} {
		var texts []string
		for _, w := range spell(name) {
			texts = append(texts, w.text)
		}
		got := strings.Join(texts, " ")
		if got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

// FuzzHearing: nothing that is said makes a hearing that is out of bounds, or takes another number for a name.
func FuzzHearing(f *testing.F) {
	f.Add("guild zero two", "build-02")
	f.Add("sir o gate pairs", "JSON parser chokes on surrogate pairs")
	f.Add("İ\u0307 oh one", "ß 01")
	f.Add("g h z", "Bump the ghcr image")
	f.Fuzz(func(t *testing.T, said, name string) {
		if len(said) > MaxName || len(name) > MaxName {
			return
		}
		of := NewName(name)
		for _, h := range NewQuery(said, ByLength, func(string) bool { return false }) {
			got := h.fit(of, Name{})
			if got.said < 0 || got.said > 1+1e-9 || got.name < 0 || got.name > 1+1e-9 || got.full && !got.sure {
				t.Fatalf("%q, %q: %+v", said, name, got)
			}
			figures := map[string]bool{}
			for _, w := range of.spans {
				figures[w.text] = true
			}
			for _, w := range h.said {
				if w.figures() && !figures[w.text] && got.said > 0 {
					t.Fatalf("%q is another number than %q: %+v", said, name, got)
				}
			}
		}
	})
}
