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

// startWithin bounds how long a Redis may take until it answers. Only a failure takes so long.
const startWithin = 3 * time.Minute

// A Redis is a real redis-server on a free loopback port that keeps nothing on disk.
type Redis struct {
	URL  string // Set once
	Addr string // Set once; host:port

	t    testing.TB
	dir  string
	args []string  // Set once; besides those of each
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

// Start starts it, again on the same port and empty, and returns when it answers.
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

// Do gives it a command, as one types it, that it must answer with one line and not refuse.
func (r *Redis) Do(command string) {
	r.t.Helper()
	if line, err := r.ask(command); err != nil || strings.HasPrefix(line, "-") {
		r.t.Fatalf("redis-server said %q to %q, %v", line, command, err)
	}
}

// Ask gives it a command, as one types it, that it must answer with a text, and returns that.
func (r *Redis) Ask(command string) string {
	r.t.Helper()
	text, err := r.ask(command)
	if err != nil || !strings.HasPrefix(text, "$") {
		r.t.Fatalf("redis-server said %q to %q, %v", text, command, err)
	}
	_, text, _ = strings.Cut(text, "\r\n")
	return text
}

// Number gives it a command that it must answer with a number, and returns that.
func (r *Redis) Number(command string) int {
	r.t.Helper()
	line, err := r.ask(command)
	n, errNumber := strconv.Atoi(strings.Trim(line, ":\r\n"))
	if err := cmp.Or(err, errNumber); err != nil {
		r.t.Fatalf("redis-server said %q to %q, %v", line, command, err)
	}
	return n
}

// ask returns the line that it answers a command with, and what follows where that is a text.
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

// Stop lets it stand still until it is told to go on, or ends with the test.
func (r *Redis) Stop() (goOn func()) {
	r.t.Helper()
	process := r.cmd.Process
	if err := process.Signal(syscall.SIGSTOP); err != nil {
		r.t.Fatal(err)
	}
	return func() { _ = process.Signal(syscall.SIGCONT) } // it may have been killed
}

// Kill ends it at once, as a crash would. Killing it twice is fine.
func (r *Redis) Kill() {
	if r.cmd == nil {
		return
	}
	_ = r.cmd.Process.Kill() // it may have ended by itself
	_ = r.cmd.Wait()
	r.cmd = nil
}

// Loopback ports for programs. The kernel gives those from 32768 on to whoever asks for any: one of them may belong to
// another test before its program has taken it, and a client that dials one at which nobody listens may be given that
// very port and connect to itself.
const firstPort, portsEnd = 20000, 32768

// portsGiven counts them. Each process begins at a port of its own, since those of other packages look too.
var (
	portsGiven atomic.Int64
	portsStart = rand.Int64N(portsEnd - firstPort)
)

// FreePort returns a loopback port that nobody uses now and that is given once. The nine after it are not given either.
// No child process begins meanwhile: it would listen there until its exec.
func FreePort(t testing.TB) int {
	t.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
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
