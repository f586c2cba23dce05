package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/gorilla/websocket"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/realtime"

	"switchboard/handoff"
)

// A line carries the events of a call: a WebSocket, or what another library has.
type line interface {
	ReadMessage() (kind int, data []byte, err error)
	WriteMessage(kind int, data []byte) error
	Close() error
}

// A goLine is the connection of openai-go. Events go through its types.
type goLine struct {
	ctx  context.Context
	conn *realtime.RealtimeConnection
}

func (l goLine) ReadMessage() (int, []byte, error) {
	event, err := l.conn.Recv(l.ctx)
	return websocket.TextMessage, []byte(event.RawJSON()), err
}

func (l goLine) WriteMessage(_ int, event []byte) error {
	var typed realtime.RealtimeClientEventUnionParam
	if err := json.Unmarshal(event, &typed); err != nil {
		return err
	}
	return l.conn.Send(l.ctx, typed)
}

func (l goLine) Close() error { l.conn.Abort(); return nil }

// openaiGo is a phone on openai-go's own socket, opened with a client secret that it made.
func (r *clientRun) openaiGo() *phone {
	r.t.Helper()
	ctx, base := r.t.Context(), option.WithBaseURL(r.base+"/v1/")
	backend := realtime.NewRealtimeService(base, option.WithAPIKey(testKey))
	secret, err := backend.ClientSecrets.New(ctx, realtime.ClientSecretNewParams{})
	must(r.t, err)
	client := realtime.NewRealtimeService(base, option.WithAPIKey(secret.Value))
	conn, err := client.Connect(ctx, realtime.RealtimeConnectionOptions{}, option.WithQuery("model", "gpt-realtime-2.1"))
	must(r.t, err)
	return newPhoneOn(r.t, goLine{ctx, conn}, func() error {
		for _, c := range items[handoff.CallInfo](r.running, "/fleet/calls") {
			if err := backend.Calls.Hangup(context.WithoutCancel(ctx), c.ID); err != nil {
				return err
			}
		}
		return nil
	})
}

// speaks makes a second of a tone and one of silence, at their pace.
func (p *phone) speaks() {
	p.t.Helper()
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
		p.send(`{"type":"input_audio_buffer.append","audio":"` + base64.StdEncoding.EncodeToString(pcm) + `"}`)
		time.Sleep(40 * time.Millisecond)
	}
}

// count counts the events that are as wanted.
func (p *phone) count(as func(phoneEvent) bool) (n int) {
	for _, e := range p.all() {
		if as(e) {
			n++
		}
	}
	return n
}

// inGo puts openai-go through what drive.cjs puts the others through. What fails ends the test.
func (r *clientRun) inGo() findings {
	r.t.Helper()
	p := r.openaiGo()
	p.send(`{"type":"session.update","session":{"type":"realtime","instructions":"Be brief and kind.","tools":[{"type":"function","name":"weather","description":"","parameters":{"type":"object","properties":{"city":{"type":"string"}}}}]}}`)
	p.await("session.updated")
	p.say("instructions")
	p.hear("Be brief and kind.")
	p.say("hello by hand")
	p.hear("Hello to you too.")
	p.speaks()
	p.hear("Hello to you too.")
	p.say(`weather {"city":"Oslo"}`)
	asked := p.await("response.output_item.done")
	for asked.Item.Name != "weather" {
		asked = p.await("response.output_item.done")
	}
	p.send(fmt.Sprintf(`{"type":"conversation.item.create","item":{"type":"function_call_output","call_id":%q,"output":"It rains in Oslo."}}`, asked.Item.CallID))
	p.send(`{"type":"response.create"}`)
	p.hear("It rains in Oslo.")
	p.say("list_servers {}")
	p.hear("bigpc")
	begins := func(e phoneEvent) bool { return e.Type == "response.output_audio_transcript.delta" }
	cuts := func(e phoneEvent) bool { return e.Type == "response.done" && e.Response.Status == "cancelled" }
	begun, cut := p.count(begins), p.count(cuts)
	p.say("a long story")
	until(r.t, "the story to begin", func() bool { return p.count(begins) > begun })
	p.speaks()
	until(r.t, "the story to be cut short", func() bool { return p.count(cuts) > cut })
	p.heard = len(p.spoken())
	before := p.heard
	p.say(`codex {"server":"bigpc","prompt":"run the tests"}`)
	p.hear("Working on it")
	p.hear("bigpc is done")
	p.say("hello again") // one more turn: what is told twice would come before its answer
	p.hear("Hello to you too.")
	said := strings.Join(p.spoken()[before:], "\n")
	for _, words := range []string{"Working on it", "bigpc is done"} {
		if times := strings.Count(said, words); times != 1 {
			r.t.Errorf("heard %q %d times", words, times)
		}
	}
	p.hangUp()
	told := findings{}
	for _, feature := range clientFeatures {
		told[feature] = "yes"
	}
	for _, e := range p.all() {
		switch {
		case e.Type == "error":
			told["no errors"] = "no: " + e.Error.Message
		case e.Type == "response.output_item.done" && e.Item.Type == "function_call" && e.Item.Name != "weather":
			told["no errors"] = "no: it was shown " + e.Item.Name
		}
	}
	return told
}
