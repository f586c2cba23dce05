package web

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

var (
	sheets  = regexp.MustCompile(`(?m)^\s*<link rel="stylesheet" href="page/([^"]+)">\n`)
	scripts = regexp.MustCompile(`<script type="module" src="page/main.js"></script>`)
	worklet = regexp.MustCompile(`<meta name="worklet" content="page/pcm.js">`)
)

// bundle puts the page's modules into one script and its style sheets into one sheet, without what only people read,
// and has index.html load these. Their names change with what is in them, so that browsers keep them and never ask
// again. What is loaded late, such as the colours of code, stays a script of its own, and so does what runs in the
// thread of sound (pcm.js). The modules stay beside them.
func bundle(files map[string]file) error {
	index := string(files["index.html"].body)
	made, err := scriptsOf(files)
	if err != nil {
		return err
	}
	var style bytes.Buffer
	for _, m := range sheets.FindAllStringSubmatch(index, -1) {
		style.Write(files[m[1]].body)
	}
	css := api.Transform(
		style.String(),
		api.TransformOptions{Loader: api.LoaderCSS, MinifyWhitespace: true, MinifySyntax: true},
	)
	if err := failed("style sheets", css.Errors, css.Warnings); err != nil {
		return err
	}
	made["page-"+sumOf(css.Code)[:8]+".css"] = css.Code
	var script, sheet, sound string
	for name, body := range made {
		f := newFile(name, body)
		f.lasting = true
		files[name] = f
		switch {
		case strings.HasPrefix(name, "main-"):
			script = fmt.Sprintf(`<script type="module" src="page/%s"></script>`, name)
		case strings.HasPrefix(name, "pcm-"):
			sound = fmt.Sprintf(`<meta name="worklet" content="page/%s">`, name)
		case strings.HasPrefix(name, "page-"):
			sheet = fmt.Sprintf(`  <link rel="stylesheet" href="page/%s">`+"\n", name)
		}
	}
	first := true
	index = sheets.ReplaceAllStringFunc(index, func(string) string {
		if !first {
			return ""
		}
		first = false
		return sheet
	})
	index = worklet.ReplaceAllLiteralString(index, sound)
	files["index.html"] = newFile("index.html", []byte(scripts.ReplaceAllLiteralString(index, script)))
	return nil
}

// scriptsOf bundles main.js and pcm.js, by name.
func scriptsOf(files map[string]file) (map[string][]byte, error) {
	embedded := api.Plugin{Name: "embedded", Setup: func(b api.PluginBuild) {
		b.OnResolve(api.OnResolveOptions{Filter: ".*"}, func(a api.OnResolveArgs) (api.OnResolveResult, error) {
			return api.OnResolveResult{Path: path.Base(a.Path), Namespace: "page"}, nil
		})
		b.OnLoad(api.OnLoadOptions{Filter: ".*", Namespace: "page"}, func(a api.OnLoadArgs) (api.OnLoadResult, error) {
			f, ok := files[a.Path]
			if !ok {
				return api.OnLoadResult{}, errors.New("there is no such file")
			}
			return api.OnLoadResult{Contents: new(string(f.body)), Loader: api.LoaderJS}, nil
		})
	}}
	result := api.Build(api.BuildOptions{
		EntryPoints: []string{"main.js", "pcm.js"}, Outdir: "/page", EntryNames: "[name]-[hash]", ChunkNames: "part-[hash]",
		Bundle: true, Splitting: true, Format: api.FormatESModule, Plugins: []api.Plugin{embedded},
		LogLevel:         api.LogLevelSilent,
		MinifyWhitespace: true, MinifyIdentifiers: true, MinifySyntax: true, LegalComments: api.LegalCommentsInline,
	})
	made := map[string][]byte{}
	for _, f := range result.OutputFiles {
		made[path.Base(f.Path)] = f.Contents
	}
	return made, failed("modules", result.Errors)
}

// failed is the error of a bundle. A style sheet must not be warned of either: a brace too few puts all that follows
// under a condition, and looks right wherever that holds.
func failed(what string, found ...[]api.Message) error {
	all := slices.Concat(found...)
	if len(all) == 0 {
		return nil
	}
	return fmt.Errorf("bundle the page's %s: %s", what, all[0].Text)
}

// sumOf is a short name of what is in a file.
func sumOf(body []byte) string {
	sum := sha256.Sum256(body)
	return base64.RawURLEncoding.EncodeToString(sum[:12])
}
