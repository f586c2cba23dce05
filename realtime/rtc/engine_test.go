package rtc

import (
	"errors"
	"net"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"switchboard/handoff"
	"switchboard/realtime/rtc/rtctest"
)

func TestMediaAddresses(t *testing.T) {
	for _, tc := range []struct {
		name   string
		config Config
		want   []string // addresses that must be told
		never  string   // one that must not
	}{
		{"default", Config{}, []string{" 127.0.0.1 "}, " ::1 "},
		{"behind a NAT", Config{Advertise: []string{"203.0.113.7"}}, []string{" 127.0.0.1 ", " 203.0.113.7 "}, " ::1 "},
		{"everywhere", Config{UDP: "0.0.0.0:0"}, someAddresses(t), " 0.0.0.0 "},
	} {
		t.Run(tc.name, func(t *testing.T) {
			rtctest.NoLeaks(t)
			m, err := Listen(tc.config, zap.NewNop())
			if err != nil {
				t.Fatal(err)
			}
			if err := m.Start(); err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			l, fault := m.NewLeg(Offer{SDP: rtctest.GoodOffer}, zap.NewNop())
			if fault != nil {
				t.Fatal(fault)
			}
			defer l.Abandon()
			answer, fault := l.Answer(t.Context())
			if fault != nil {
				t.Fatal(fault)
			}
			var told strings.Builder
			for line := range strings.Lines(answer) {
				if strings.HasPrefix(line, "a=candidate:") {
					told.WriteString(line)
				}
			}
			for _, want := range tc.want {
				if !strings.Contains(told.String(), want) {
					t.Errorf("%q is not told:\n%s", want, told.String())
				}
			}
			if strings.Contains(told.String(), tc.never) || strings.Contains(told.String(), "tcp") {
				t.Errorf("too much is told:\n%s", told.String())
			}
			if !strings.Contains(answer, "a=setup:passive") || strings.Contains(answer, "ice-lite") ||
				strings.Contains(answer, "opus") {
				t.Errorf("answer\n%s", answer)
			}
		})
	}
}

// someAddresses are IPv4 addresses of this machine that a browser elsewhere could reach, or else loopback.
func someAddresses(t *testing.T) []string {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, a := range addresses {
		if n := a.(*net.IPNet); n.IP.To4() != nil && !n.IP.IsLoopback() && !n.IP.IsLinkLocalUnicast() {
			all = append(all, " "+n.IP.String()+" ")
		}
	}
	if len(all) == 0 {
		return []string{" 127.0.0.1 "}
	}
	return all
}

func TestMediaConfigFaults(t *testing.T) {
	taken, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for name, config := range map[string]Config{
		"no port":         {UDP: "127.0.0.1"},
		"odd port":        {UDP: "127.0.0.1:99999"},
		"another's host":  {UDP: "203.0.113.7:0"},
		"port taken":      {UDP: taken.LocalAddr().String()},
		"advertised name": {Advertise: []string{"example.com"}},
	} {
		_, err := Listen(config, zap.NewNop())
		op, listens := errors.AsType[*net.OpError](err) // the advice follows from it
		if config.UDP != "" && (!listens || op.Op != "listen" || !strings.Contains(err.Error(), config.UDP)) ||
			config.UDP == "" && handoff.CodeOf(err) != handoff.CodeMalformed {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestMediaKnocksNowhere(t *testing.T) {
	here, everywhere := Engine{local: true}, Engine{}
	for _, tc := range []struct {
		ip               string
		here, everywhere bool
	}{
		{"127.0.0.1", true, false}, {"::1", true, false}, {"192.168.1.9", true, true}, {"203.0.113.7", true, true},
		{"169.254.169.254", false, false}, {"fe80::1", false, false}, {"224.0.0.1", false, false}, {"0.0.0.0", false, false},
	} {
		ip := net.ParseIP(tc.ip)
		if here.reachable(ip) != tc.here || everywhere.reachable(ip) != tc.everywhere {
			t.Errorf("%s: %t, %t", tc.ip, here.reachable(ip), everywhere.reachable(ip))
		}
	}
}

func TestPionLogsQuietly(t *testing.T) {
	core, logs := observer.New(zap.DebugLevel)
	l := pionLogs{zap.New(core)}.NewLogger("ice")
	l.Trace("t")
	l.Tracef("t%d", 1)
	l.Debug("d")
	l.Debugf("d%d", 1)
	l.Info("i")
	l.Infof("i%d", 1)
	l.Warn("w")
	l.Warnf("w%d", 1)
	l.Error("e")
	l.Errorf("e%d", 1)
	if n := logs.FilterLevelExact(zap.DebugLevel).FilterMessage("webrtc").Len(); n != 8 || logs.Len() != 8 {
		t.Errorf("%d of %d", n, logs.Len())
	}
	if all := logs.FilterField(zap.String("detail", "w1")).FilterField(zap.String("scope", "ice")); all.Len() != 1 {
		t.Errorf("%v", logs.All())
	}
}
