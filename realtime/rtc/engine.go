package rtc

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/pion/ice/v4"
	"github.com/pion/interceptor"
	"github.com/pion/interceptor/pkg/report"
	"github.com/pion/webrtc/v4"
	"go.uber.org/zap"

	"switchboard/handoff"
)

// A Config says where WebRTC clients are served. The zero value serves browsers of this machine.
type Config struct {
	// UDP is the host:port of the one port that all calls share; empty means 127.0.0.1 and any free port. 0.0.0.0 or
	// [::] listens on every address of the machine, and offers each to clients.
	UDP string
	// Advertise are IP addresses that clients are offered beside those of the machine, if it is behind a NAT that
	// forwards the port.
	Advertise []string
	// Connect bounds the time from the answer to the connection. Zero means 15 s.
	Connect time.Duration
	// Disconnected is the silence after which a client counts as away and is sent no sound. Failed is how long after
	// that it may come back before its call ends. Zero means 5 s and 20 s.
	Disconnected, Failed time.Duration
}

const (
	keepAliveEvery = 2 * time.Second // as browsers do
	// maxMessage bounds one message of the data channel. Browsers send 256 KiB at most.
	maxMessage = 1 << 20
)

// An Engine is the WebRTC of the process: all calls share one UDP port. [Listen] binds the port, Start begins to read
// it. NewLeg and NewPeer may be called from any goroutine, until Close.
type Engine struct {
	config   Config               // Set once; zeros are replaced by the defaults
	conn     net.PacketConn       // Set once
	local    bool                 // Set once: clients are offered loopback addresses
	log      *zap.Logger          // Set once
	mux      ice.UDPMux           // Set once, by Start
	apis     map[line]*webrtc.API // Set once, by Start: each with one codec, for both directions
	withOpus *webrtc.API          // Set once, by Start: the wide line, and Opus from the client
	counts   mediaCounts          // safe by itself
}

// Listen checks the configuration and binds the port, which Close releases. log may not be nil.
func Listen(c Config, log *zap.Logger) (*Engine, error) {
	c.UDP = cmp.Or(c.UDP, "127.0.0.1:0")
	c.Connect, c.Disconnected = cmp.Or(c.Connect, 15*time.Second), cmp.Or(c.Disconnected, 5*time.Second)
	c.Failed = cmp.Or(c.Failed, 20*time.Second)
	for _, ip := range c.Advertise {
		if _, err := netip.ParseAddr(ip); err != nil {
			return nil, handoff.Fault(handoff.CodeMalformed, "the advertised address "+ip, "want an IP address")
		}
	}
	conn, err := net.ListenPacket("udp", c.UDP)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s for sound: %w", c.UDP, err)
	}
	ip := conn.LocalAddr().(*net.UDPAddr).IP
	local := ip.IsLoopback() || (ip.IsUnspecified() && onlyLoopback())
	return &Engine{config: c, conn: conn, local: local, log: log}, nil
}

// onlyLoopback reports whether the machine has only loopback and link-local addresses.
func onlyLoopback() bool {
	addresses, err := net.InterfaceAddrs()
	return err == nil && !slices.ContainsFunc(addresses, func(a net.Addr) bool {
		n, ok := a.(*net.IPNet)
		return ok && !n.IP.IsLoopback() && !n.IP.IsLinkLocalUnicast()
	})
}

// Start begins to serve the port, until Close.
func (m *Engine) Start() error {
	logs := pionLogs{m.log}
	m.mux = webrtc.NewICEUDPMux(logs.NewLogger("ice"), m.conn)
	settings := webrtc.SettingEngine{LoggerFactory: logs}
	settings.SetICEUDPMux(m.mux)
	settings.SetNetworkTypes([]webrtc.NetworkType{webrtc.NetworkTypeUDP4, webrtc.NetworkTypeUDP6})
	settings.DisableActiveTCP(true) // a client must not make us open connections
	settings.SetICEMulticastDNSMode(ice.MulticastDNSModeDisabled)
	settings.SetIncludeLoopbackCandidate(m.local)
	settings.SetRemoteIPFilter(m.reachable)
	settings.SetICETimeouts(m.config.Disconnected, m.config.Failed, keepAliveEvery)
	settings.SetSCTPMaxMessageSize(maxMessage)
	if err := settings.SetAnsweringDTLSRole(webrtc.DTLSRoleServer); err != nil {
		return handoff.AsError(err)
	}
	if len(m.config.Advertise) > 0 {
		err := settings.SetICEAddressRewriteRules(webrtc.ICEAddressRewriteRule{
			External: m.config.Advertise, AsCandidateType: webrtc.ICECandidateTypeHost,
			Mode: webrtc.ICEAddressRewriteAppend,
		})
		if err != nil {
			return handoff.AsError(err)
		}
	}
	api := func(codecs ...webrtc.RTPCodecParameters) (*webrtc.API, error) {
		var engine webrtc.MediaEngine
		for _, c := range codecs {
			if err := engine.RegisterCodec(c, webrtc.RTPCodecTypeAudio); err != nil {
				return nil, err
			}
		}
		// Receiver reports tell a browser what was lost, so that it sends Opus with error correction. The other
		// interceptors (NACK, TWCC) are for video, and every packet would pay for them.
		reports, err := report.NewReceiverInterceptor()
		if err != nil {
			return nil, err
		}
		under := &interceptor.Registry{}
		under.Add(reports)
		return webrtc.NewAPI(webrtc.WithMediaEngine(&engine), webrtc.WithInterceptorRegistry(under),
			webrtc.WithSettingEngine(settings)), nil
	}
	var faults [3]error
	m.apis = map[line]*webrtc.API{}
	m.apis[narrow], faults[0] = api(narrow.codec())
	m.apis[wide], faults[1] = api(wide.codec())
	m.withOpus, faults[2] = api(opusCodec, wide.codec())
	if err := errors.Join(faults[:]...); err != nil {
		return handoff.AsError(err)
	}
	m.log.Info("webrtc listens", zap.String("udp", m.conn.LocalAddr().String()))
	return nil
}

// reachable reports whether a client may be at an address. Candidates with others are ignored, so that nobody can make
// us send to them.
func (m *Engine) reachable(ip net.IP) bool {
	if ip.IsLoopback() {
		return m.local
	}
	return !ip.IsUnspecified() && !ip.IsMulticast() && !ip.IsLinkLocalUnicast()
}

// Close releases the port. The calls must have ended.
func (m *Engine) Close() {
	if m.mux != nil {
		_ = m.mux.Close() // it closes the port, too
		return
	}
	_ = m.conn.Close()
}
