package serverstest

import (
	"os"
	"syscall"
	"testing"
)

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
