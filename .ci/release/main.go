// Release builds Switchboard for other machines: an archive for each platform, with the licenses of everything that is
// linked into the program, and a file SHA256SUMS for all archives. The same sources, version and Go make the same bytes
// on every machine. It is run by make release:
//
//	go run ./.ci/release -version v1.2.0 -revision COMMIT -out dist linux/amd64 darwin/arm64
package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// A file is one entry of an archive.
type file struct {
	name string
	mode int64
	data []byte
}

// A release is what the archives of one version have in common.
type release struct{ version, revision, out string }

func main() {
	log.SetFlags(0)
	log.SetPrefix("release: ")
	var r release
	flag.StringVar(&r.version, "version", "", "what --version tells")
	flag.StringVar(&r.revision, "revision", "", "the commit, which --version tells too")
	flag.StringVar(&r.out, "out", "dist", "the directory to write to")
	flag.Parse()
	if r.version == "" || strings.ContainsAny(r.version+r.revision, " /'\"") || flag.NArg() == 0 {
		log.Fatal("usage: release -version VERSION [-revision COMMIT] [-out DIR] OS/ARCH ...")
	}
	if err := r.make(flag.Args()); err != nil {
		log.Fatal(err)
	}
}

// make writes the archives and their checksums.
func (r release) make(platforms []string) error {
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	var sums strings.Builder
	for _, platform := range platforms {
		system, processor, ok := strings.Cut(platform, "/")
		if !ok {
			return fmt.Errorf("%q is not OS/ARCH", platform)
		}
		name := strings.Join([]string{"switchboard", r.version, system, processor}, "-")
		files, err := r.build(system, processor)
		if err != nil {
			return fmt.Errorf("%s: %w", platform, err)
		}
		data, err := archive(name, files)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(r.out, name+".tar.gz"), data, 0o644); err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%x  %s.tar.gz\n", sha256.Sum256(data), name)
		log.Printf("%s.tar.gz, %d MB", name, len(data)>>20)
	}
	return os.WriteFile(filepath.Join(r.out, "SHA256SUMS"), []byte(sums.String()), 0o644)
}

// build returns what is in the archive of a platform.
func (r release) build(system, processor string) ([]file, error) {
	// These variables override settings of the environment that would change the bytes.
	env := append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+processor, "GOFLAGS=-trimpath",
		"GOAMD64=v1", "GOARM64=v8.0", "GOEXPERIMENT=", "GOFIPS140=off")
	dir, err := os.MkdirTemp("", "release")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	binary := filepath.Join(dir, "switchboard")
	// With -buildvcs=false, a copy of the sources without their history makes the same bytes.
	if _, err := run(env, "go", "build", "-buildvcs=false", "-ldflags=-s -w -buildid= -X main.releaseVersion="+r.version+
		" -X main.releaseRevision="+r.revision, "-o", binary, "./cmd/switchboard"); err != nil {
		return nil, err
	}
	program, err := os.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	readme, err := os.ReadFile("README.md")
	if err != nil {
		return nil, err
	}
	licenses, err := licenses(env)
	if err != nil {
		return nil, err
	}
	files := []file{{"switchboard", 0o755, program}, {"README.md", 0o644, readme}, {"LICENSES.txt", 0o644, licenses}}
	if own, err := os.ReadFile("LICENSE"); err == nil {
		files = append(files, file{"LICENSE", 0o644, own})
	}
	return files, nil
}

// isLicense matches the names of license files.
var isLicense = regexp.MustCompile(`(?i)^(licen[sc]e|copying|notice)`)

// licenses returns the licenses of Go and of each linked module, which have to be part of every copy.
func licenses(env []string) ([]byte, error) {
	goroot, err := run(env, "go", "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	deps, err := run(env, "go", "list", "-deps", "-f",
		"{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}\t{{.Dir}}{{end}}{{end}}", "./cmd/switchboard")
	if err != nil {
		return nil, err
	}
	modules := slices.Sorted(strings.Lines(string(deps)))
	modules = append([]string{"Go\t" + string(goroot)}, slices.Compact(modules)...)
	var all bytes.Buffer
	for _, module := range modules {
		name, dir, ok := strings.Cut(strings.TrimSpace(module), "\t")
		if !ok {
			continue
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			return nil, err
		}
		found := slices.DeleteFunc(entries, func(e os.DirEntry) bool { return e.IsDir() || !isLicense.MatchString(e.Name()) })
		if len(found) == 0 {
			return nil, fmt.Errorf("no license of %s in %s", name, dir)
		}
		for _, e := range found {
			text, err := os.ReadFile(filepath.Join(dir, e.Name()))
			if err != nil {
				return nil, err
			}
			fmt.Fprintf(&all, "==== %s: %s\n\n%s\n", name, e.Name(), text)
		}
	}
	return all.Bytes(), nil
}

// archive packs files into a directory of this name, without times, owners and other traces of the machine.
func archive(dir string, files []file) ([]byte, error) {
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	out := tar.NewWriter(zip)
	for _, f := range files {
		header := &tar.Header{Typeflag: tar.TypeReg, Name: dir + "/" + f.name, Mode: f.mode, Size: int64(len(f.data)),
			ModTime: time.Unix(0, 0), Format: tar.FormatUSTAR}
		if err := out.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := out.Write(f.data); err != nil {
			return nil, err
		}
	}
	err := errors.Join(out.Close(), zip.Close())
	return packed.Bytes(), err
}

// run runs a command and returns its standard output.
func run(env []string, name string, args ...string) ([]byte, error) {
	var out bytes.Buffer
	cmd := exec.Command(name, args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = env, &out, os.Stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s: %w", strings.Join(cmd.Args[:2], " "), err)
	}
	return out.Bytes(), nil
}
