package main

import (
	"context"
	"fmt"
	"iter"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/handoff/threads"
	"switchboard/realtime/rtc"
	"switchboard/realtime/simulator"
	"switchboard/servers"
	"switchboard/servers/codex"
	"switchboard/servers/responses"
	upstream "switchboard/servers/responses/simulator"
	machines "switchboard/servers/simulator"
	"switchboard/servers/transport"
	"switchboard/web"
)

// nobodyThere is an address where nothing listens: that of a machine that is down on purpose.
const nobodyThere = "ws://127.0.0.1:1"

// ownMachine is the simulated machine that has an agent of our own instead of an app-server.
const ownMachine = "laptop"

// simulators replace the voice model and the machines that are not configured. They speak the real wire protocols: each
// listens on loopback.
type simulators struct {
	log       *zap.Logger
	agents    *responses.Agents // the agents of simulated machines are added to it
	voice     bool              // the voice model is simulated
	stages    []stage
	listeners []net.Listener
	port      int // of the next simulator; 0: any free port
}

// speak simulates the voice model of a plan that has none.
func (s *simulators) speak(p *plan) error {
	if p.Model.URL != "" {
		return nil
	}
	s.voice = true
	log := s.log.Named("simulated voice")
	voice := simulator.Config{Hurry: p.Hurry, Log: log}
	run := simulator.New(voice).Serve
	if p.Model.direct() {
		run = carryingVoice(voice, p.media())
	}
	address, err := s.serve("simulated voice", run)
	if err != nil {
		return err
	}
	p.Model.URL, p.Model.Name = "ws://"+address+"/v1/realtime", simulator.Name
	p.Model.Key, p.Model.Aliases = secret{}, nil
	return nil
}

// work starts to listen for the simulated machines, and returns their servers.
func (s *simulators) work(p plan) (all []servers.Spec, err error) {
	world := p.World
	if world == nil {
		world = machines.NewWorld(machines.Config{Speed: p.Hurry, Story: p.Story, Log: s.log.Named("simulated machines")})
	}
	for _, m := range world.Machines() {
		spec := servers.Spec{Name: m.Name, Aliases: m.Aliases, Kind: codex.Name, Dir: m.Dir, Projects: m.Projects,
			Simulated: true}
		way := &transport.WebSocket{URL: nobodyThere}
		spec.Own = &codex.Config{Way: way}
		switch {
		case m.Down: // nothing listens there
		case m.Name == ownMachine:
			spec.Kind, spec.Own = responses.Name, nil
			spec.Dial, spec.Metrics, err = s.agent(m, p.Hurry)
		default:
			var address string
			address, err = s.serve("simulated "+m.Name,
				func(ctx context.Context, l net.Listener) error { return world.Serve(ctx, m.Name, l) })
			way.URL = "ws://" + address
		}
		if err != nil {
			return nil, err
		}
		all = append(all, spec)
	}
	return all, nil
}

// standIns are the simulated machines of a service. They are made when the service has no real machine for the first
// time, and then run until it ends.
type standIns struct {
	machines *simulators    // Set once
	plan     plan           // Set once
	start    chan []stage   // their stages; sent once, when they are made
	specs    []servers.Spec // Owned by the goroutine that changes the fleet; nil until they are made
}

// servers returns the servers of the simulated machines, which it makes at the first call.
func (s *standIns) servers() ([]servers.Spec, error) {
	if s.specs != nil {
		return s.specs, nil
	}
	specs, err := s.machines.work(s.plan)
	if err != nil {
		return nil, err
	}
	s.start <- s.machines.stages
	s.specs = specs
	return specs, nil
}

// run waits until the machines are made, and runs them until ctx ends.
func (s *standIns) run(ctx context.Context) error {
	select {
	case stages := <-s.start:
		return runStages(ctx, s.machines.log, stages)
	case <-ctx.Done():
		return nil
	}
}

// carryingVoice returns a function that runs a simulated voice model to which browsers connect directly by WebRTC. Its
// media is at the addresses of media, but on a port of its own.
func carryingVoice(c simulator.Config, media rtc.Config) func(context.Context, net.Listener) error {
	return func(ctx context.Context, l net.Listener) error {
		if host, _, err := net.SplitHostPort(media.UDP); err == nil {
			media.UDP = net.JoinHostPort(host, "0")
		}
		engine, err := rtc.Listen(media, c.Log)
		if err != nil {
			return err
		}
		defer engine.Close()
		if err := engine.Start(); err != nil {
			return err
		}
		c.Answer = func(ctx context.Context, offer string) (string, simulator.Browser, *handoff.Error) {
			answer, peer, fault := engine.NewPeer(ctx, offer)
			return answer, peer, fault
		}
		return simulator.New(c).Serve(ctx, l)
	}
}

// agent makes an agent of our own for a simulated machine. Its model and its tools are simulated, everything else is
// the real agent. Its sessions last as long as the machine.
func (s *simulators) agent(m machines.Machine, hurry float64) (servers.Dial, iter.Seq[handoff.Metric], error) {
	api := upstream.New("simulated", hurry, upstream.Actor(m))
	at, err := s.serve("simulated model of "+m.Name, func(ctx context.Context, l net.Listener) error {
		return serveHTTP(ctx, &http.Server{Handler: api, ReadHeaderTimeout: 5 * time.Second}, l, "", "")
	})
	if err != nil {
		return nil, nil, err
	}
	store := threads.NewMemory()
	if err := upstream.Remember(context.Background(), store, m); err != nil {
		return nil, nil, err
	}
	agent := s.agents.Add(responses.Config{
		Name: m.Name, URL: "http://" + at + "/v1", Threads: store, Workspace: upstream.NewTools(m, hurry), Dir: m.Dir,
		Note: "Its model and its commands are simulated: nothing is run.", Log: s.log.Named(responses.Name),
		Model: responses.Model{Name: "simulated", Instructions: "You are simulated.", Continuation: responses.ResponseIDs},
	})
	return agent.Dial, agent.Metrics, nil
}

// serve listens on loopback for a simulator, and adds the stage that runs it.
func (s *simulators) serve(name string, run func(context.Context, net.Listener) error) (address string, err error) {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)))
	if err != nil {
		return "", fmt.Errorf("%s cannot listen: %w", name, err)
	}
	if s.port != 0 {
		s.port++
	}
	s.listeners = append(s.listeners, l)
	s.stages = append(s.stages, stage{name, func(ctx context.Context) error { return run(ctx, l) }})
	return l.Addr().String(), nil
}

// voiceInfo returns what the page shows about the voice.
func (s *simulators) voiceInfo(m modelSettings, language string) web.VoiceInfo {
	info := web.VoiceInfo{
		Simulated: s.voice, Model: m.Name, Host: hostOf(m.URL), Prices: pagePrices(m), Language: language,
		Chips: []web.Chip{},
	}
	if !s.voice {
		return info
	}
	for _, c := range simulator.Chips() {
		info.Chips = append(info.Chips, web.Chip{Text: c.Text, Hint: c.Hint})
	}
	return info
}

func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	return u.Host
}
