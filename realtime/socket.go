package realtime

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"
	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/realtime/outbound"
)

const (
	// maxFrame bounds one event: an append carries up to 15 MiB of audio. A larger one ends the socket with
	// close code 1009.
	maxFrame = 16 << 20
	// keptBuffer bounds what is lent again for writing; larger buffers are left to the collector.
	keptBuffer = 1 << 20
	// pingEvery keeps proxies from closing an idle socket, idleLimit notices a far end that is gone.
	pingEvery = 20 * time.Second
	idleLimit = 60 * time.Second
	// modelPing and modelIdle are the same for the model: a caller hears nothing until it is noticed.
	modelPing = 5 * time.Second
	modelIdle = 15 * time.Second
	// renewEvery is how often the time that is left to the far end is renewed while it sends: that costs more than it
	// seems to.
	renewEvery = 5 * time.Second
	// maxBatch bounds the events that go into one write, in bytes; one always does.
	maxBatch = 16 << 10
	// maxBatches bounds what Flush writes before it leaves the rest to a goroutine: who flushes has a far end to read
	// from.
	maxBatches = 16
	// writeLimit bounds one write that waits.
	writeLimit = 10 * time.Second
)

// A socket is one WebSocket that carries Realtime events, to a client or to a voice model. It is a [leg].
//
// The holder of the turn writes, and does not wait: the sender of events takes it with Flush, if nobody has it. Where
// the far end does not take all at once, a goroutine that may wait gets the turn with what is left. So a socket whose
// far end keeps up has one goroutine, its reader.
type socket struct {
	*outbound.Queue                        // Set once: what it has to write
	conn            *websocket.Conn        // Set once; read by Run
	wire            net.Conn               // Set once: what conn reads and writes
	out             *promptConn            // Set once: what conn writes to; safe by itself
	log             *zap.Logger            // Set once
	patience        time.Duration          // Set once: bounds one write
	pace, idle      time.Duration          // Set once, before Run: how often it pings, and how long it waits for any sign
	renewed         time.Time              // Owned by Run: when the time for its next sign began
	turn            chan struct{}          // holds one token while somebody writes
	writers         sync.WaitGroup         // the goroutines of write and of farewell; Run ends after them
	client          bool                   // Set once, before Run: it masks what it writes
	asked           atomic.Bool            // something may wait that no holder of the turn has looked for
	ping            atomic.Pointer[string] // the newest of the far end that is not answered; nil: none
	probe           atomic.Bool            // a ping is wanted
	beat            *time.Timer            // Set once, by Run: wants one every pace
	code            int                    // Set once, before closed: what it closes with
	closed          atomic.Bool            // the far end has said that it closes: no event is written any more
	born            time.Time              // Set once
	seen            atomic.Int64           // after born: when anything of the far end came
	vanished        atomic.Bool            // set before the end that Run finds: the far end went without a word
	done            chan struct{}          // closed when Run has ended
}

// frames lends sockets the room for what they write. Safe by itself.
var frames = sync.Pool{New: func() any { return new([]byte) }}

// newSocket makes a socket of a connection that writes to out; bytes bounds what may wait to be written, patience one
// write. It lives while Run runs.
func newSocket(conn *websocket.Conn, out *promptConn, bytes int64, patience time.Duration, log *zap.Logger) *socket {
	s := &socket{
		conn: conn, wire: conn.NetConn(), out: out, log: log, patience: patience, born: time.Now(),
		pace: pingEvery, idle: idleLimit,
		turn: make(chan struct{}, 1), done: make(chan struct{}),
	}
	s.Queue, out.prompt = outbound.New(bytes, s.part), true
	s.writers.Add(1) // the farewell's: the count is never zero while somebody may begin to write
	s.conn.SetReadLimit(maxFrame)
	s.conn.SetCloseHandler(func(code int, _ string) error {
		s.code = code
		s.closed.Store(true) // farewell answers: the library would do it here, maybe in the middle of a frame
		return nil
	})
	s.conn.SetPingHandler(s.pinged)
	s.conn.SetPongHandler(func(string) error { return s.sign() })
	return s
}

// Send implements [leg]. The event waits for Flush.
func (s *socket) Send(event []byte) bool {
	taken := s.Put(event)
	s.asked.Store(true)
	return taken
}

// Seen implements [witness].
func (s *socket) Seen() time.Time { return s.born.Add(time.Duration(s.seen.Load())) }

// Probe implements [witness]. The ping waits for Flush.
func (s *socket) Probe() {
	s.probe.Store(true)
	s.asked.Store(true)
}

// sign notes that something of the far end came, and gives it time for the next.
func (s *socket) sign() error {
	now := time.Now()
	s.seen.Store(int64(now.Sub(s.born)))
	return s.alive(now)
}

// Close implements [leg]. What was sent before is still written, for [outbound.CloseGrace] at most. Run must
// have been called.
func (s *socket) Close(reason *handoff.Error) {
	s.End(reason)
	<-s.done
}

// Abandon implements [connection].
func (s *socket) Abandon() { _ = s.conn.Close() }

// part begins the end: a read or write that hangs does not hold it up.
func (s *socket) part() {
	s.out.hurry(s.EndedAt().Add(outbound.CloseGrace))
	_ = s.wire.SetReadDeadline(s.until())
	go s.farewell()
}

// until returns when reading ends on a socket that is ending.
func (s *socket) until() time.Time { return s.EndedAt().Add(2 * outbound.CloseGrace) }

// Run implements [connection]: it reads. The collector halves the stack of a goroutine that waits with a quarter of it
// in use, so what a large event took is given back while this waits for the next: it has little of its own.
func (s *socket) Run(take func(event []byte)) {
	s.beat = time.AfterFunc(math.MaxInt64, s.beats)
	s.beat.Reset(s.pace) // not before beat is set
	var err error
	for over := s.alive(time.Now()); over == nil && err == nil; {
		var frame io.Reader
		if _, frame, err = s.conn.NextReader(); err == nil {
			over, err = s.pass(frame, take)
		}
	}
	s.finish(err)
}

// pass gives take the event that begins, and the far end time for the next. over: there is none.
func (s *socket) pass(frame io.Reader, take func(event []byte)) (over, err error) {
	event, err := sounds.read(frame)
	if err != nil {
		return nil, err
	}
	over = s.sign()
	if !s.Over() { // or else read on, so that the far end's close frame is seen and ours is not lost to a reset
		take(event)
	}
	return over, nil
}

// finish ends the socket after reading has ended, and returns when all is written.
func (s *socket) finish(err error) {
	defer close(s.done)
	defer s.beat.Stop()
	if _, said := errors.AsType[*websocket.CloseError](err); said {
		_ = s.sign()
	}
	if errors.Is(err, websocket.ErrReadLimit) {
		s.End(handoff.Fault(handoff.CodeTooLarge, "an event", fmt.Sprintf("at most %d bytes", maxFrame)))
	}
	if err != nil {
		s.log.Debug("socket ended", zap.Error(err))
	}
	s.vanished.Store(wordless(err) && !s.left())
	s.End(nil)
	if errors.Is(err, websocket.ErrReadLimit) {
		// What the far end still sends is read, or a reset would overtake the close frame.
		_, _ = io.Copy(io.Discard, s.wire)
	}
	s.writers.Wait()
	_ = s.conn.Close()
}

// Vanished implements [ender].
func (s *socket) Vanished() bool { return s.vanished.Load() }

// wordless reports whether what ended a socket was the network, or the far end while it closed down itself, and no
// goodbye. Browsers say 1001 when their page is left.
func wordless(err error) bool {
	_, network := errors.AsType[net.Error](err)
	return network || websocket.IsCloseError(err, websocket.CloseAbnormalClosure, websocket.CloseGoingAway)
}

// beats wants a ping, and the next one.
func (s *socket) beats() {
	if s.Over() {
		return
	}
	s.Probe()
	s.Flush()
	s.beat.Reset(s.pace)
}

// alive moves the read deadline, but not beyond the end of a closing socket.
func (s *socket) alive(now time.Time) error {
	var err error
	if now.Sub(s.renewed) >= renewEvery {
		s.renewed, err = now, s.conn.SetReadDeadline(now.Add(s.idle))
	}
	if s.Over() { // after setting, for the end may have come between
		return s.conn.SetReadDeadline(s.until())
	}
	return err
}

// pinged answers a ping, the newest of those that wait. The library would do it with its own deadline, which cuts off a
// write that is slow.
func (s *socket) pinged(data string) error {
	s.ping.Store(&data)
	s.asked.Store(true)
	s.Flush()
	return nil
}

// stuck tells why a write failed: the far end took too long for it, or it is gone (nil).
func (s *socket) stuck(err error) *handoff.Error {
	if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, errRest) {
		return handoff.Fault(handoff.CodeSlowClient, "", "a write")
	}
	if !errors.Is(err, net.ErrClosed) {
		s.log.Debug("socket cannot be written", zap.Error(err))
	}
	return nil
}

// Flush implements [flusher]. What the far end does not take at once a goroutine writes, and what is more than
// maxBatches. Where somebody else writes, he looks again.
func (s *socket) Flush() {
	for n := 0; s.asked.Load() && !s.Over() && !s.closed.Load(); n++ {
		select {
		case s.turn <- struct{}{}:
		default:
			return
		}
		if n < maxBatches {
			s.asked.Store(false) // before it looks: what comes later is asked for again
			s.put()
		}
		if n == maxBatches || s.out.pending() {
			s.writers.Go(s.write)
			return
		}
		<-s.turn
	}
}

// write waits for the far end, and lets the next one look. It has the turn, and gives it back.
func (s *socket) write() {
	err := s.out.drain(s.patience)
	<-s.turn
	if err == nil {
		s.Flush()
	} else if why := s.stuck(err); why != nil && !s.closed.Load() { // or else the reader finds the end, after the rest
		s.End(why)
	}
}

// put writes of what waits as much as goes into one write; false: nothing waits. The caller has the turn.
func (s *socket) put() bool {
	lent := frames.Get().(*[]byte)
	defer func() {
		if cap(*lent) <= keptBuffer {
			frames.Put(lent)
		}
	}()
	if *lent = s.nextBatch((*lent)[:0]); len(*lent) == 0 {
		return false
	}
	_, _ = s.wire.Write(*lent) // out knows what is wrong
	return true
}

// nextBatch appends the frames of what waits, as many as go into one write.
func (s *socket) nextBatch(batch []byte) []byte {
	if s.ping.Load() != nil {
		batch = appendFrame(batch, wholePong, []byte(*s.ping.Swap(nil)), s.client)
	}
	if s.probe.Load() {
		s.probe.Store(false)
		batch = appendFrame(batch, wholePing, nil, s.client)
	}
	for event, ok := s.Next(); ok; event, ok = s.Next() {
		batch = appendFrame(batch, wholeText, event, s.client)
		if sounds.give(event); len(batch) >= maxBatch {
			s.asked.Store(true) // more may wait
			break
		}
	}
	return batch
}

// left reports whether we hung up.
func (s *socket) left() bool { return s.Over() && s.Ended() == nil }

// farewell flushes the queue, unless the far end is too slow for it or closes itself, and says why the socket closes.
func (s *socket) farewell() {
	defer s.writers.Done()
	s.turn <- struct{}{} // for good
	why, goodbye := s.Ended(), closeFrame(s.Ended())
	said := why != nil && why.Code == handoff.CodeTooLarge // the library has closed it already
	if s.closed.Load() {
		said, goodbye = true, websocket.FormatCloseMessage(s.code, "")
	}
	for !said && !s.Behind() && s.put() {
		if s.out.drain(s.patience) != nil {
			return
		}
	}
	_ = s.conn.WriteControl(websocket.CloseMessage, goodbye, time.Time{}) // out bounds it, as the rest
	_ = s.out.drain(s.patience)
}

// closeFrame is the close code and words of a reason.
func closeFrame(reason *handoff.Error) []byte {
	if reason == nil {
		return websocket.FormatCloseMessage(websocket.CloseNormalClosure, "")
	}
	code := reason.Meaning().Close
	if code == 0 {
		code = websocket.CloseInternalServerErr
	}
	return websocket.FormatCloseMessage(code, string(reason.Code)) // at most 123 bytes; codes are short
}
