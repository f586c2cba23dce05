package realtime

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
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
	// keptBuffer is what a socket keeps between events; a larger one is given back.
	keptBuffer = 1 << 20
	// pingEvery keeps proxies from closing an idle socket, idleLimit notices a far end that is gone.
	pingEvery = 20 * time.Second
	idleLimit = 60 * time.Second
	// renewEvery is how often the time that is left to the far end is renewed while it sends: that costs more than it
	// seems to.
	renewEvery = 5 * time.Second
	// maxBatch bounds the events that go into one write, in bytes; one always does.
	maxBatch = 16 << 10
	// writeLimit bounds one write.
	writeLimit = 10 * time.Second
)

// A socket is one WebSocket that carries Realtime events, to a client or to a voice model. It is a [leg].
//
// Who has the turn writes. Whoever sent events takes it with Flush, if nobody has it, and writes what the far end takes
// without waiting. The goroutine of write is the one that waits: for a far end that does not take all at once, and for
// what nobody else writes: pings, their answers, and the farewell.
type socket struct {
	*outbound.Queue                    // Set once: what it has to write
	conn            *websocket.Conn    // Set once; read by read
	direct          syscall.RawConn    // Set once: writes without waiting; nil: not over TLS
	log             *zap.Logger        // Set once
	patience        time.Duration      // Set once: bounds one write
	renewed         time.Time          // Owned by read: when it got idleLimit
	turn            chan struct{}      // holds one token while somebody writes
	batch           []byte             // Owned by who has the turn: what Flush writes now
	taken           int                // Owned by who has the turn: bytes of batch that the far end has taken
	attempt         func(uintptr) bool // Set once: writes batch
	rest            []byte             // Owned by who has the turn: what the far end did not take at once, for write
	keys            *rand.ChaCha8      // Owned by who has the turn: masks what a client writes; nil: we are the server
	pings           chan string        // holds the newest ping that write has not answered
	code            int                // Set once, before closed: what it closes with
	closed          atomic.Bool        // the far end has said that it closes: no event is written any more
	born            time.Time          // Set once
	seen            atomic.Int64       // after born: when anything of the far end came
	probe           chan struct{}      // holds one token while a ping is wanted
	done            chan struct{}      // closed when Run has ended
}

// frames lends sockets the room for what they write. Safe by itself.
var frames = sync.Pool{New: func() any { return new([]byte) }}

// newSocket makes a socket of a connection; bytes bounds what may wait to be written, patience one write. It lives
// while Run runs.
func newSocket(conn *websocket.Conn, bytes int64, patience time.Duration, log *zap.Logger) *socket {
	s := &socket{
		conn: conn, log: log, patience: patience, born: time.Now(),
		turn: make(chan struct{}, 1), probe: make(chan struct{}, 1), pings: make(chan string, 1), done: make(chan struct{}),
	}
	s.Queue, s.attempt = outbound.New(bytes, s.hurry), s.writeOnce
	if conn != nil {
		s.direct = directOf(conn.NetConn())
	}
	return s
}

// Send implements [leg]. The event waits for Flush.
func (s *socket) Send(event []byte) bool { return s.Put(event) }

// Seen implements [witness].
func (s *socket) Seen() time.Time { return s.born.Add(time.Duration(s.seen.Load())) }

// Probe implements [witness].
func (s *socket) Probe() {
	select {
	case s.probe <- struct{}{}:
	default: // it is on its way
	}
}

func (s *socket) sign() { s.seen.Store(int64(time.Since(s.born))) }

// Close implements [leg]. What was sent before is still written, for [outbound.CloseGrace] at most. Run must
// have been called.
func (s *socket) Close(reason *handoff.Error) {
	s.End(reason)
	<-s.done
}

// Abandon implements [connection].
func (s *socket) Abandon() { _ = s.conn.Close() }

// hurry keeps a read or write that hangs from holding the end up. The net.Conn takes this from anyone.
func (s *socket) hurry() {
	_ = s.conn.NetConn().SetWriteDeadline(time.Now().Add(outbound.CloseGrace))
	_ = s.conn.NetConn().SetReadDeadline(s.until())
}

// until returns when reading ends on a socket that is ending.
func (s *socket) until() time.Time { return s.EndedAt().Add(2 * outbound.CloseGrace) }

// Run implements [connection]: it reads and writes.
func (s *socket) Run(take func(event []byte)) {
	defer close(s.done)
	var writer sync.WaitGroup
	writer.Go(s.write)
	err := s.read(take)
	s.End(nil)
	if errors.Is(err, websocket.ErrReadLimit) {
		// What the far end still sends is read, or a reset would overtake the close frame.
		_, _ = io.Copy(io.Discard, s.conn.NetConn())
	}
	writer.Wait()
	_ = s.conn.Close()
}

// read returns why it ended.
func (s *socket) read(take func(event []byte)) error {
	s.conn.SetReadLimit(maxFrame)
	s.conn.SetCloseHandler(func(code int, _ string) error {
		s.code = code
		s.closed.Store(true) // farewell answers: the library would do it here, maybe in the middle of a frame
		return nil
	})
	s.conn.SetPingHandler(s.pinged)
	s.conn.SetPongHandler(func(string) error {
		s.sign()
		return s.alive()
	})
	var buffer bytes.Buffer
	for s.alive() == nil {
		_, frame, err := s.conn.NextReader()
		if err == nil {
			buffer.Reset()
			_, err = buffer.ReadFrom(frame)
		}
		if _, said := errors.AsType[*websocket.CloseError](err); err == nil || said {
			s.sign()
		}
		if errors.Is(err, websocket.ErrReadLimit) {
			s.End(handoff.Fault(handoff.CodeTooLarge, "an event", fmt.Sprintf("at most %d bytes", maxFrame)))
		}
		if err != nil {
			s.log.Debug("socket ended", zap.Error(err))
			return err
		}
		event := sounds.clone(buffer.Bytes())
		if buffer.Cap() > keptBuffer {
			buffer = bytes.Buffer{}
		}
		if !s.closing() { // or else read on, so that the far end's close frame is seen and ours is not lost to a reset
			take(event)
		}
	}
	return nil
}

// alive moves the read deadline, but not beyond the end of a closing socket.
func (s *socket) alive() error {
	var err error
	if now := time.Now(); now.Sub(s.renewed) >= renewEvery {
		s.renewed, err = now, s.conn.SetReadDeadline(now.Add(idleLimit))
	}
	select {
	case <-s.Ending(): // after setting, for end may have come between
		return s.conn.SetReadDeadline(s.until())
	default:
		return err
	}
}

func (s *socket) write() {
	ping := time.NewTicker(pingEvery)
	defer ping.Stop()
	for {
		var err error
		select {
		case <-s.Ready():
			err = s.inTurn(func() error { return s.putAll(time.Time{}) })
		case <-ping.C:
			err = s.inTurn(s.ping)
		case <-s.probe:
			err = s.inTurn(s.ping)
		case data := <-s.pings:
			err = s.inTurn(func() error {
				return s.conn.WriteControl(websocket.PongMessage, []byte(data), time.Now().Add(writeLimit))
			})
		case <-s.Ending():
			s.turn <- struct{}{} // for good
			s.farewell()
			return
		}
		switch {
		case err == nil:
		case errors.Is(err, websocket.ErrCloseSent) || s.closed.Load(): // the reader knows why
			<-s.Ending()
			return
		default:
			s.End(s.stuck(err))
			return
		}
	}
}

// inTurn lets write write, after what was begun. Where it fails nobody writes any more.
func (s *socket) inTurn(write func() error) error {
	s.turn <- struct{}{}
	if err := s.putRest(time.Time{}); err != nil {
		return err
	}
	if err := write(); err != nil {
		return err
	}
	err := s.conn.NetConn().SetWriteDeadline(time.Time{}) // Flush sets none
	<-s.turn
	if s.Waits() { // it was sent meanwhile, and Flush found the turn taken
		s.Signal()
	}
	return err
}

// pinged lets the writer answer a ping, the newest of those that wait. The library would answer in the reader, and
// with its own deadline cut off a write that is slow.
func (s *socket) pinged(data string) error {
	for {
		select {
		case s.pings <- data:
			return nil
		default:
		}
		select {
		case <-s.pings:
		default:
		}
	}
}

func (s *socket) ping() error {
	return s.conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(writeLimit))
}

// stuck tells why a write failed: the far end took too long for it, or it is gone (nil).
func (s *socket) stuck(err error) *handoff.Error {
	if slow, ok := errors.AsType[net.Error](err); ok && slow.Timeout() { // gorilla hides os.ErrDeadlineExceeded
		return handoff.Fault(handoff.CodeSlowClient, "", "a write")
	}
	if !errors.Is(err, net.ErrClosed) {
		s.log.Debug("socket cannot be written", zap.Error(err))
	}
	return nil
}

// putAll writes what waits, several events in one write. It stops when the socket begins to end, unless all of it may
// take until then.
func (s *socket) putAll(until time.Time) error {
	lent := frames.Get().(*[]byte)
	defer giveBack(lent)
	for {
		if *lent = s.nextBatch((*lent)[:0]); len(*lent) == 0 {
			return nil
		}
		if err := s.put(*lent, until); err != nil {
			return err
		}
		if s.closing() && until.IsZero() {
			return nil // the rest is the farewell's
		}
	}
}

// nextBatch appends the frames of what waits, as many as go into one write.
func (s *socket) nextBatch(batch []byte) []byte {
	for event, ok := s.Next(); ok; event, ok = s.Next() {
		batch = appendFrame(batch, event, s.keys)
		if sounds.give(event); len(batch) >= maxBatch {
			break
		}
	}
	return batch
}

func giveBack(lent *[]byte) {
	if cap(*lent) <= keptBuffer {
		frames.Put(lent)
	}
}

// putRest writes what the far end did not take at once.
func (s *socket) putRest(until time.Time) error {
	rest := s.rest
	if s.rest = nil; rest == nil {
		return nil
	}
	return s.put(rest, until)
}

func (s *socket) put(bytes []byte, until time.Time) error {
	if err := s.allow(until); err != nil {
		return err
	}
	_, err := s.conn.NetConn().Write(bytes)
	return err
}

// allow bounds the next write: by until, or else by the socket's patience. The library sets another time with each
// frame of its own, so it is set for each write.
func (s *socket) allow(until time.Time) error {
	conn := s.conn.NetConn()
	if !until.IsZero() {
		return conn.SetWriteDeadline(until)
	}
	err := conn.SetWriteDeadline(time.Now().Add(s.patience))
	if s.closing() { // after setting, for the end may have come between
		return conn.SetWriteDeadline(time.Now().Add(outbound.CloseGrace))
	}
	return err
}

func (s *socket) closing() bool {
	select {
	case <-s.Ending():
		return true
	default:
		return false
	}
}

// farewell flushes the queue, unless the far end is too slow for it or closes itself, and says why the socket closes.
func (s *socket) farewell() {
	until := time.Now().Add(outbound.CloseGrace)
	why, goodbye := s.Ended(), closeFrame(s.Ended())
	said := why != nil && why.Code == handoff.CodeTooLarge // the library has closed it already
	if s.closed.Load() {
		said, goodbye = true, websocket.FormatCloseMessage(s.code, "")
	}
	if s.putRest(until) != nil || !said && !s.Behind() && s.putAll(until) != nil {
		return
	}
	_ = s.conn.WriteControl(websocket.CloseMessage, goodbye, until)
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
