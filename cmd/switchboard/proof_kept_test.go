package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"switchboard/handoff"
)

// TestProofNotKept: a response with store: false that is repeated under its key after a kill does not run again,
// whether it had ended or not. Its words are not in the file.
func TestProofNotKept(t *testing.T) { onBothStores(t, proofNotKept) }

func proofNotKept(t *testing.T, store string) {
	f, s, c := farmed(t, store)
	body := func(job string) string { return fmt.Sprintf(`{"model":"bigpc","input":%q,"store":false}`, job) }
	send := func(job string) map[string]any { return c.made("/v1/responses", body(job), "Idempotency-Key", job) }
	const done, cut = "job 1 takes 0", "job 2 hangs"
	first := send(done)
	if first["status"] != "completed" {
		t.Fatalf("%v", first)
	}
	go func() { _, _ = http.DefaultClient.Do(c.request(cut, body(cut))) }() // nobody is told: the kill comes first
	until(t, "the work to run", func() bool { return f.turns()[cut] == 1 })
	for life := range 2 {
		c = s.after(c, syscall.SIGKILL)
		for range 2 {
			got := send(done)
			if text := fmt.Sprint(got); got["id"] != first["id"] || got["status"] != "failed" || !strings.Contains(text, `ended: "result"`) || strings.Contains(text, "job 1 is done") {
				t.Errorf("life %d, sent again it is %v, and was %v", life, got, first["id"])
			}
			if got := send(cut); got["status"] != "failed" || !strings.Contains(fmt.Sprint(got), `ended: "unknown"`) {
				t.Errorf("life %d, what was cut is %v", life, got)
			}
		}
		if status, got := (sdk{t: t, running: &c.running}).send(body("other words"), "Idempotency-Key", done); status/100 != 4 {
			t.Errorf("life %d, other words under the key: %d %v", life, status, got)
		}
		if all := c.handoffs(); len(all) != 0 {
			t.Errorf("life %d, listed are %+v", life, all)
		}
	}
	for _, job := range []string{done, cut} {
		if n := f.turns()[job]; n != 1 {
			t.Errorf("%s ran %d times", job, n)
		}
	}
	c.signal(syscall.SIGTERM)
	if store != "" {
		return
	}
	files, err := filepath.Glob(filepath.Join(s.state, "switchboard", "switchboard.db*"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		must(t, err)
		for _, words := range []string{done, cut, "job 1 is done"} {
			if strings.Contains(string(data), words) {
				t.Errorf("%s has %q", name, words)
			}
		}
	}
}

// request is a response that is asked for under a key.
func (c *child) request(key, body string) *http.Request {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.t.Context(), http.MethodPost, c.base+"/v1/responses", strings.NewReader(body))
	must(c.t, err)
	req.Header.Set("Authorization", "Bearer "+testKey)
	req.Header.Set("Idempotency-Key", key)
	return req
}

// TestProofWaitingWords: work that waits in a session when Switchboard is killed, or ends, is begun later with its
// pictures, instructions and answer format, by hand or when its request is repeated under its key.
func TestProofWaitingWords(t *testing.T) {
	for _, end := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
		t.Run(end.String(), func(t *testing.T) {
			t.Parallel()
			onAStore(t, func(t *testing.T, store string) { proofWaitingWords(t, store, end) })
		})
	}
}

func proofWaitingWords(t *testing.T, store string, end syscall.Signal) {
	f, s, c := farmed(t, store)
	ids, talks, bodies := [2]any{}, [2]string{}, [2]string{}
	for n := range talks { // two sessions in which somebody's work hangs
		talks[n] = fmt.Sprint(c.made("/v1/conversations", "")["id"])
		made := c.made("/v1/responses", fmt.Sprintf(`{"model":"bigpc","input":"job %d takes 0","conversation":%q}`, n, talks[n]))
		thread := c.whole(strings.TrimPrefix(fmt.Sprint(made["id"]), "resp_")).ThreadID
		c.hand(fmt.Sprintf(`{"server":"bigpc","thread_id":%q,"prompt":"job 1%d hangs"}`, thread, n))
		until(t, "the work to run", func() bool { return f.turns()[fmt.Sprintf("job 1%d hangs", n)] == 1 })
		bodies[n] = fmt.Sprintf(`{"model":"bigpc","conversation":%q,"background":true,"instructions":"Speak like a pirate.",
			"text":{"format":{"type":"json_schema","name":"x","schema":{"type":"object","title":"treasure"}}},
			"input":[{"role":"user","content":[{"type":"input_text","text":"job 2%d takes 0"},{"type":"input_image","image_url":"data:image/png;base64,AAAA%d"}]}]}`, talks[n], n, n)
		ids[n] = c.made("/v1/responses", bodies[n], "Idempotency-Key", fmt.Sprint("key ", n))["id"]
	}
	c = s.after(c, end)
	waited := strings.TrimPrefix(fmt.Sprint(ids[0]), "resp_")
	until(t, "what waited to be asked about", func() bool { return c.whole(waited).Paused })
	for _, rec := range c.handoffs() {
		if strings.HasSuffix(rec.Prompt, "hangs") {
			c.post("/fleet/handoffs/"+rec.ID+"/stop", "{}")
			c.outcome(rec.ID)
		}
	}
	if rec := c.outcome(c.hand(fmt.Sprintf(`{"begin":%q}`, waited))); rec.Outcome != handoff.OutcomeResult {
		t.Errorf("begun it is %+v, %+v", rec, rec.Error)
	}
	for range 2 { // it is the same work
		c.made("/v1/responses", bodies[1], "Idempotency-Key", "key 1")
	}
	until(t, "that to run", func() bool { return f.turns()["job 21 takes 0"] == 1 })
	found := 0
	for _, start := range f.world.Starts("bigpc") {
		for n := range talks {
			if start.Prompt != fmt.Sprintf("job 2%d takes 0", n) {
				continue
			}
			found++
			for _, want := range []string{fmt.Sprintf("base64,AAAA%d", n), "like a pirate", "treasure"} {
				if !strings.Contains(start.Asked, want) {
					t.Errorf("job 2%d was asked without %q: %s", n, want, start.Asked)
				}
			}
		}
	}
	if found != 2 {
		t.Errorf("%d began", found)
	}
	f.check(t)
}

// TestProofOwner: after a kill, the caller who made a session is still known, even for old sessions: other callers of
// the machine do not see it.
func TestProofOwner(t *testing.T) { t.Parallel(); onAStore(t, proofOwner) }

func proofOwner(t *testing.T, store string) {
	const otherKey = "another-key-for-the-tests-0000"
	f := newFarm(t)
	s := newSite(t, f.voice.URL, store, f.at)
	write(t, filepath.Join(filepath.Dir(s.config), "other.key"), otherKey)
	file, err := os.OpenFile(s.config, os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = file.WriteString("keys:\n  - {principal: other, key_file: other.key}\n")
		_ = file.Close()
	}
	must(t, err)
	c := s.start()
	c.up("bigpc")
	made := map[string]bool{}
	for n := range 2 {
		id := c.hand(fmt.Sprintf(`{"server":"bigpc","thread_id":"new","prompt":"job %d takes 0"}`, n))
		made[c.outcome(id).ThreadID] = true
		c.post("/fleet/handoffs/"+id+"/heard", "{}")
	}
	for range 2 {
		for key, want := range map[string]int{testKey: len(made), otherKey: 0} {
			var list struct {
				Items []struct {
					ID string `json:"id"`
				} `json:"items"`
			}
			_, body := c.ask(http.MethodGet, "/fleet/sessions?server=bigpc&limit=40", "", "Authorization", "Bearer "+key)
			must(t, json.Unmarshal(body, &list))
			n := 0
			for _, one := range list.Items {
				if made[one.ID] {
					n++
				}
			}
			if n != want || len(list.Items) == 0 {
				t.Errorf("with %s %d of %d sessions are seen", key, n, len(list.Items))
			}
			for thread := range made {
				if status, _ := c.ask(http.MethodGet, "/fleet/sessions/bigpc/"+thread, "", "Authorization", "Bearer "+key); (status == http.StatusOK) != (want > 0) {
					t.Errorf("with %s a session is read: %d", key, status)
				}
			}
		}
		c = s.after(c, syscall.SIGKILL)
	}
}
