package workspace

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"switchboard/handoff"
)

// Bounds of reading.
const (
	maxRead    = 48 << 10 // bytes of one answer of read_file
	maxPicture = 4 << 20  // bytes
	maxEntries = 1000     // of one answer of list_dir or glob
	maxWalk    = 100_000  // entries that glob and grep visit
	maxHits    = 200      // lines of one answer of grep
	maxHit     = 300      // runes of such a line
	maxGrep    = 4 << 20  // bytes of a file; grep skips larger ones
	sniff      = 8 << 10  // bytes at the beginning that show whether a file is text
)

func readTools() []Tool {
	return []Tool{
		{Name: "read_file", Description: "Reads a text file of the workspace, or shows a picture.", run: decoded(readFile),
			Parameters: object(map[string]any{
				"path": text("relative to the workspace"), "offset": optional("integer", "first line, from 1"),
				"limit": optional("integer", "number of lines"),
			}, "path", "offset", "limit")},
		{Name: "list_dir", Description: "Lists a directory of the workspace. Directories end in a slash.",
			run:        decoded(listDir),
			Parameters: object(map[string]any{"path": text("relative to the workspace; . is the workspace itself")}, "path")},
		{Name: "glob", Description: "Finds files by a pattern such as **/*.go.", run: decoded(glob),
			Parameters: object(map[string]any{"pattern": text("* and ? stay in one directory, ** does not")}, "pattern")},
		{Name: "grep", Description: "Finds lines by a regular expression (RE2).", run: decoded(grep),
			Parameters: object(map[string]any{
				"pattern": text("the expression"), "path": optional("string", "a directory or file; null is the whole workspace"),
				"glob": optional("string", "only files whose path fits, such as **/*.go"),
			}, "pattern", "path", "glob")},
	}
}

// open opens a regular file. It refuses pipes and devices without blocking on them.
func (w *Workspace) open(name string) (*os.File, int64, error) {
	name, err := w.local(name)
	if err != nil {
		return nil, 0, err
	}
	f, err := w.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New(name + " is no regular file")
	}
	if err != nil {
		_ = f.Close()
		return nil, 0, err
	}
	return f, info.Size(), nil
}

func readFile(ctx context.Context, w *Workspace, args struct {
	Path   string `json:"path"`
	Offset *int   `json:"offset"`
	Limit  *int   `json:"limit"`
}, _ Call) (Result, error) {
	f, size, err := w.open(args.Path)
	if err != nil {
		return Result{}, err
	}
	defer func() { _ = f.Close() }()
	start := make([]byte, min(size, sniff))
	n, err := io.ReadFull(f, start)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return Result{}, err
	}
	kind := http.DetectContentType(start[:n])
	switch {
	case slices.Contains([]string{"image/png", "image/jpeg", "image/gif", "image/webp"}, kind):
		return picture(f, size, kind, start[:n])
	case bytes.IndexByte(start[:n], 0) >= 0:
		return Result{}, fmt.Errorf("%s is not text (%s, %d bytes)", args.Path, kind, size)
	}
	return readLines(ctx, io.MultiReader(bytes.NewReader(start[:n]), f), max(value(args.Offset), 1), value(args.Limit))
}

func picture(f io.Reader, size int64, kind string, start []byte) (Result, error) {
	if size > maxPicture {
		return Result{}, fmt.Errorf("the picture has %d bytes, which is too much", size)
	}
	rest, err := io.ReadAll(io.LimitReader(f, maxPicture))
	if err != nil {
		return Result{}, err
	}
	data := append(slices.Clone(start), rest...)
	return Result{Text: kind, Pictures: []string{"data:" + kind + ";base64," + base64.StdEncoding.EncodeToString(data)}},
		nil
}

// readLines returns lines, from number first on, at most limit (0 for all) and as many as fit, unless ctx ends.
func readLines(ctx context.Context, r io.Reader, first, limit int) (Result, error) {
	var b strings.Builder
	in := bufio.NewReaderSize(r, sniff)
	for n := 1; ; n++ {
		line, err := longLine(ctx, in, maxRead)
		if err == io.EOF && line == "" {
			if n <= first && first > 1 {
				return Result{}, fmt.Errorf("it has only %d lines", n-1)
			}
			return Result{Text: cmp.Or(b.String(), "(empty)")}, nil
		}
		if err != nil && err != io.EOF {
			return Result{}, err
		}
		if n < first {
			continue
		}
		if limit > 0 && n >= first+limit || b.Len()+len(line) > maxRead {
			fmt.Fprintf(&b, "[more follows; go on with offset %d]\n", n)
			return Result{Text: b.String()}, nil
		}
		b.WriteString(line)
	}
}

// longLine reads a line with its line end, cut at limit bytes. It fails once ctx ends.
func longLine(ctx context.Context, in *bufio.Reader, limit int) (string, error) {
	var line []byte
	for {
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		part, err := in.ReadSlice('\n')
		if room := limit - len(line); room > 0 {
			line = append(line, part[:min(len(part), room)]...)
		}
		if err != bufio.ErrBufferFull {
			return strings.ToValidUTF8(string(line), "?"), err
		}
	}
}

func listDir(_ context.Context, w *Workspace, args struct {
	Path string `json:"path"`
}, _ Call) (Result, error) {
	name, err := w.local(cmp.Or(args.Path, "."))
	if err != nil {
		return Result{}, err
	}
	entries, err := fs.ReadDir(w.root.FS(), name)
	if err != nil {
		return Result{}, err
	}
	var b strings.Builder
	for i, e := range entries {
		if i == maxEntries {
			fmt.Fprintf(&b, "[%d more]\n", len(entries)-i)
			break
		}
		b.WriteString(e.Name() + map[bool]string{true: "/"}[e.IsDir()] + "\n")
	}
	return Result{Text: cmp.Or(b.String(), "(empty)")}, nil
}

// walk calls found for each regular file below a path, in order, until it returns false. It follows no links.
func (w *Workspace) walk(ctx context.Context, from string, found func(name string) (more bool)) error {
	seen := 0
	return fs.WalkDir(w.root.FS(), from, func(name string, e fs.DirEntry, err error) error {
		if seen++; seen > maxWalk {
			return errors.New("there are too many files; name a directory")
		}
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil && name == from:
			return err
		case err != nil:
			return nil // unreadable entries are left out
		case e.IsDir() && name != from && slices.Contains([]string{".git", "node_modules"}, e.Name()):
			return fs.SkipDir
		case e.Type().IsRegular() && !found(name):
			return fs.SkipAll
		}
		return nil
	})
}

func glob(ctx context.Context, w *Workspace, args struct {
	Pattern string `json:"pattern"`
}, _ Call) (Result, error) {
	fits, err := globPattern(args.Pattern)
	if err != nil {
		return Result{}, err
	}
	var names []string
	err = w.walk(ctx, ".", func(name string) bool {
		if fits.MatchString(name) {
			names = append(names, name)
		}
		return len(names) <= maxEntries
	})
	if err != nil {
		return Result{}, err
	}
	if len(names) > maxEntries {
		names[maxEntries] = "[more follows; narrow the pattern]"
	}
	return Result{Text: cmp.Or(strings.Join(names, "\n"), "(none)")}, nil
}

// globPattern translates a pattern: ** matches any directories, * and ? stay within one name.
func globPattern(pattern string) (*regexp.Regexp, error) {
	if pattern == "" || len(pattern) > 1000 {
		return nil, errors.New("a pattern is needed, and a short one")
	}
	return regexp.Compile("^" + globs.Replace(regexp.QuoteMeta(path.Clean(pattern))) + "$")
}

// globs turns what is special in a pattern, of which the special characters were quoted, into an expression. Set once.
var globs = strings.NewReplacer(`\*\*/`, "(?:.*/)?", `\*\*`, ".*", `\*`, "[^/]*", `\?`, "[^/]")

func grep(ctx context.Context, w *Workspace, args struct {
	Pattern string  `json:"pattern"`
	Path    *string `json:"path"`
	Glob    *string `json:"glob"`
}, _ Call) (Result, error) {
	wanted, err := regexp.Compile(args.Pattern)
	if err != nil {
		return Result{}, err
	}
	only := regexp.MustCompile("")
	if glob := value(args.Glob); glob != "" {
		if only, err = globPattern(glob); err != nil {
			return Result{}, err
		}
	}
	from, err := w.local(cmp.Or(value(args.Path), "."))
	if err != nil {
		return Result{}, err
	}
	var hits []string
	err = w.walk(ctx, from, func(name string) bool {
		if only.MatchString(name) {
			hits = append(hits, w.grepFile(name, wanted, maxHits+1-len(hits))...)
		}
		return len(hits) <= maxHits
	})
	if err != nil {
		return Result{}, err
	}
	if len(hits) > maxHits {
		hits[maxHits] = "[more follows; narrow the expression]"
	}
	return Result{Text: cmp.Or(strings.Join(hits, "\n"), "(none)")}, nil
}

// grepFile returns at most limit matching lines of a text file; none of an unreadable one.
func (w *Workspace) grepFile(name string, wanted *regexp.Regexp, limit int) []string {
	f, size, err := w.open(name)
	if err != nil || size > maxGrep {
		if err == nil {
			_ = f.Close()
		}
		return nil
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, maxGrep))
	if err != nil || bytes.IndexByte(data[:min(len(data), sniff)], 0) >= 0 {
		return nil
	}
	var hits []string
	for i, line := range strings.Split(strings.TrimRight(string(data), "\n"), "\n") {
		if len(hits) < limit && wanted.MatchString(line) {
			hits = append(hits, fmt.Sprintf("%s:%d: %s", name, i+1, handoff.ClipRunes(strings.ToValidUTF8(line, "?"), maxHit)))
		}
	}
	return hits
}
