package main

import (
	"context"
	"fmt"
	"iter"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync"
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

// nobodyThere is a loopback address where nothing listens: a machine that is down on purpose.
const nobodyThere = "ws://127.0.0.1:1"

// ownMachine is the simulated machine on which an agent of our own works, and no app-server.
const ownMachine = "laptop"

// simulators stand in for what is not configured. They are real on the wire: each listens on loopback.
type simulators struct {
	log       *zap.Logger
	agents    *responses.Agents // gets those of simulated machines
	voice     bool
	stages    []stage
	listeners []net.Listener
	port      int // of the next one; 0: any that is free
}

// speak stands in for the voice model of a plan that has none.
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

// work makes the simulated machines.
func (s *simulators) work(p plan) (all []servers.Spec, err error) {
	world := p.World
	if world == nil {
		world = machines.NewWorld(machines.Config{Speed: p.Hurry, Story: p.Story, Log: s.log.Named("simulated machines")})
	}
	for _, m := range world.Machines() {
		spec := servers.Spec{Name: m.Name, Aliases: m.Aliases, Kind: codex.Name, Dir: m.Dir, Projects: m.Projects,
			Simulated: true}
		at := &transport.WebSocket{URL: nobodyThere}
		spec.Own = &codex.Config{Way: at}
		switch {
		case m.Down:
		case m.Name == ownMachine:
			spec.Kind, spec.Own = responses.Name, nil
			spec.Dial, spec.Metrics, err = s.agent(m, p.Hurry)
		default:
			at.URL, err = s.serve("simulated "+m.Name,
				func(ctx context.Context, l net.Listener) error { return world.Serve(ctx, m.Name, l) })
			at.URL = "ws://" + at.URL
		}
		if err != nil {
			return nil, err
		}
		all = append(all, spec)
	}
	return all, nil
}

// standIns are the simulated machines, which are made when there is no real one for the first time, and then run until
// the service ends.
type standIns struct {
	machines *simulators    // Set once
	plan     plan           // Set once
	made     chan []stage   // what is to run, once
	specs    []servers.Spec // Owned by who changes the fleet: nil until they were made
}

func newStandIns(machines *simulators, p plan) *standIns {
	return &standIns{machines: machines, plan: p, made: make(chan []stage, 1)}
}

// servers returns the simulated machines.
func (s *standIns) servers() ([]servers.Spec, error) {
	if s.specs != nil {
		return s.specs, nil
	}
	specs, err := s.machines.work(s.plan)
	if err != nil {
		return nil, err
	}
	s.made <- s.machines.stages
	s.specs = specs
	return specs, nil
}

// run runs them until ctx ends.
func (s *standIns) run(ctx context.Context) error {
	var stages []stage
	select {
	case stages = <-s.made:
	case <-ctx.Done():
		return nil
	}
	var work sync.WaitGroup
	defer work.Wait()
	for _, one := range stages {
		work.Go(func() {
			if err := one.run(ctx); err != nil && ctx.Err() == nil {
				s.machines.log.Error("a simulator ended", zap.String("simulator", one.name), zap.Error(err))
			}
		})
	}
	<-ctx.Done()
	return nil
}

// carryingVoice runs a voice model with which browsers can speak themselves, where media says but at its own port.
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

// agent makes an agent of our own for a simulated machine: the model that it asks and the tools that it has are
// simulated, the rest of it is as it is everywhere. Its sessions last as long as the machine.
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

// serve listens on loopback for a simulator and adds it to the stages.
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

// voiceInfo is what the page tells about the voice.
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
