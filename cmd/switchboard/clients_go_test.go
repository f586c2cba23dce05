package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/realtime"

	"switchboard/handoff"
)

// A goSocket is the connection of openai-go: events go out and come in.
type goSocket struct {
	send  func(event []byte) error
	recv  func() ([]byte, error)
	close func() error
}

// openaiGo is openai-go's own socket, opened with a client secret that it made. Events go through its types.
func (r *clientRun) openaiGo() goSocket {
	r.t.Helper()
	ctx, base := r.t.Context(), option.WithBaseURL(r.base+"/v1/")
	backend := realtime.NewRealtimeService(base, option.WithAPIKey(testKey))
	secret, err := backend.ClientSecrets.New(ctx, realtime.ClientSecretNewParams{})
	must(r.t, err)
	client := realtime.NewRealtimeService(base, option.WithAPIKey(secret.Value))
	conn, err := client.Connect(ctx, realtime.RealtimeConnectionOptions{}, option.WithQuery("model", "gpt-realtime-2.1"))
	must(r.t, err)
	return goSocket{
		send: func(event []byte) error {
			var typed realtime.RealtimeClientEventUnionParam
			if err := json.Unmarshal(event, &typed); err != nil {
				return err
			}
			return conn.Send(ctx, typed)
		},
		recv: func() ([]byte, error) { event, err := conn.Recv(ctx); return []byte(event.RawJSON()), err },
		close: func() error {
			for _, c := range items[handoff.CallInfo](r.running, "/fleet/calls") {
				if err := backend.Calls.Hangup(ctx, c.ID); err != nil {
					return err
				}
			}
			conn.Abort()
			return nil
		},
	}
}

// A goClient talks over a goSocket as talk in protocol.cjs does.
type goClient struct {
	t      testing.TB
	socket goSocket

	mu       sync.Mutex
	heard    []string // Guarded by mu: sentences of the voice
	begun    int      // Guarded by mu: answers that began to be heard
	cut      int      // Guarded by mu: answers cut short
	updates  int      // Guarded by mu: session.updated
	problems []string // Guarded by mu: errors, and calls of tools that are not its own
}

func (c *goClient) read() {
	for {
		data, err := c.socket.recv()
		if err != nil {
			return
		}
		var event struct {
			Type, Transcript string
			Error            struct{ Message string }
			Response         struct{ Status string }
			Item             struct {
				Type, Name, Arguments string
				CallID                string `json:"call_id"`
			}
		}
		err = json.Unmarshal(data, &event)
		c.mu.Lock()
		if err != nil {
			c.problems = append(c.problems, err.Error())
		}
		switch event.Type {
		case "error":
			c.problems = append(c.problems, event.Error.Message)
		case "session.updated":
			c.updates++
		case "response.output_audio_transcript.delta":
			c.begun++
		case "response.output_audio_transcript.done":
			c.heard = append(c.heard, event.Transcript)
		case "response.done":
			if event.Response.Status == "cancelled" {
				c.cut++
			}
		case "response.output_item.done":
			if event.Item.Type == "function_call" && event.Item.Name != "weather" {
				c.problems = append(c.problems, "was shown "+event.Item.Name)
			}
		}
		c.mu.Unlock()
		if event.Type == "response.output_item.done" && event.Item.Name == "weather" {
			c.say(fmt.Sprintf(`{"type":"function_call_output","call_id":%q,"output":"It rains in Oslo."}`, event.Item.CallID))
		}
	}
}

func (c *goClient) send(event string) {
	if err := c.socket.send([]byte(event)); err != nil {
		c.t.Errorf("%s: %v", event, err)
	}
}

// say adds an item and asks for an answer.
func (c *goClient) say(item string) {
	c.send(`{"type":"conversation.item.create","item":` + item + `}`)
	c.send(`{"type":"response.create"}`)
}

func (c *goClient) types(words string) {
	c.say(fmt.Sprintf(`{"type":"message","role":"user","content":[{"type":"input_text","text":%q}]}`, words))
}

// speaks makes a second of a tone and one of silence, at their pace.
func (c *goClient) speaks() {
	const samples = 960
	for n := range 50 {
		pcm := make([]byte, 0, 2*samples)
		for i := range samples {
			level := int16(0)
			if n < 25 {
				level = int16(12000 * math.Sin(2*math.Pi*300*float64(i)/24000))
			}
			pcm = append(pcm, byte(level), byte(uint16(level)>>8))
		}
		c.send(`{"type":"input_audio_buffer.append","audio":"` + base64.StdEncoding.EncodeToString(pcm) + `"}`)
		time.Sleep(40 * time.Millisecond)
	}
}

// until waits for what the client noted.
func (c *goClient) until(what string, is func() bool) {
	c.t.Helper()
	until(c.t, what, func() bool { c.mu.Lock(); defer c.mu.Unlock(); return is() })
}

// hears waits for words of the voice after the sentences that were heard before.
func (c *goClient) hears(words string, after int) {
	c.t.Helper()
	c.until("the voice to say "+words, func() bool { return strings.Contains(strings.Join(c.heard[after:], "\n"), words) })
}

// hearsOnce holds that the voice said words once after the sentences that were heard before.
func (c *goClient) hearsOnce(words string, after int) {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if times := strings.Count(strings.Join(c.heard[after:], "\n"), words); times != 1 {
		c.t.Errorf("heard %q %d times", words, times)
	}
}

func (c *goClient) noted() (heard, begun, cut int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.heard), c.begun, c.cut
}

// inGo puts openai-go through what drive.cjs puts the others through. What fails ends the test.
func (r *clientRun) inGo() findings {
	r.t.Helper()
	c := &goClient{t: r.t, socket: r.openaiGo()}
	var reading sync.WaitGroup
	reading.Go(c.read)
	c.send(`{"type":"session.update","session":{"type":"realtime","instructions":"Be brief and kind.","tools":[{"type":"function","name":"weather","description":"","parameters":{"type":"object","properties":{"city":{"type":"string"}}}}]}}`)
	c.until("session.updated", func() bool { return c.updates > 0 })
	c.types("instructions")
	c.hears("Be brief and kind.", 0)
	c.types("hello by hand")
	c.hears("Hello to you too.", 0)
	heard, _, _ := c.noted()
	c.speaks()
	c.hears("Hello to you too.", heard)
	c.types(`weather {"city":"Oslo"}`)
	c.hears("It rains in Oslo.", 0)
	c.types("list_servers {}")
	c.hears("bigpc", 0)
	_, begun, cut := c.noted()
	c.types("a long story")
	c.until("the story to begin", func() bool { return c.begun > begun })
	c.speaks()
	c.until("the story to be cut short", func() bool { return c.cut > cut })
	heard, _, _ = c.noted()
	c.types(`codex {"server":"bigpc","prompt":"run the tests"}`)
	c.hears("Working on it", heard)
	c.hears("bigpc is done", heard)
	after, _, _ := c.noted()
	c.types("hello again") // one more turn: what is told twice would come before its answer
	c.hears("Hello to you too.", after)
	c.hearsOnce("Working on it", heard)
	c.hearsOnce("bigpc is done", heard)
	must(r.t, c.socket.close())
	reading.Wait()
	told := findings{}
	for _, feature := range clientFeatures {
		told[feature] = "yes"
	}
	if len(c.problems) > 0 {
		told["no errors"] = "no: " + strings.Join(c.problems, "; ")
	}
	return told
}
