package sessionstest

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// startWithin bounds how long a Redis may take to answer. Only a failing test waits so long.
const startWithin = 3 * time.Minute

// A Redis is a real redis-server on a free loopback port that keeps nothing on disk.
type Redis struct {
	URL  string // Set once
	Addr string // Set once; host:port

	t    testing.TB
	dir  string
	args []string  // Set once; further arguments
	cmd  *exec.Cmd // the running process, nil after Kill
}

// StartRedis starts a redis-server that ends with the test. A missing program fails the test.
func StartRedis(t testing.TB) *Redis {
	t.Helper()
	return startRedis(t, FreePort(t))
}

func startRedis(t testing.TB, port int, args ...string) *Redis {
	t.Helper()
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	r := &Redis{URL: "redis://" + addr + "/0", Addr: addr, t: t, dir: t.TempDir(), args: args}
	t.Cleanup(r.Kill)
	r.Start()
	return r
}

// Start starts the server, empty and on the same port as before, and returns when it answers.
func (r *Redis) Start() {
	r.t.Helper()
	path, err := exec.LookPath("redis-server")
	if err != nil {
		r.t.Fatal("redis-server is missing: install the Debian package redis-server (make test does that)")
	}
	_, port, _ := net.SplitHostPort(r.Addr)
	r.cmd = exec.Command(path, append([]string{"--bind", "127.0.0.1", "--port", port, "--save", "", "--appendonly", "no",
		"--dir", r.dir}, r.args...)...)
	r.cmd.Stdout, r.cmd.Stderr = r.t.Output(), r.t.Output()
	if err := r.cmd.Start(); err != nil {
		r.t.Fatalf("start redis-server: %v", err)
	}
	var last error
	for end := time.Now().Add(startWithin); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if last = r.ping(); last == nil {
			return
		}
	}
	r.t.Fatalf("redis-server on %s does not answer: %v", r.Addr, last)
}

func (r *Redis) ping() error {
	line, err := r.ask("PING")
	if err == nil && line != "+PONG\r\n" {
		err = fmt.Errorf("it said %q", line)
	}
	return err
}

// Do sends a command as one would type it. The reply must be one line and no error.
func (r *Redis) Do(command string) {
	r.t.Helper()
	if line, err := r.ask(command); err != nil || strings.HasPrefix(line, "-") {
		r.t.Fatalf("redis-server said %q to %q, %v", line, command, err)
	}
}

// Ask sends a command as one would type it, and returns its reply, which must be a text.
func (r *Redis) Ask(command string) string {
	r.t.Helper()
	text, err := r.ask(command)
	if err != nil || !strings.HasPrefix(text, "$") {
		r.t.Fatalf("redis-server said %q to %q, %v", text, command, err)
	}
	_, text, _ = strings.Cut(text, "\r\n")
	return text
}

// Number sends a command and returns its reply, which must be a number.
func (r *Redis) Number(command string) int {
	r.t.Helper()
	line, err := r.ask(command)
	n, errNumber := strconv.Atoi(strings.Trim(line, ":\r\n"))
	if err := cmp.Or(err, errNumber); err != nil {
		r.t.Fatalf("redis-server said %q to %q, %v", line, command, err)
	}
	return n
}

// ask sends a command and returns the first line of the reply, with the text after it if there is one.
func (r *Redis) ask(command string) (answer string, err error) {
	conn, err := net.DialTimeout("tcp", r.Addr, time.Second)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return "", err
	}
	if _, err := conn.Write([]byte(command + "\r\n")); err != nil {
		return "", err
	}
	in := bufio.NewReader(conn)
	line, err := in.ReadString('\n')
	if size, isText := strings.CutPrefix(strings.TrimSpace(line), "$"); isText && err == nil {
		n, err := strconv.Atoi(size)
		text := make([]byte, max(n, 0))
		if err == nil {
			_, err = io.ReadFull(in, text)
		}
		return line + string(text), err
	}
	return line, err
}

// Stop suspends the server until goOn is called or the test ends.
func (r *Redis) Stop() (goOn func()) {
	r.t.Helper()
	process := r.cmd.Process
	if err := process.Signal(syscall.SIGSTOP); err != nil {
		r.t.Fatal(err)
	}
	return func() { _ = process.Signal(syscall.SIGCONT) } // it may have been killed
}

// Kill ends the server at once, as a crash would. A second Kill does nothing.
func (r *Redis) Kill() {
	if r.cmd == nil {
		return
	}
	_ = r.cmd.Process.Kill() // it may have ended by itself
	_ = r.cmd.Wait()
	r.cmd = nil
}

// The range of loopback ports for the programs of tests. The kernel hands out ports from 32768 on for any purpose:
// another test might get such a port before the program listens on it, and a client that dials a port on which nobody
// listens might be given that very port and connect to itself.
const firstPort, portsEnd = 20000, 32768

// portsGiven counts the ports of this process. Each process begins at a random port, since tests of other packages
// choose ports at the same time.
var (
	portsGiven atomic.Int64
	portsStart = rand.Int64N(portsEnd - firstPort)
)

// FreePort returns a free loopback port. It returns each port once, and never the nine after it.
func FreePort(t testing.TB) int {
	t.Helper()
	for range (portsEnd - firstPort) / 10 {
		port := firstPort + int((portsStart+10*portsGiven.Add(1))%(portsEnd-firstPort-10))
		if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			_ = l.Close()
			return port
		}
	}
	t.Fatal("no loopback port is free")
	return 0
}
