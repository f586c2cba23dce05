package guarded

import (
	"errors"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"testing"
	"time"
)

// TestPublic: an address is public only if it is in no network that is reserved, and hides no other address.
func TestPublic(t *testing.T) {
	for text, want := range map[string]bool{
		"1.1.1.1": true, "172.64.0.1": true, "2606:4700::1111": true, "::ffff:1.1.1.1": true,
		"127.0.0.1": false, "127.8.8.8": false, "0.0.0.0": false, "10.1.2.3": false, "172.16.0.1": false, "172.31.255.255": false,
		"192.168.1.1": false, "169.254.169.254": false, "100.64.0.1": false, "198.18.0.1": false, "224.0.0.1": false,
		"255.255.255.255": false, "::": false, "::1": false, "fe80::1": false, "fc00::1": false, "fd12::1": false, "ff02::1": false,
		"::ffff:127.0.0.1": false, "::ffff:10.0.0.1": false, "::127.0.0.1": false, "64:ff9b::7f00:1": false,
		"64:ff9b:1::a00:1": false, "2002:7f00:1::": false, "2001::1": false, "2001:db8::1": false, "fec0::1": false,
	} {
		if got := public(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s is public: %v", text, got)
		}
	}
	if public(netip.Addr{}) || public(netip.MustParseAddr("2606::1%eth0")) {
		t.Error("what is no address is public")
	}
}

// TestNoConnection: not even a connection is made to this machine, whatever its address is called; nor to a port that
// is not named.
func TestNoConnection(t *testing.T) {
	here, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	taken := make(chan error, 1)
	go func() {
		conn, err := here.Accept()
		if err == nil {
			_ = conn.Close()
		}
		taken <- err
	}()
	at := here.Addr().(*net.TCPAddr)
	for _, host := range []string{"127.0.0.1", "localhost", "[::ffff:127.0.0.1]"} {
		for _, ports := range [][]uint16{nil, {uint16(at.Port)}} {
			client := http.Client{Transport: Transport(time.Minute, ports...)}
			_, err := client.Get("http://" + host + ":" + strconv.Itoa(at.Port))
			if !errors.Is(err, ErrPrivate) {
				t.Errorf("%s: %v", host, err)
			}
		}
	}
	client := http.Client{Transport: Transport(time.Minute, 443)}
	if _, err := client.Get("https://1.1.1.1:6443/"); !errors.Is(err, ErrPrivate) {
		t.Errorf("another port: %v", err)
	}
	_ = here.Close()
	if err := <-taken; err == nil {
		t.Error("a connection was made")
	}
}
