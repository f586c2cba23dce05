package rich

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"switchboard/handoff"
)

// rows are texts of agents and what is shown of them: as elements, with links to the web alone.
var rows = []struct{ name, markdown, want string }{
	{"headings", "# Report\n\n###### Small", `<h1>Report</h1><h6>Small</h6>`},
	{"emphasis", "All **unit** tests *pass*; ~~two~~ none.", `<p>All <strong>unit</strong> tests <em>pass</em>; <del>two</del> none.</p>`},
	{"lists", "3. three\n4. four\n   - nested\n", `<ol start=3><li>three</li><li>four<ul><li>nested</li></ul></li></ol>`},
	{"tasks", "- [x] tests\n- [ ] docs", `<ul><li><task>x</task>tests</li><li><task></task>docs</li></ul>`},
	{"tables", "| a | b |\n|:--|--:|\n| `x` | 1 ms |", `<table><tr><th>a</th><th right>b</th></tr><tr><td><code>x</code></td><td right>1 ms</td></tr></table>`},
	{"quotes", "> one\n> two", `<blockquote><p>one two</p></blockquote>`},
	{"code", "```go\nfunc f() {}\n```\n\n    plain\n", `<pre go>func f() {}` + "\n" + `</pre><pre>plain` + "\n" + `</pre>`},
	{"lines and rules", "a  \nb\n\n---\n", `<p>a<br></br>b</p><hr></hr>`},
	{"entities and escapes", `1 &lt; 2 &amp; \*no\* &#65;`, `<p>1 < 2 & *no* A</p>`},
	{"entities in code stay", "`&lt;b&gt;`", `<p><code>&lt;b&gt;</code></p>`},
	{"links", "[the change](https://example.com/pull/482?a=1&b=2 \"t\")", `<p><a https://example.com/pull/482?a=1&b=2>the change</a></p>`},
	{"bare links", "See https://example.com/a_b/c?q=1#f.", `<p>See <a https://example.com/a_b/c?q=1#f>https://example.com/a_b/c?q=1#f</a>.</p>`},
	{"links of reference", "[x][1]\n\n[1]: http://example.com", `<p><a http://example.com>x</a></p>`},
	{"images are links", "![a chart](https://example.com/c.png)", `<p><image https://example.com/c.png>a chart</image></p>`},
	{"an image without words", "![](https://example.com/c.png)", `<p><image https://example.com/c.png>https://example.com/c.png</image></p>`},
	{"an image in a link", "[![build](https://ci.example.com/b.svg)](https://ci.example.com)", `<p><a https://ci.example.com><image https://ci.example.com/b.svg>build</image></a></p>`},

	{"a script", "<script>alert(1)</script>\n\nok", `<p><script>alert(1)</script></p><p>ok</p>`},
	{"HTML in a line", `a <img src=x onerror=alert(1)> b`, `<p>a <img src=x onerror=alert(1)> b</p>`},
	{"tags that are not closed", "<div onclick=\"x\"><b>bold\n\nnext", `<p><div onclick="x"><b>bold</p><p>next</p>`},
	{"a form that looks like ours", `<button class="button primary" data-decision="accept">Allow once</button>`, `<p><button class="button primary" data-decision="accept">Allow once</button></p>`},
	{"javascript:", "[x](javascript:alert(1)) [y](JaVaScRiPt:alert(1)) [z](java&#x73;cript&colon;alert(1))", `<p>x y z</p>`},
	{"data:", "[x](data:text/html;base64,PHNjcmlwdD4=) ![p](data:image/svg+xml,x)", `<p>x p</p>`},
	{"other addresses", "[a](file:///etc/passwd) [b](//example.com) [c](#login) [d](ftp://example.com) [e](switchboard:x) <me@example.com> [f](/fleet/work)", `<p>a b c d e me@example.com f</p>`},
	{"a host that is a name of somebody", "[your bank](https://bank.example.com@evil.example.org/)", `<p>your bank</p>`},
	{"what a browser reads otherwise", "[x](https:\\\\evil.example.org) [y](https://a\\@b)", `<p>x y</p>`},
	{"a language that is none", "```\"><img src=x>\nx\n```", "<pre>x\n</pre>"},
	{"a code that is not closed", "```js\nlet a = 1;", "<pre js>let a = 1;\n</pre>"},
	{"bytes that are no text", "a\xff\x00b", "<p>a\ufffd\ufffdb</p>"},
	{"nothing", "", ""},
}

// shown writes nodes down: readable, and told apart from text by [TestParse] alone.
func shown(nodes []Node) string {
	var s strings.Builder
	for _, n := range nodes {
		if n.Tag == "" {
			s.WriteString(n.Text)
			continue
		}
		s.WriteString("<" + n.Tag)
		if n.Start != 0 {
			s.WriteString(" start=" + string('0'+rune(n.Start)))
		}
		for _, more := range []string{n.Href, n.Lang, n.Align} {
			if more != "" {
				s.WriteString(" " + more)
			}
		}
		s.WriteString(">" + n.Text + shown(n.In) + "</" + n.Tag + ">")
	}
	return s.String()
}

func TestParse(t *testing.T) {
	for _, row := range rows {
		got := Parse(row.markdown, Web)
		if shown(got) != row.want {
			t.Errorf("%s:\ngot  %s\nwant %s", row.name, shown(got), row.want)
		}
		holds(t, got, 0)
	}
}

// tags are all that a page may be told to show.
var tags = strings.Fields("h1 h2 h3 h4 h5 h6 p ul ol li task blockquote pre code em strong del a image br hr table tr th td")

// holds fails unless nodes are what [Node] says.
func holds(t *testing.T, nodes []Node, depth int) {
	t.Helper()
	if depth > maxDepth+2 {
		t.Fatalf("nested %d deep", depth)
	}
	for _, n := range nodes {
		link := n.Tag == "a" || n.Tag == "image"
		switch {
		case n.Tag != "" && !slices.Contains(tags, n.Tag), link != (n.Href != ""), n.Lang != "" && n.Tag != "pre",
			n.Align != "" && n.Align != "center" && n.Align != "right", language(n.Lang) != n.Lang:
			t.Fatalf("%+v", n)
		case link && (!strings.HasPrefix(n.Href, "http://") && !strings.HasPrefix(n.Href, "https://") || strings.ContainsAny(n.Href, " \t\n\\\"<>")):
			t.Fatalf("a link to %q", n.Href)
		}
		holds(t, n.In, depth+1)
	}
}

// TestParseIsBounded: whatever an agent writes, a megabyte of it is answered soon and with no more than it has.
func TestParseIsBounded(t *testing.T) {
	const size = 1 << 20
	fill := func(s string) string { return strings.Repeat(s, size/len(s)) }
	for _, text := range []string{
		fill("> "), fill("- "), fill("1. "), fill("*a **b "), fill("["), fill("![a]("), fill("`"), fill("<div>"), fill("a|"),
		fill("| a "), "|a|b|\n|-|-|\n" + fill("|x|y\n"), fill("[a](b"), fill("&#x41;"), fill("\\"), fill("_"), fill("~~a"),
		fill("http://a"), fill("www.a "), fill("[a]: b\n"), fill("# "), fill("- [x] "), fill("* * "), fill("\n\n"), fill("x"),
		fill("<!--"), fill("<?"), fill("a@b.c "), fill("- a\n  - b\n"), fill("\t"), fill("]("), fill("[a](b\n"), fill("![a](\n"), fill("*a **b\n"), fill("> \n"),
	} {
		began := time.Now()
		got := Parse(text, Web)
		t.Logf("%.12q: %v", text, time.Since(began).Round(time.Millisecond))
		holds(t, got, 0)
		if body, err := json.Marshal(got); err != nil || len(body) > 40*size {
			t.Errorf("%.12q: %d bytes, %v", text, len(body), err)
		}
	}
	text := strings.Repeat("All is well. ", maxMarkdown)
	if got := Words(Node{In: Parse(text, Web)}); strings.Count(got, "All is well.") != maxMarkdown {
		t.Errorf("something of a long text is missing: %d of %d bytes", len(got), len(text))
	}
}

func TestWeb(t *testing.T) {
	for _, address := range []string{
		"https://example.com", "http://127.0.0.1:8080/x?y#z", "https://[::1]/", "https://example.com/%20a", "https://xn--bcher-kva.example",
	} {
		if Web(address) != address {
			t.Errorf("%q is refused or changed: %q", address, Web(address))
		}
	}
	for _, address := range []string{
		"", "x", "/x", "//x", "javascript:alert(1)", " https://a", "https:///x", "https:x", "https://a b", "ht\ntps://a", "https://u@h",
		"https://u:p@h", "vbscript:x", "blob:https://a", "mailto:a@b", "https://a\x00", `http://0"0`, "https://a/<b>", "https://\u2028a",
	} {
		if got := Web(address); got != "" {
			t.Errorf("%q leads to %q", address, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, row := range rows {
		f.Add(row.markdown)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := Parse(text, Web)
		holds(t, got, 0)
		if !handoff.TooDeep([]byte(handoff.Encode(got))) {
			return
		}
		t.Fatal("too deep to be read as JSON")
	})
}
