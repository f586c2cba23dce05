// Slowest reads what go test -json says, says what go test says without -json, and ends with the ten slowest tests.
// It is run by .ci/test: go test -json ./... | go run .ci/slowest.go
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
)

// An event is a line of go test -json, as far as it is looked at.
type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64
}

// A run is what one test, or one package besides its tests, has said so far.
type run struct{ pkg, test string }

func main() {
	said := map[run][]string{}
	parts := map[run]bool{} // tests that are made of others, which tell their own time
	var over []event
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			fmt.Println(lines.Text())
			continue
		}
		at := run{e.Package, e.Test}
		switch {
		case e.Action == "build-output", e.Action == "output" && e.Test == "" && !kept(e.Output):
			fmt.Print(e.Output)
		case e.Action == "output":
			said[at] = append(said[at], e.Output)
		case e.Action == "fail" && e.Test == "": // with what never came to its end
			for other, output := range said {
				if other.pkg == e.Package {
					fmt.Print(strings.Join(output, ""))
				}
			}
		case e.Action == "fail":
			fmt.Print(strings.Join(said[at], ""))
			fallthrough
		case e.Action == "pass", e.Action == "skip":
			delete(said, at)
			if e.Test != "" {
				over = append(over, e)
				parts[run{e.Package, path.Dir(e.Test)}] = true
			}
		}
	}
	over = slices.DeleteFunc(over, func(e event) bool { return parts[run{e.Package, e.Test}] })
	slices.SortFunc(over, func(a, b event) int { return cmp.Compare(b.Elapsed, a.Elapsed) })
	fmt.Println("the ten slowest tests:")
	for _, e := range over[:min(10, len(over))] {
		fmt.Printf("%8.1fs  %s %s\n", e.Elapsed, e.Package, e.Test)
	}
	if err := lines.Err(); err != nil {
		fmt.Fprintln(os.Stderr, "slowest:", err)
		os.Exit(1)
	}
}

// kept reports whether go test says a line of a package only where something failed.
func kept(line string) bool {
	return line == "PASS\n" || strings.HasPrefix(line, "-test.shuffle ") || strings.HasPrefix(line, "=== ")
}
