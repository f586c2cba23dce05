package main

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// openTerminal opens a pseudo terminal: what a program writes to it comes out of the other end.
func openTerminal(t *testing.T) (screen *bufio.Reader, terminal *os.File) {
	t.Helper()
	other, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	must(t, err)
	t.Cleanup(func() { _ = other.Close() })
	must(t, unix.IoctlSetPointerInt(int(other.Fd()), unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(int(other.Fd()), unix.TIOCGPTN)
	must(t, err)
	terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	must(t, err)
	t.Cleanup(func() { _ = terminal.Close() })
	return bufio.NewReader(other), terminal
}

// TestProgramAtATerminal holds that at a terminal the second line is a link that logs in, once.
func TestProgramAtATerminal(t *testing.T) {
	t.Parallel()
	screen, terminal := openTerminal(t)
	env := map[string]string{"XDG_STATE_HOME": t.TempDir()}
	run := startProgram(t, env, terminal, "--listen", "127.0.0.1:0", "--config", config(t, ""))
	line := func() string {
		text, err := screen.ReadString('\n')
		must(t, err)
		return strings.TrimSpace(text)
	}
	if first := line(); !strings.Contains(first, "voice: simulated") {
		t.Errorf("first line: %s", first)
	}
	base, code, ok := strings.Cut(line(), "/#login=")
	if !ok || len(code) != 8 {
		t.Fatalf("no link: %s %s", base, code)
	}
	if status := postLogin(t, base, `{"code":"`+code+`"}`); status != http.StatusOK {
		t.Errorf("the link: %d", status)
	}
	if status := postLogin(t, base, `{"code":"`+code+`"}`); status != http.StatusForbidden {
		t.Errorf("the link counts twice: %d", status)
	}
	noKeyInFiles(t, env["XDG_STATE_HOME"], code)
	if text := run.err.String(); strings.Contains(text, code) {
		t.Errorf("the code is in the log: %s", text)
	}
}

// What is no terminal is no place for a link, a device that swallows everything among it.
func TestTerminal(t *testing.T) {
	_, is := openTerminal(t)
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	must(t, err)
	defer null.Close()
	file, err := os.Create(t.TempDir() + "/log")
	must(t, err)
	defer file.Close()
	from, pipe, err := os.Pipe()
	must(t, err)
	defer from.Close()
	defer pipe.Close()
	for f, want := range map[*os.File]bool{is: true, null: false, file: false, pipe: false} {
		if terminal(f) != want {
			t.Errorf("%s: %t", f.Name(), !want)
		}
	}
}
