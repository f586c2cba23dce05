package realtime

import (
	"bufio"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"switchboard/realtime/events"
)

const (
	paceEvery  = 40 * time.Millisecond // a frame each way: 50 a second
	paceWindow = 3 * time.Second
	paceWarm   = time.Second
)

// BenchmarkPaced relays calls of 50 audio events a second, 25 each way, through our front and, in the same run,
// through a copy of bytes and through as careful a relay as gorilla allows. It tells, for each: CPU time a frame and
// as a ratio of the copy's, allocations a frame, the latency that it adds to a direct connection, and memory a call.
// With an older build of this test in SWITCHBOARD_TEST_RELAY_BEFORE that is measured beside them.
func BenchmarkPaced(b *testing.B) {
	kinds := []string{"copy", "gorilla", "ours"}
	if os.Getenv(relayVariable+"_BEFORE") != "" {
		kinds = append(kinds, "before")
	}
	for _, c := range []struct {
		calls int
		tls   bool // towards the model
	}{{1, false}, {50, false}, {200, false}, {400, false}, {50, true}, {200, true}} {
		b.Run(fmt.Sprintf("calls=%d/tls=%t", c.calls, c.tls), func(b *testing.B) {
			seen := map[string][]paceResult{}
			for b.Loop() {
				for _, kind := range append(kinds, "direct") {
					seen[kind] = append(seen[kind], pace(b, kind, c.tls, c.calls))
				}
			}
			floor, direct := middle(seen["copy"], cpu), middle(seen["direct"], latency)
			for _, kind := range kinds {
				b.ReportMetric(middle(seen[kind], cpu), kind+"-µs/frame")
				b.ReportMetric(middle(seen[kind], cpu)/floor, kind+"-x-copy")
				b.ReportMetric(middle(seen[kind], switches), kind+"-switches/frame")
				b.ReportMetric(middle(seen[kind], allocs), kind+"-allocs/frame")
				b.ReportMetric(middle(seen[kind], latency)-direct, kind+"-added-µs")
				b.ReportMetric(middle(seen[kind], resident), kind+"-rss-KB/call")
				b.ReportMetric(middle(seen[kind], live), kind+"-live-KB/call")
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// A paceResult is what one window showed of one relay.
type paceResult struct{ cpu, allocs, latency, resident, live, switches float64 }

func cpu(r paceResult) float64      { return r.cpu }
func allocs(r paceResult) float64   { return r.allocs }
func latency(r paceResult) float64  { return r.latency }
func resident(r paceResult) float64 { return r.resident }
func live(r paceResult) float64     { return r.live }
func switches(r paceResult) float64 { return r.switches }

// middle is the median.
func middle(all []paceResult, of func(paceResult) float64) float64 {
	var list []float64
	for _, r := range all {
		list = append(list, of(r))
	}
	slices.Sort(list)
	return list[len(list)/2]
}

// pacedResponse speaks in PCMU, of which a frame is 120 ms: models send sound faster than it is heard.
const pacedResponse = `{"type":"response.created","response":{"id":"resp_1","status":"in_progress","output":[],` +
	`"audio":{"output":{"format":{"type":"audio/pcmu"}}}}}`

// pacer is one round: so many calls to a model that sends as much as it gets.
type pacer struct {
	frames  atomic.Int64 // that arrived, both ways
	started time.Time
	over    chan struct{}
	mu      sync.Mutex
	took    []time.Duration // Guarded by mu
}

// frame is an audio event of a type with the time in it.
func (p *pacer) frame(kind, key string) []byte {
	return fmt.Appendf(nil, `{"type":%q,"response_id":"resp_1","item_id":"item_1","at":"%020d",%s"%s"}`, kind,
		time.Since(p.started), key, strings.Repeat("A", 1280))
}

// send paces until the round is over.
func (p *pacer) send(conn *websocket.Conn, kind, key string) {
	tick := time.NewTicker(paceEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if conn.WriteMessage(websocket.TextMessage, p.frame(kind, key)) != nil {
				return
			}
		case <-p.over:
			return
		}
	}
}

// receive counts the audio that arrives, and how long it was on its way.
func (p *pacer) receive(conn *websocket.Conn) {
	for {
		_, event, err := conn.ReadMessage()
		if err != nil {
			return
		}
		at := events.PeekHead(event, "at")
		if at == nil {
			continue
		}
		sent, _ := strconv.ParseInt(string(at), 10, 64)
		took := time.Since(p.started) - time.Duration(sent)
		if n := p.frames.Add(1); n%8 == 0 {
			p.mu.Lock()
			p.took = append(p.took, took)
			p.mu.Unlock()
		}
	}
}

// model greets, and sends and counts.
func (p *pacer) model(w http.ResponseWriter, r *http.Request) {
	conn, err := (&websocket.Upgrader{}).Upgrade(w, r, nil)
	if err != nil {
		return
	}
	defer func() { _ = conn.Close() }()
	for _, e := range []string{freshSession, pacedResponse} {
		_ = conn.WriteMessage(websocket.TextMessage, []byte(e))
	}
	go p.receive(conn)
	time.Sleep(paceEvery / 2)
	p.send(conn, events.TypeAudioDelta, events.KeyDelta)
}

// pace measures one relay with so many calls.
func pace(b *testing.B, kind string, secure bool, calls int) (r paceResult) {
	p := &pacer{started: time.Now(), over: make(chan struct{})}
	model := httptest.NewUnstartedServer(http.HandlerFunc(p.model))
	defer model.Close()
	if secure {
		model.StartTLS()
	} else {
		model.Start()
	}
	at, dialer, relay := socketURL(model), &websocket.Dialer{HandshakeTimeout: patience}, &relayProcess{}
	if kind != "direct" {
		relay = startRelay(b, kind, model)
		defer relay.stop()
		at = "ws://" + relay.door
	} else if secure {
		dialer.TLSClientConfig = model.Client().Transport.(*http.Transport).TLSClientConfig
	}
	idle := relay.resident()
	_, idleHeap := relay.stats("/live")
	var open sync.WaitGroup
	defer open.Wait()
	defer close(p.over)
	for i := range calls {
		conn, _, err := dialer.Dial(at, nil)
		if err != nil {
			b.Fatal(i, err)
		}
		defer func() { _ = conn.Close() }()
		go p.receive(conn)
		open.Go(func() { p.send(conn, events.TypeAppend, events.KeyAppend) })
	}
	time.Sleep(paceWarm)
	p.mu.Lock()
	p.took = nil
	p.mu.Unlock()
	frames, used, switched := p.frames.Load(), relay.cpu(), relay.switches()
	mallocs, _ := relay.stats("/")
	time.Sleep(paceWindow)
	n := float64(p.frames.Load() - frames)
	r.cpu = float64(relay.cpu()-used) / n / 1e3
	r.switches = float64(relay.switches()-switched) / n
	later, _ := relay.stats("/")
	r.allocs = float64(later-mallocs) / n
	r.resident = float64(relay.resident()-idle) / float64(calls)
	_, heap := relay.stats("/live")
	r.live = float64(heap-idleHeap) / float64(calls) / 1024
	p.mu.Lock()
	defer p.mu.Unlock()
	slices.Sort(p.took)
	r.latency = float64(p.took[len(p.took)/2]) / 1e3
	return r
}

// A relayProcess is one of [relayKinds]; the zero value is none.
type relayProcess struct {
	door, ask string // addresses
	dir       string // of the process in /proc
	stop      func()
}

func socketURL(s *httptest.Server) string { return "ws" + strings.TrimPrefix(s.URL, "http") }

func startRelay(b *testing.B, kind string, model *httptest.Server) *relayProcess {
	program := os.Args[0]
	if kind == "before" {
		program, kind = os.Getenv(relayVariable+"_BEFORE"), "ours"
	}
	command := exec.Command(program, "-test.run=^TestRelayProcess$")
	command.Env = append(os.Environ(), relayVariable+"="+kind, relayVariable+"_MODEL="+socketURL(model))
	if model.TLS != nil {
		trusted := filepath.Join(b.TempDir(), "model.pem")
		if err := os.WriteFile(trusted, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: model.Certificate().Raw}),
			0o600); err != nil {
			b.Fatal(err)
		}
		command.Env = append(command.Env, "SSL_CERT_FILE="+trusted)
	}
	in, err := command.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := command.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := command.Start(); err != nil {
		b.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	p := &relayProcess{dir: fmt.Sprintf("/proc/%d", command.Process.Pid),
		stop: func() { _, _ = in.Close(), command.Wait() }}
	if _, scan := fmt.Sscan(line, &p.door, &p.ask); err != nil || scan != nil {
		b.Fatal(line, err, scan)
	}
	return p
}

// cpu is the time that all threads ran, in nanoseconds.
func (p *relayProcess) cpu() (ns int64) {
	tasks, _ := filepath.Glob(p.dir + "/task/*/schedstat")
	for _, task := range tasks {
		var n int64
		text, _ := os.ReadFile(task)
		_, _ = fmt.Sscan(string(text), &n)
		ns += n
	}
	return ns
}

// switches is how often a thread of it gave the processor up, and so had to be woken.
func (p *relayProcess) switches() (all int64) {
	tasks, _ := filepath.Glob(p.dir + "/task/*/status")
	for _, task := range tasks {
		var n int64
		text, _ := os.ReadFile(task)
		_, rest, _ := strings.Cut(string(text), "\nvoluntary_ctxt_switches:")
		_, _ = fmt.Sscan(rest, &n)
		all += n
	}
	return all
}

// resident is what the process has in memory, in KB.
func (p *relayProcess) resident() (kb int64) {
	text, _ := os.ReadFile(p.dir + "/status")
	if _, rest, ok := strings.Cut(string(text), "VmRSS:"); ok {
		_, _ = fmt.Sscan(rest, &kb)
	}
	return kb
}

// stats asks the process what it has allocated, and what is on its heap and its stacks.
func (p *relayProcess) stats(path string) (mallocs, heap int64) {
	if p.ask == "" {
		return 0, 0
	}
	response, err := http.Get("http://" + p.ask + path)
	if err != nil {
		return 0, 0
	}
	defer func() { _ = response.Body.Close() }()
	text, _ := io.ReadAll(response.Body)
	_, _ = fmt.Sscan(string(text), &mallocs, &heap)
	return mallocs, heap
}
