package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"switchboard/realtime/rtc"
	"switchboard/realtime/simulator"
)

// An ownVoice is a simulated voice model of a test, behind a proxy that can end its sockets. The test says when a
// session of it ends.
type ownVoice struct {
	t     testing.TB
	plan  modelSettings
	way   *cutter
	walls chan time.Duration
	logs  *logBuffer
}

// unhurried has a voice model give up no browser that a busy machine keeps from answering.
var unhurried = rtc.Config{Connect: patience, Disconnected: patience, Failed: patience}

// runVoice runs one that speaks so many times faster than people.
func runVoice(t *testing.T, hurry float64) *ownVoice {
	t.Helper()
	v := &ownVoice{t: t, walls: make(chan time.Duration), logs: &logBuffer{}}
	core := zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()), v.logs, zap.DebugLevel)
	c := simulator.Config{Hurry: hurry, Walls: v.walls, Log: zap.New(core)}
	l := loopback(t)
	background(t, func(ctx context.Context) error { return simulator.New(c).Serve(ctx, l) })
	v.way = newCutter(t, "voice", l.Addr().String())
	v.plan = modelSettings{URL: v.way.at + "/v1/realtime", Name: simulator.Name, Media: mediaThrough}
	return v
}

// soon is when Switchboard begins to look for a quiet moment to renew a session, before its wall.
const soon = 2 * time.Minute

// wall sets the end of the one session of the model soon, once those before it are gone.
func (v *ownVoice) wall() {
	v.t.Helper()
	until(v.t, "one session of the voice model", func() bool {
		log := v.logs.String()
		return strings.Count(log, "voice simulator connected") == strings.Count(log, "voice simulator disconnected")+1
	})
	select {
	case v.walls <- soon:
	case <-time.After(patience):
		v.t.Fatal("no session of the voice model took its end")
	}
}
