package serverstest

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// An SSHD is a real sshd on a free loopback port, with a host key, a user and a home of its own. The ssh in its Path
// reaches it by the name "box".
type SSHD struct {
	Home string // of the user at the other end, who has programs in Home/.local/bin
	Dir  string // of keys and settings

	t    testing.TB
	addr string
	cmd  *exec.Cmd
}

// StartSSHD starts an sshd that ends with the test. A missing program fails the test. free returns a free loopback
// port.
func StartSSHD(t *testing.T, free func(testing.TB) int) *SSHD {
	t.Helper()
	program, err := exec.LookPath("sshd")
	if err != nil {
		if program = "/usr/sbin/sshd"; !isFile(program) {
			t.Fatal("sshd is missing: install the Debian package openssh-server (make test does that)")
		}
	}
	s := &SSHD{t: t, Home: t.TempDir(), Dir: t.TempDir()}
	s.HostKey()
	s.UserKey()
	s.addr = fmt.Sprintf("127.0.0.1:%d", free(t))
	s.file("sshd_config", 0o600, "ListenAddress %s\nHostKey %s\nAuthorizedKeysFile %s\nStrictModes no\nUsePAM no\nPidFile none\n"+
		"PasswordAuthentication no\nKbdInteractiveAuthentication no\nSetEnv HOME=%s PATH=/usr/bin:/bin SHELL=/bin/sh CODEX_HOME=%s\n", s.addr,
		s.path("host_key"), s.path("authorized_keys"), s.Home, filepath.Join(s.Home, "codex"))
	host, port, _ := net.SplitHostPort(s.addr)
	s.file("ssh_config", 0o600, "Host *\nHostName %s\nPort %s\nIdentityFile %s\nIdentitiesOnly yes\nIdentityAgent none\n"+
		"UserKnownHostsFile %s\nGlobalKnownHostsFile none\nHostKeyAlias box\n", host, port, s.path("user_key"), s.path("known_hosts"))
	real, err := exec.LookPath("ssh")
	if err != nil {
		t.Fatal("ssh is missing: install the Debian package openssh-client (make test does that)")
	}
	s.file("ssh", 0o700, "#!/bin/sh\nexec %s -F %s \"$@\"\n", real, s.path("ssh_config"))
	if os.Geteuid() == 0 { // as root, sshd needs a directory that else its service makes
		s.must(os.MkdirAll("/run/sshd", 0o755))
	}
	s.cmd = exec.Command(program, "-D", "-e", "-f", s.path("sshd_config"))
	s.cmd.Stderr = t.Output()
	s.must(s.cmd.Start())
	t.Cleanup(s.Stop)
	for end := time.Now().Add(3 * time.Minute); ; time.Sleep(10 * time.Millisecond) { // only a failure takes so long
		if conn, err := net.Dial("tcp", s.addr); err == nil {
			_ = conn.Close()
			return s
		} else if time.Now().After(end) {
			t.Fatalf("sshd does not listen: %v", err)
		}
	}
}

// Path returns a PATH whose first ssh has the settings for this sshd.
func (s *SSHD) Path() string { return s.Dir + ":" + os.Getenv("PATH") }

// Stop ends the sshd. Open connections stay.
func (s *SSHD) Stop() {
	if s.cmd != nil {
		_ = s.cmd.Process.Kill() // fails if it has ended by itself
		_ = s.cmd.Wait()
		s.cmd = nil
	}
}

// HostKey gives the machine a new host key, and puts it into this side's known_hosts.
func (s *SSHD) HostKey() { s.file("known_hosts", 0o600, "box %s\n", s.key("host_key")) }

// OtherHostKey puts another host key than the machine's into this side's known_hosts.
func (s *SSHD) OtherHostKey() { s.file("known_hosts", 0o600, "box %s\n", s.key("other_key")) }

// UserKey gives this side a new key, and puts it into the machine's authorized_keys.
func (s *SSHD) UserKey() { s.file("authorized_keys", 0o600, "%s\n", s.key("user_key")) }

// Forget empties a list: known_hosts or authorized_keys.
func (s *SSHD) Forget(list string) { s.file(list, 0o600, "") }

// Install installs a program on the machine.
func (s *SSHD) Install(name, script string) {
	dir := filepath.Join(s.Home, ".local", "bin")
	s.must(os.MkdirAll(dir, 0o700))
	WriteProgram(s.t, filepath.Join(dir, name), []byte(script))
}

// key makes a key, and returns its public half as a line of the lists.
func (s *SSHD) key(name string) string {
	_ = os.Remove(s.path(name)) // there may be none
	s.must(exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", s.path(name)).Run())
	line, err := os.ReadFile(s.path(name + ".pub"))
	s.must(err)
	return strings.TrimSpace(string(line))
}

func (s *SSHD) path(name string) string { return filepath.Join(s.Dir, name) }

func (s *SSHD) file(name string, mode os.FileMode, format string, args ...any) {
	s.t.Helper()
	s.must(os.WriteFile(s.path(name), fmt.Appendf(nil, format, args...), mode))
}

func (s *SSHD) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func isFile(path string) bool {
	about, err := os.Stat(path)
	return err == nil && about.Mode().IsRegular()
}
