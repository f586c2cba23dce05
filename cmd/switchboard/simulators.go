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

// nobodyThere is an address where nothing listens: that of a machine that is down on purpose.
const nobodyThere = "ws://127.0.0.1:1"

// ownMachine is the simulated machine that has an agent of our own instead of an app-server.
const ownMachine = "laptop"

// simulators are the simulated voice model and machines. They speak the real wire protocols: each listens on loopback,
// and runs from when it is made until close is called.
type simulators struct {
	log     *zap.Logger
	port    int // of the next simulator; 0: any free port
	ctx     context.Context
	end     context.CancelFunc
	running sync.WaitGroup
	specs   []servers.Spec // Owned by the goroutine that changes the fleet: see fleet
}

func newSimulators(log *zap.Logger) *simulators {
	s := &simulators{log: log}
	s.ctx, s.end = context.WithCancel(context.Background())
	return s
}

// close ends all simulators.
func (s *simulators) close() {
	s.end()
	s.running.Wait()
}

// model makes the simulated voice model of a plan, and returns the settings with which it is used.
func (s *simulators) model(p plan) (modelSettings, error) {
	voice := simulator.Config{Hurry: p.Hurry, Log: s.log.Named("simulated voice")}
	run := simulator.New(voice).Serve
	if p.Model.direct() {
		run = carryingVoice(voice, p.media())
	}
	address, err := s.serve("simulated voice", run)
	m := p.Model
	m.URL, m.Name, m.Key, m.Aliases = "ws://"+address+"/v1/realtime", simulator.Name, secret{}, nil
	return m, err
}

// machine makes a simulated machine with an app-server, and returns its URL.
func (s *simulators) machine(world *machines.World, m machines.Machine) (string, error) {
	if m.Down {
		return nobodyThere, nil
	}
	address, err := s.serve("simulated "+m.Name,
		func(ctx context.Context, l net.Listener) error { return world.Serve(ctx, m.Name, l) })
	return "ws://" + address, err
}

// fleet returns the servers of the simulated machines of a plan, which it makes at the first call. The agents of some
// are added to agents.
func (s *simulators) fleet(p plan, agents *responses.Agents) (all []servers.Spec, err error) {
	if s.specs != nil {
		return s.specs, nil
	}
	world := p.World
	if world == nil {
		world = machines.NewWorld(machines.Config{Speed: p.Hurry, Story: p.Story, Log: s.log.Named("simulated machines")})
	}
	for _, m := range world.Machines() {
		spec := servers.Spec{Name: m.Name, Aliases: m.Aliases, Kind: codex.Name, Dir: m.Dir, Projects: m.Projects,
			Simulated: true}
		if m.Name == ownMachine {
			spec.Kind = responses.Name
			spec.Dial, spec.Metrics, err = s.agent(agents, m, p.Hurry)
		} else {
			way := &transport.WebSocket{}
			way.URL, err = s.machine(world, m)
			spec.Own = &codex.Config{Way: way}
		}
		if err != nil {
			return nil, err
		}
		all = append(all, spec)
	}
	s.specs = all
	return all, nil
}

// carryingVoice returns a function that runs a simulated voice model to which browsers connect directly by WebRTC. Its
// media is at the addresses of media, but on a port of its own.
func carryingVoice(c simulator.Config, media rtc.Config) func(context.Context, net.Listener) error {
	if host, _, err := net.SplitHostPort(media.UDP); err == nil {
		media.UDP = net.JoinHostPort(host, "0")
	}
	return func(ctx context.Context, l net.Listener) error {
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
func (s *simulators) agent(
	agents *responses.Agents, m machines.Machine, hurry float64,
) (servers.Dial, iter.Seq[handoff.Metric], error) {
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
	agent := agents.Add(responses.Config{
		Name: m.Name, URL: "http://" + at + "/v1", Threads: store, Workspace: upstream.NewTools(m, hurry), Dir: m.Dir,
		Note: "Its model and its commands are simulated: nothing is run.", Log: s.log.Named(responses.Name),
		Model: responses.Model{Name: "simulated", Instructions: "You are simulated.", Continuation: responses.ResponseIDs},
	})
	return agent.Dial, agent.Metrics, nil
}

// serve runs a simulator that listens on loopback.
func (s *simulators) serve(name string, run func(context.Context, net.Listener) error) (address string, err error) {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)))
	if err != nil {
		return "", fmt.Errorf("%s cannot listen: %w", name, err)
	}
	if s.port != 0 {
		s.port++
	}
	s.running.Go(func() {
		if err := run(s.ctx, l); err != nil && s.ctx.Err() == nil {
			s.log.Error("a simulator has ended", zap.String("which", name), zap.Error(err))
		}
	})
	return l.Addr().String(), nil
}

// voiceInfo returns what the page shows about the voice model.
func voiceInfo(m modelSettings, simulated bool, language string) web.VoiceInfo {
	info := web.VoiceInfo{
		Simulated: simulated, Model: m.Name, Host: hostOf(m.URL), Prices: pagePrices(m), Language: language,
		Chips: []web.Chip{},
	}
	if !simulated {
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
