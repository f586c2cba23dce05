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
	// keptBuffer bounds the write buffers that are used again, in bytes; larger ones are left to the collector.
	keptBuffer = 1 << 20
	// pingEvery keeps proxies from closing an idle socket; idleLimit is the silence after which the far end counts as
	// gone.
	pingEvery = 20 * time.Second
	idleLimit = 60 * time.Second
	// modelPing and modelIdle are the same for the model. They are shorter because the caller hears nothing until a
	// lost model is noticed.
	modelPing = 5 * time.Second
	modelIdle = 15 * time.Second
	// renewEvery is how often the read deadline is moved while the far end sends: it is too costly for every event.
	renewEvery = 5 * time.Second
	// maxBatch bounds the events in one write, in bytes. At least one event is written.
	maxBatch = 16 << 10
	// maxBatches bounds the writes of Flush before it leaves the rest to a goroutine: its caller has a far end to read
	// from.
	maxBatches = 16
	// writeLimit bounds one write that waits.
	writeLimit = 10 * time.Second
)

// A socket is one WebSocket that carries Realtime events, to a client or to a voice model. It is a [leg].
//
// Only the holder of the turn writes, and it does not wait. Flush takes the turn, if it is free. If the far end does
// not take everything at once, Flush passes the turn to a goroutine that may wait. So a socket whose far end keeps up
// has one goroutine, its reader.
type socket struct {
	*outbound.Queue                                  // Set once: the events to be written
	conn                      *websocket.Conn        // Set once; read by Run
	wire                      net.Conn               // Set once: the connection below conn
	out                       *promptConn            // Set once: what wire writes to; safe by itself
	log                       *zap.Logger            // Set once
	patience                  time.Duration          // Set once: bounds one write
	pingInterval, idleTimeout time.Duration          // Set once, before Run
	renewed                   time.Time              // Owned by Run: when the read deadline was moved last
	turn                      chan struct{}          // holds one token while somebody writes
	writers                   sync.WaitGroup         // the goroutines of write and of farewell; Run ends after them
	client                    bool                   // Set once, before Run: frames are masked, as a client's are
	dirty                     atomic.Bool            // something may wait that no holder of the turn has seen
	unanswered                atomic.Pointer[string] // data of the far end's newest ping without an answer; nil: none
	wantPing                  atomic.Bool            // a ping is to be sent
	pinger                    *time.Timer            // Set once, by Run: calls sendPing every pingInterval
	code                      int                    // Set once, before closed: the far end's close code
	closed                    atomic.Bool            // the far end has sent its close frame: no events any more
	createdAt                 time.Time              // Set once
	seen                      atomic.Int64           // when the far end's newest frame came: ns since createdAt
	vanished                  atomic.Bool            // set before Run ends the queue: the far end said no goodbye
	done                      chan struct{}          // closed when Run has ended
}

// frames holds buffers for the frames of one write. Safe by itself.
var frames = sync.Pool{New: func() any { return new([]byte) }}

// newSocket makes a socket of a connection that writes to out. patience bounds one write. The socket lives while Run
// runs.
func newSocket(conn *websocket.Conn, out *promptConn, patience time.Duration, log *zap.Logger) *socket {
	s := &socket{
		conn: conn, wire: conn.NetConn(), out: out, log: log, patience: patience, createdAt: time.Now(),
		pingInterval: pingEvery, idleTimeout: idleLimit,
		turn: make(chan struct{}, 1), done: make(chan struct{}),
	}
	s.Queue, out.prompt = outbound.New(s.beginEnd), true
	s.writers.Add(1) // for farewell: the count is not zero while a writer may still begin
	s.conn.SetReadLimit(maxFrame)
	s.conn.SetCloseHandler(func(code int, _ string) error {
		s.code = code
		s.closed.Store(true) // farewell answers: the library's own answer could land in the middle of a frame
		return nil
	})
	s.conn.SetPingHandler(s.pinged)
	s.conn.SetPongHandler(func(string) error { return s.noteSign() })
	return s
}

// Send implements [leg]. The event waits for Flush.
func (s *socket) Send(event []byte) bool {
	taken := s.Put(event)
	s.dirty.Store(true)
	return taken
}

// Seen implements [witness].
func (s *socket) Seen() time.Time { return s.createdAt.Add(time.Duration(s.seen.Load())) }

// Probe implements [witness]. The ping waits for Flush.
func (s *socket) Probe() {
	s.wantPing.Store(true)
	s.dirty.Store(true)
}

// noteSign notes that a frame of the far end came, and moves the read deadline.
func (s *socket) noteSign() error {
	now := time.Now()
	s.seen.Store(int64(now.Sub(s.createdAt)))
	return s.extendReadDeadline(now)
}

// Close implements [leg]. What was sent before is still written, within [outbound.CloseGrace]. Run must have been
// called.
func (s *socket) Close(reason *handoff.Error) {
	s.End(reason)
	<-s.done
}

// Abandon implements [connection].
func (s *socket) Abandon() { _ = s.conn.Close() }

// beginEnd is called once when the queue ends. It bounds reads and writes, so that none delays the end, and starts the
// farewell.
func (s *socket) beginEnd() {
	s.out.endWritesAt(s.EndedAt().Add(outbound.CloseGrace))
	_ = s.wire.SetReadDeadline(s.readEnd())
	go s.farewell()
}

// readEnd returns when a socket that is ending stops reading.
func (s *socket) readEnd() time.Time { return s.EndedAt().Add(2 * outbound.CloseGrace) }

// Run implements [connection]: it reads. It keeps its own stack small: the collector shrinks the stack of a goroutine
// that waits with a quarter of it in use, and so frees what a large event needed.
func (s *socket) Run(take func(event []byte)) {
	s.pinger = time.AfterFunc(math.MaxInt64, s.sendPing)
	s.pinger.Reset(s.pingInterval) // not before pinger is set
	var err error
	for over := s.extendReadDeadline(time.Now()); over == nil && err == nil; {
		var frame io.Reader
		if _, frame, err = s.conn.NextReader(); err == nil {
			over, err = s.handle(frame, take)
		}
	}
	s.finish(err)
}

// handle reads one event, passes it to take, and moves the read deadline. over is an error of the deadline, err one of
// reading: both end the socket.
func (s *socket) handle(frame io.Reader, take func(event []byte)) (over, err error) {
	event, err := readEvent(frame)
	if err != nil {
		return nil, err
	}
	over = s.noteSign()
	// After the end it only reads, to see the far end's close frame, and so that no reset overtakes ours.
	if !s.Over() {
		take(event)
	}
	return over, nil
}

// finish ends the socket after reading has ended, and returns when everything is written.
func (s *socket) finish(err error) {
	defer close(s.done)
	defer s.pinger.Stop()
	if _, said := errors.AsType[*websocket.CloseError](err); said {
		_ = s.noteSign()
	}
	if errors.Is(err, websocket.ErrReadLimit) {
		s.End(handoff.Fault(handoff.CodeTooLarge, "an event", fmt.Sprintf("at most %d bytes", maxFrame)))
	}
	if err != nil {
		s.log.Debug("socket ended", zap.Error(err))
	}
	hungUp := s.Over() && s.Ended() == nil // by us
	s.vanished.Store(withoutGoodbye(err) && !hungUp)
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

// withoutGoodbye reports whether a socket was ended by the network, or by a far end that was going away itself, rather
// than by a normal close. Browsers send 1001 when their page is left.
func withoutGoodbye(err error) bool {
	_, network := errors.AsType[net.Error](err)
	return network || websocket.IsCloseError(err, websocket.CloseAbnormalClosure, websocket.CloseGoingAway)
}

// sendPing sends a ping and sets the timer for the next.
func (s *socket) sendPing() {
	if s.Over() {
		return
	}
	s.Probe()
	s.Flush()
	s.pinger.Reset(s.pingInterval)
}

// extendReadDeadline moves the read deadline, but not beyond the end of a closing socket.
func (s *socket) extendReadDeadline(now time.Time) error {
	var err error
	if now.Sub(s.renewed) >= renewEvery {
		s.renewed, err = now, s.conn.SetReadDeadline(now.Add(s.idleTimeout))
	}
	if s.Over() { // after setting it, as the end may have come meanwhile
		return s.conn.SetReadDeadline(s.readEnd())
	}
	return err
}

// pinged answers the newest ping. The library's own answer would set a deadline that cuts off a slow write.
func (s *socket) pinged(data string) error {
	s.unanswered.Store(&data)
	s.dirty.Store(true)
	s.Flush()
	return nil
}

// writeFault returns why a write failed: the far end took too long, or it is gone (nil).
func (s *socket) writeFault(err error) *handoff.Error {
	if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, errRest) {
		return handoff.Fault(handoff.CodeSlowClient, "", "a write")
	}
	if !errors.Is(err, net.ErrClosed) {
		s.log.Debug("socket cannot be written", zap.Error(err))
	}
	return nil
}

// Flush implements [flusher]. A goroutine writes what the far end does not take at once, and what is more than
// maxBatches. If another goroutine has the turn, that one sees dirty and flushes again.
func (s *socket) Flush() {
	for n := 0; s.dirty.Load() && !s.Over() && !s.closed.Load(); n++ {
		select {
		case s.turn <- struct{}{}:
		default:
			return
		}
		if n < maxBatches {
			s.dirty.Store(false) // before it looks: what comes later sets it again
			s.writeBatch()
		}
		if n == maxBatches || s.out.pending() {
			s.writers.Go(s.write)
			return
		}
		<-s.turn
	}
}

// write waits until the far end has taken what was kept, gives the turn back, and flushes again. It is called with the
// turn.
func (s *socket) write() {
	err := s.out.drain(s.patience)
	<-s.turn
	if err == nil {
		s.Flush()
	} else if why := s.writeFault(err); why != nil && !s.closed.Load() { // otherwise the reader notices the end
		s.End(why)
	}
}

// writeBatch writes as much of the queue as goes into one write; false: nothing waits. The caller has the turn.
func (s *socket) writeBatch() bool {
	lent := frames.Get().(*[]byte)
	defer func() {
		if cap(*lent) <= keptBuffer {
			frames.Put(lent)
		}
	}()
	if *lent = s.nextBatch((*lent)[:0]); len(*lent) == 0 {
		return false
	}
	_, _ = s.wire.Write(*lent) // out keeps the error
	return true
}

// nextBatch appends the frames of a pong, a ping and events that wait, as many as go into one write.
func (s *socket) nextBatch(batch []byte) []byte {
	if s.unanswered.Load() != nil {
		batch = appendFrame(batch, wholePong, []byte(*s.unanswered.Swap(nil)), s.client)
	}
	if s.wantPing.Load() {
		s.wantPing.Store(false)
		batch = appendFrame(batch, wholePing, nil, s.client)
	}
	for event, ok := s.Next(); ok; event, ok = s.Next() {
		batch = appendFrame(batch, wholeText, event, s.client)
		if giveBack(event); len(batch) >= maxBatch {
			s.dirty.Store(true) // more may wait
			break
		}
	}
	return batch
}

// farewell writes the rest of the queue, unless the far end is too slow or closes itself, and then a close frame with
// the reason.
func (s *socket) farewell() {
	defer s.writers.Done()
	s.turn <- struct{}{} // never given back
	why, goodbye := s.Ended(), closeFrame(s.Ended())
	said := why != nil && why.Code == handoff.CodeTooLarge // the library has closed it already
	if s.closed.Load() {
		said, goodbye = true, websocket.FormatCloseMessage(s.code, "")
	}
	for !said && !s.Behind() && s.writeBatch() {
		if s.out.drain(s.patience) != nil {
			return
		}
	}
	_ = s.conn.WriteControl(websocket.CloseMessage, goodbye, time.Time{}) // out bounds the time
	_ = s.out.drain(s.patience)
}

// closeFrame returns the close code and text for a reason.
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
