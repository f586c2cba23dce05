package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A backgroundJob is a response in the background of which Switchboard was killed.
type backgroundJob struct {
	prompt, done string
	body, id     string // id: "" if nobody was told it
}

// TestProofKilledResponses: Switchboard is killed at random instants while it makes responses in the background, and
// started again. Each response that a client knows tells how it ended, as the agent did; sent again, as an SDK does
// whose connection broke, the request runs once: what had been promised and never began fails, and begins then.
func TestProofKilledResponses(t *testing.T) { t.Parallel(); onAStore(t, proofKilledResponses) }

func proofKilledResponses(t *testing.T, store string) {
	rounds := scale(4, 40)
	f := newFarm(t)
	s := newSite(t, f.voice.URL, store, f.at)
	random := rand.New(rand.NewPCG(11, uint64(len(store))))
	fates := map[string]int{}
	for round := range rounds {
		c := s.start()
		c.up("bigpc", "laptop")
		n := 100 + round
		job := &backgroundJob{prompt: fmt.Sprintf("job %d takes %d", n, random.IntN(1500)), done: fmt.Sprintf("job %d is done", n)}
		job.body = fmt.Sprintf(`{"model":"bigpc","input":%q,"background":true,"stream":%t}`, job.prompt, round%2 == 0)
		told := make(chan string, 1)
		go func() { told <- firstID(c.base, job.body, 0) }()
		at := random.Float64() * float64(killedWithin)
		if round%2 == 1 {
			at /= 20
		}
		time.Sleep(time.Duration(at))
		c.signal(syscall.SIGKILL)
		job.id = <-told
		again := s.start()
		again.up("bigpc", "laptop")
		if id := firstID(again.base, job.body, 1); job.id == "" {
			job.id = id
		} else if id != job.id { // only what never began may begin now, under another id
			if fate := job.settled(t, again, f); fate != "failed" {
				t.Errorf("sent again it is %s, and was %s, which is %s", id, job.id, fate)
			}
			fates["begun anew"]++
			job.id = id
		}
		fates[job.settled(t, again, f)]++
		again.signal(syscall.SIGTERM)
	}
	t.Logf("%d kills: %v", rounds, fates)
}

// firstID posts a response and returns its id, "" when nobody tells it.
func firstID(base, body string, retry int) string {
	req, err := http.NewRequest(http.MethodPost, base+"/v1/responses", strings.NewReader(body)) //nolint:noctx // it ends with the process
	if err != nil {
		return ""
	}
	req.Header.Set("Authorization", "Bearer "+testKey)
	req.Header.Set("X-Stainless-Retry-Count", fmt.Sprint(retry))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return ""
	}
	defer resp.Body.Close()
	data, _ := io.ReadAll(resp.Body) // what came before the kill counts
	_, rest, _ := strings.Cut(string(data), `"id":"resp_`)
	id, _, ok := strings.Cut(rest, `"`)
	if !ok {
		return ""
	}
	return "resp_" + id
}

// settled waits for the end of the response and checks it against what the agent did.
func (j *backgroundJob) settled(t *testing.T, c *child, f *farm) string {
	t.Helper()
	var got struct {
		Status string
		Output []struct{ Content []struct{ Text string } }
	}
	until(t, j.prompt+" to end", func() bool {
		status, body := c.ask(http.MethodGet, "/v1/responses/"+j.id, "")
		if status != http.StatusOK || json.Unmarshal(body, &got) != nil {
			t.Fatalf("%s %s: %d %s", j.prompt, j.id, status, body)
		}
		return got.Status != "queued" && got.Status != "in_progress"
	})
	text := fmt.Sprint(got.Output)
	switch n := f.turns()[j.prompt]; {
	case n > 1:
		t.Errorf("%s ran %d times", j.prompt, n)
	case got.Status == "completed" && (n != 1 || !strings.Contains(text, j.done)):
		t.Errorf("%s is completed with %s, and ran %d times", j.prompt, text, n)
	}
	return got.Status
}
