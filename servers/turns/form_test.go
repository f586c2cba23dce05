package turns

import (
	"encoding/json"
	"strings"
	"testing"

	"switchboard/handoff"
)

// TestForms: the questions of a form, and the values that answers fill in; "no": an answer that does not fit.
func TestForms(t *testing.T) {
	t.Parallel()
	const (
		size = `"size":{"type":"string","title":"Size","enum":["Small","Large"]}`
		kind = `"kind":{"type":"string","title":"Kind?","description":"of it",` +
			`"oneOf":[{"const":"k1","title":"One"},{"const":"k2"}]}`
		turned  = `"turn":{"type":"string","oneOf":[{"const":"a","title":"B"},{"const":"b","title":"A"}]}`
		several = `"some":{"type":"array","items":{"anyOf":[{"const":"k1","title":"One"},{"const":"k2"}]}}`
		words   = `"some":{"type":"array","maxItems":2,"items":{"type":"string","enum":["x","y","z"]}}`
		more    = `"kind_custom":{"type":"string","title":"Other"}`
	)
	for _, test := range []struct{ properties, asks, lines, want string }{
		{size, `Which? [Small Large]`, "large", `{"size":"Large"}`},
		{size, `Which? [Small Large]`, "medium", "no"},
		{kind, `Which? [One k2]`, "ONE", `{"kind":"k1"}`},
		{kind, `Which? [One k2]`, "k1", "no"},
		{kind, `Which? [One k2]`, "another", "no"},
		{kind + "," + more, `Which? [One k2]`, "k2", `{"kind":"k2"}`},
		{turned, `Which? [B A]`, "a", `{"turn":"b"}`},
		{kind + "," + more, `Which? [One k2]`, "another", `{"kind_custom":"another"}`},
		{kind + "," + more, `Which? [One k2]`, "", "no"},
		{more, `Which? []`, "alone", `{"kind_custom":"alone"}`},
		{kind + "," + size, `Kind?: of it [One k2]; Size [Small Large]`, "one\nsmall", `{"kind":"k1","size":"Small"}`},
		{kind + "," + size, `Kind?: of it [One k2]; Size [Small Large]`, "one", "no"},
		{`"a":{"type":"string"},"b":{"type":"string"}`, `a []; b []`, "x\ny", `{"a":"x","b":"y"}`},
		{`"a":{"type":"string"}`, `Which? []`, " x\n y ", `{"a":"x\n y"}`},
		{`"a":{"type":"boolean"}`, `Which? [yes no]`, "Yes", `{"a":true}`},
		{`"a":{"type":"boolean"}`, `Which? [yes no]`, "no", `{"a":false}`},
		{`"a":{"type":"boolean"}`, `Which? [yes no]`, "maybe", "no"},
		{`"a":{"type":"integer"}`, `Which? []`, "-3", `{"a":-3}`},
		{`"a":{"type":"integer"}`, `Which? []`, "2.7", "no"},
		{`"a":{"type":"number"}`, `Which? []`, "2.7", `{"a":2.7}`},
		{`"a":{"type":"number"}`, `Which? []`, "NaN", "no"},
		{`"a":{"type":"number"}`, `Which? []`, "1e999", "no"},
		{several, `Which? [One k2]`, "one and k2", `{"some":["k1","k2"]}`},
		{several, `Which? [One k2]`, "one and three", "no"},
		{words, `Which? [x y z]`, "x, z", `{"some":["x","z"]}`},
		{words, `Which? [x y z]`, "x, y, z", "no"},
		{several + `,"some_custom":{"type":"string"}`, `Which? [One k2]`, "none of those", `{"some_custom":"none of those"}`},
		{kind + "," + several + `,"z":{"type":"string"}`, `Kind?: of it [One k2]; some [One k2] may; z [] may`, "one\nskip\n",
			`{"kind":"k1"}`},
		{`"z":{"type":"string"},"y":{"type":"integer"}`, `z [] may; y [] may`, "\n4", `{"y":4}`},
		{`"z":{"type":"string"},"y":{"type":"integer"}`, `z [] may; y [] may`, "\n", "no"},
	} {
		f, readable := ReadForm(json.RawMessage(`{"properties":{` + test.properties + `},"required":["a","b","size","kind"]}`))
		q := handoff.Question{Asks: f.Asks("Which?")}
		var asks []string
		for _, a := range q.Asks {
			asks = append(asks, a.Text+" ["+strings.Join(a.Options, " ")+"]"+strings.Repeat(" may", bit(a.Optional)))
		}
		got := "no"
		answers, err := q.Read(handoff.Reply{Words: test.lines})
		if err == nil {
			var form map[string]any
			if form, err = f.Fill(answers); err == nil {
				got = handoff.Encode(form)
			}
		}
		if asked := strings.Join(asks, "; "); asked != test.asks || got != test.want || !readable {
			t.Errorf("%s asks %q, and %q gives %s; want %q and %s", test.properties, asked, test.lines, got, test.asks,
				test.want)
		}
	}
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// TestUnreadForms: what cannot be asked here, and what is a plain yes or no.
func TestUnreadForms(t *testing.T) {
	t.Parallel()
	for schema, readable := range map[string]bool{
		``: true, `null`: true, `{}`: true, `{"type":"object","properties":{}}`: true, `[]`: false, `7`: false,
		`{"properties":{"a":{"type":"object"}}}`:                false,
		`{"properties":{"a":{"type":"array"}}}`:                 false,
		`{"properties":{"a":7}}`:                                false,
		`{"properties":{"a":{"type":"string"},"b":{}}}`:         false,
		`{"properties":{"a":{"type":"array","items":{"a":1}}}}`: false,
	} {
		if f, is := ReadForm(json.RawMessage(schema)); is != readable || is && f.Len() > 0 {
			t.Errorf("%s is %+v, %t", schema, f, is)
		}
	}
}
