// Package bundler makes of the page's modules what browsers load. go generate and tests use it: what it makes is
// committed in web/bundle, so the program has no part of it.
//
// It must not know who serves the page.
package bundler

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
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

// Bundle bundles the page's modules into one script and its style sheets into one sheet, minifies both, and makes
// index.html load them. It takes and returns files by name. The names of what it returns, but for index.html, contain a
// hash, so that browsers cache them for good. Modules that are loaded late, such as the colours of code, stay scripts
// of their own, and so does pcm.js, which runs in the audio thread.
func Bundle(page map[string][]byte) (map[string][]byte, error) {
	made, err := scriptsOf(page)
	if err != nil {
		return nil, err
	}
	index := string(page["index.html"])
	var style bytes.Buffer
	for _, m := range sheets.FindAllStringSubmatch(index, -1) {
		style.Write(page[m[1]])
	}
	css := api.Transform(
		style.String(),
		api.TransformOptions{Loader: api.LoaderCSS, MinifyWhitespace: true, MinifySyntax: true},
	)
	if err := failed("style sheets", css.Errors, css.Warnings); err != nil {
		return nil, err
	}
	made["page-"+sumOf(css.Code)+".css"] = css.Code
	var script, sheet, sound string
	for name := range made {
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
	made["index.html"] = []byte(scripts.ReplaceAllLiteralString(index, script))
	return made, nil
}

// scriptsOf bundles main.js and pcm.js.
func scriptsOf(page map[string][]byte) (map[string][]byte, error) {
	embedded := api.Plugin{Name: "embedded", Setup: func(b api.PluginBuild) {
		b.OnResolve(api.OnResolveOptions{Filter: ".*"}, func(a api.OnResolveArgs) (api.OnResolveResult, error) {
			return api.OnResolveResult{Path: path.Base(a.Path), Namespace: "page"}, nil
		})
		b.OnLoad(api.OnLoadOptions{Filter: ".*", Namespace: "page"}, func(a api.OnLoadArgs) (api.OnLoadResult, error) {
			module, ok := page[a.Path]
			if !ok {
				return api.OnLoadResult{}, errors.New("there is no such file")
			}
			return api.OnLoadResult{Contents: new(string(module)), Loader: api.LoaderJS}, nil
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

// failed returns the first message as an error, or nil. The messages of a style sheet include warnings: a missing brace
// is only a warning, but makes all rules after it depend on a condition.
func failed(what string, found ...[]api.Message) error {
	all := slices.Concat(found...)
	if len(all) == 0 {
		return nil
	}
	return fmt.Errorf("bundle the page's %s: %s", what, all[0].Text)
}

// sumOf returns a short hash of a file's content.
func sumOf(body []byte) string {
	sum := sha256.Sum256(body)
	return strings.ToUpper(hex.EncodeToString(sum[:4]))
}
