package serverstest

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// Main runs the tests of a package. It fails if they leave goroutines behind: it waits a minute for goroutines that are
// about to end, and prints the stacks of the others.
func Main(m *testing.M) {
	before := runtime.NumGoroutine()
	code := m.Run()
	if code != 0 || flag.Lookup("test.fuzz").Value.String() != "" { // fuzzing has goroutines of its own
		os.Exit(code)
	}
	for range 3000 {
		if runtime.NumGoroutine() <= before {
			os.Exit(code)
		}
		time.Sleep(20 * time.Millisecond)
	}
	stacks := make([]byte, 1<<20)
	fmt.Fprintf(os.Stderr, "goroutines left:\n%s\n", stacks[:runtime.Stack(stacks, true)])
	os.Exit(1)
}

// WriteProgram writes a program that a test is about to run. No child process begins meanwhile: it would have the file
// open for writing until its exec, and until then the kernel does not run it ("text file busy").
func WriteProgram(t testing.TB, path string, text []byte) {
	t.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(path, text, 0o700); err != nil {
		t.Fatal(err)
	}
}
