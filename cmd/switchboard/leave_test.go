package main

import (
	"net"
	"path/filepath"
	"strings"
	"testing"
)

// TestEndsThere: when a machine leaves, also while `switchboard join` runs there in the foreground, and when it is
// removed from the other side, join and the agents there end, and the person there is told so.
func TestEndsThere(t *testing.T) {
	t.Parallel()
	f := newFarm(t)
	s := newSite(t, f.voice.URL, "", nil)
	c := s.start()
	for name, end := range map[string]func(j *joiner) string{
		"leaves": func(j *joiner) string {
			said, err := j.run("leave")
			must(t, err)
			return said
		},
		"removed": func(j *joiner) string {
			said, err := verb(s, "remove", "removed")
			if err != nil {
				t.Fatal(said)
			}
			<-j.done
			return j.out.String()
		},
	} {
		j := newJoiner(t, f.at["bigpc"])
		j.start(append(c.invite(s, name), "--agents", j.agent)...)
		c.up(name)
		lives := func() bool {
			conn, err := net.Dial("unix", filepath.Join(j.home, "s", "switchboard", "machine", "codex.sock"))
			return err == nil && conn.Close() == nil
		}
		until(t, "its agent", lives)
		said := end(j)
		if !strings.Contains(said, "the agents here have ended") {
			t.Errorf("%s: told %q", name, said)
		}
		if lives() {
			t.Errorf("%s: the agent goes on", name)
		}
		<-j.done
	}
}
