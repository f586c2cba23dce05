// Slowest reads the output of go test -json, prints what go test prints without -json, and then the ten slowest tests.
// .ci/test runs it: go test -json ./... | go run .ci/slowest.go
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

// An event is a line of go test -json, with the fields that are used here.
type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64
}

// A run names a test, or with an empty test the part of a package outside its tests.
type run struct{ pkg, test string }

func main() {
	outputs := map[run][]string{} // of runs that have not ended
	parents := map[run]bool{}     // tests with subtests; the subtests are listed instead
	var ended []event
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
		case e.Action == "build-output", e.Action == "output" && e.Test == "" && !onlyOnFailure(e.Output):
			fmt.Print(e.Output)
		case e.Action == "output":
			outputs[at] = append(outputs[at], e.Output)
		case e.Action == "fail" && e.Test == "": // print also the output of tests that never ended
			for other, output := range outputs {
				if other.pkg == e.Package {
					fmt.Print(strings.Join(output, ""))
				}
			}
		case e.Action == "fail":
			fmt.Print(strings.Join(outputs[at], ""))
			fallthrough
		case e.Action == "pass", e.Action == "skip":
			delete(outputs, at)
			if e.Test != "" {
				ended = append(ended, e)
				parents[run{e.Package, path.Dir(e.Test)}] = true
			}
		}
	}
	ended = slices.DeleteFunc(ended, func(e event) bool { return parents[run{e.Package, e.Test}] })
	slices.SortFunc(ended, func(a, b event) int { return cmp.Compare(b.Elapsed, a.Elapsed) })
	fmt.Println("the ten slowest tests:")
	for _, e := range ended[:min(10, len(ended))] {
		fmt.Printf("%8.1fs  %s %s\n", e.Elapsed, e.Package, e.Test)
	}
	if err := lines.Err(); err != nil {
		fmt.Fprintln(os.Stderr, "slowest:", err)
		os.Exit(1)
	}
}

// onlyOnFailure reports whether go test without -json prints this line of a package only if the package failed.
func onlyOnFailure(line string) bool {
	return line == "PASS\n" || strings.HasPrefix(line, "-test.shuffle ") || strings.HasPrefix(line, "=== ")
}
