package transport

import (
	"bufio"
	"cmp"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/servers"
)

// How long each step of ending a child may take: after the end of its input (unless its kind says otherwise), and
// after SIGTERM.
const (
	exitGrace      = 2 * time.Second
	terminateGrace = 2 * time.Second
	lastReads      = time.Second     // to read what an ended child has written
	groupGrace     = 2 * time.Second // for the processes that it started, after SIGKILL
)

// maxStderr is how many bytes of a child's stderr go to the debug log; the rest is dropped.
const maxStderr = 64 << 10

// A Child is an agent server on the standard streams of a child process. It ends with this process, and its work with
// it.
type Child struct {
	Command []string `yaml:"command"`
	Env     []string `yaml:"env"`
	Stderr  *os.File `yaml:"-"` // of the child; nil: its beginning is logged
	Waits   bool     `yaml:"-"` // a child that does not read is waited for
}

// ByCommand returns the transport of a server that is a child process.
func ByCommand() servers.Transport {
	return servers.Transport{Row: "command", New: func() servers.Way { return new(Child) }}
}

// Check implements [servers.Way]. A program without a slash is looked up in PATH.
func (c *Child) Check(to servers.Report, files servers.Files) {
	switch {
	case c.Command == nil: // not a list, which was reported
	case len(c.Command) == 0:
		to.Bad("command", "names no program")
	case strings.ContainsRune(c.Command[0], filepath.Separator):
		c.Command[0] = files.Path(c.Command[0])
	}
	servers.CheckEnv(c.Env, to)
}

// Describe implements [servers.Way].
func (c *Child) Describe(s *servers.Spec) {
	if len(c.Command) > 0 {
		s.Program = c.Command[0]
		s.About.Address = strings.Join(c.Command[:min(len(c.Command), 2)], " ") // further arguments may be secrets
	}
	s.EndsWithUs = true
}

// child is a running [Child].
type child struct {
	*Lines
	cmd    *exec.Cmd     // Set once
	stdin  *os.File      // Set once
	stdout *os.File      // Set once
	exited chan struct{} // Set once; closed when the child was reaped
	log    *zap.Logger   // Set once
	wg     sync.WaitGroup
	once   sync.Once        // for Close
	grace  time.Duration    // Set once: how long it may take to end by itself
	ending atomic.Bool      // it was sent SIGTERM
	died   func(how string) // Set once: called with how it ended by itself; may be nil

	mu         sync.Mutex
	stderrTail []byte // Guarded by mu: the end of its stderr, at most maxStderrTail bytes
}

// maxStderrTail is how many bytes of the end of a child's stderr are kept to explain its end.
const maxStderrTail = 4 << 10

// lastStderr returns the end of the stderr of the child.
func (c *child) lastStderr() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return string(c.stderrTail)
}

// Open implements [servers.Way]. It starts the program.
func (c *Child) Open(_ context.Context, end servers.End) (servers.Wire, error) {
	running, err := c.start(end)
	if err != nil {
		fault := servers.DialFault(end.Server, err)
		if fault.Reason != handoff.ReasonUnknown { // it is missing, or not a program
			fault.Reason, fault.Detail = handoff.ReasonProgramMissing, c.Command[0]
		}
		return nil, fault
	}
	return running, nil
}

func (c *Child) start(end servers.End) (*child, error) {
	cmd := exec.Command(c.Command[0], c.Command[1:]...)
	cmd.Dir, cmd.Env = end.Dir, servers.ChildEnv(os.Environ(), c.Env, end.Passes...)
	ownGroup(cmd)
	// Our own pipes, not those of exec: they take deadlines, and Wait waits for no grandchild that holds them open.
	var ours, theirs []*os.File
	abandon := func() { closeAll(append(ours, theirs...)) }
	for _, childReads := range []bool{true, false, false} {
		r, w, err := os.Pipe()
		if err != nil {
			abandon()
			return nil, err
		}
		if childReads {
			r, w = w, r
		}
		ours, theirs = append(ours, r), append(theirs, w)
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs[0], theirs[1], cmp.Or(c.Stderr, theirs[2])
	if err := cmd.Start(); err != nil {
		abandon()
		return nil, err
	}
	closeAll(theirs)
	running := &child{
		Lines: NewLines(ours[1], ours[0]), cmd: cmd, stdin: ours[0], stdout: ours[1],
		exited: make(chan struct{}), log: cmp.Or(end.Log, zap.NewNop()), died: end.Died, grace: cmp.Or(end.Grace, exitGrace),
	}
	running.waits = c.Waits
	running.wg.Go(func() { running.drain(ours[2]) })
	running.wg.Go(func() { running.reap(ours[1:]) })
	return running, nil
}

// reap waits for the child and kills what is left of its group, so that its streams end too. A process that left the
// group may hold the streams open; they are read a little longer, and no more.
func (c *child) reap(streams []*os.File) {
	err := c.cmd.Wait()
	if err != nil && !c.ending.Load() && c.died != nil {
		c.died("its program ended: " + err.Error()) // "exit status 3", "signal: killed"
	}
	close(c.exited)
	kill(c.cmd)
	for _, s := range streams {
		_ = s.SetReadDeadline(time.Now().Add(lastReads))
	}
	c.log.Debug("child ended", zap.Error(err))
}

// drain logs the beginning of stderr, and reads all of it so that the child never blocks.
func (c *child) drain(stderr *os.File) {
	defer stderr.Close()
	lines := bufio.NewReader(stderr)
	for logged := 0; ; {
		line, _, err := lines.ReadLine()
		if err != nil {
			return
		}
		c.mu.Lock()
		c.stderrTail = append(append(c.stderrTail, line[:min(len(line), maxStderrTail)]...), '\n')
		c.stderrTail = c.stderrTail[max(0, len(c.stderrTail)-maxStderrTail):]
		c.mu.Unlock()
		if logged < maxStderr {
			logged += len(line)
			c.log.Debug("child says", zap.ByteString("stderr", line))
		}
	}
}

// Close ends the child: it closes its input, sends SIGTERM after its grace, and SIGKILL 2 s later. It returns when the
// child is reaped and its group is empty, so that another process may take its threads.
func (c *child) Close() error {
	c.once.Do(func() {
		_ = c.stdin.Close()
		if !c.endsWithin(c.grace) {
			c.ending.Store(true)
			terminate(c.cmd)
			if !c.endsWithin(terminateGrace) {
				kill(c.cmd)
			}
		}
		c.wg.Wait()
		_ = c.stdout.Close()
		for begin := time.Now(); groupLives(c.cmd) && time.Since(begin) < groupGrace; {
			time.Sleep(10 * time.Millisecond)
		}
	})
	return nil
}

// endsWithin reports whether the child ends within d.
func (c *child) endsWithin(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-c.exited:
		return true
	case <-timer.C:
		return false
	}
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}
