package realtime

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"
	"go.uber.org/zap"

	"switchboard/handoff"
)

const (
	// maxFrame bounds one event: an append carries up to 15 MiB of audio. A larger one ends the socket with
	// close code 1009. Of what was read only one event waits to be taken, so at most two are held: the call
	// never waits, and TCP slows the far end.
	maxFrame = 16 << 20
	// keptBuffer is what a socket keeps between events; a larger one is given back.
	keptBuffer = 1 << 20
	// sendQueue and sendBytes bound what waits to be written. When full the socket ends: text is never
	// dropped, and a client that is this far behind has lost the conversation anyway.
	sendQueue = 1024
	sendBytes = 64 << 20
	// pingEvery keeps proxies from closing an idle socket, idleLimit notices a far end that is gone.
	pingEvery = 20 * time.Second
	idleLimit = 60 * time.Second
	// writeLimit bounds one write, closeGrace what a closing socket still may take to flush and say so.
	writeLimit = 10 * time.Second
	closeGrace = time.Second
)

// A socket is one WebSocket that carries Realtime events, to a client or to a voice model. It is a [leg].
type socket struct {
	conn     *websocket.Conn // Set once; read by read, written by write
	log      *zap.Logger     // Set once
	bound    int64           // Set once: bytes that may wait to be written
	patience time.Duration   // Set once: bounds one write
	received chan []byte     // closed by read
	queue    chan []byte     // never closed
	queued   atomic.Int64    // bytes in queue
	born     time.Time       // Set once
	seen     atomic.Int64    // after born: when anything of the far end came
	probe    chan struct{}   // holds one token while a ping is wanted
	closing  chan struct{}   // closed by end
	done     chan struct{}   // closed when run has ended
	once     sync.Once       // guards end
	reason   *handoff.Error  // Set once, before closing is closed
	until    time.Time       // Set once, before closing is closed: reading ends
}

// newSocket makes a socket of a connection; it lives while run runs.
func newSocket(conn *websocket.Conn, log *zap.Logger) *socket {
	return &socket{
		conn: conn, log: log, bound: sendBytes, patience: writeLimit, born: time.Now(), probe: make(chan struct{}, 1),
		received: make(chan []byte),
		queue:    make(chan []byte, sendQueue),
		closing:  make(chan struct{}),
		done:     make(chan struct{}),
	}
}

// Received implements [leg].
func (s *socket) Received() <-chan []byte { return s.received }

// Send implements [leg].
func (s *socket) Send(event []byte) bool {
	select {
	case <-s.closing:
		return false
	default:
	}
	if s.queued.Add(int64(len(event))) > s.bound {
		s.end(handoff.Fault(handoff.CodeSlowClient, "", "bytes"))
		return false
	}
	select {
	case s.queue <- event:
		return true
	default:
		s.end(handoff.Fault(handoff.CodeSlowClient, "", "events"))
		return false
	}
}

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

// Ended implements [ender].
func (s *socket) Ended() *handoff.Error {
	select {
	case <-s.closing:
		return s.reason
	default:
		return nil
	}
}

// Close implements [leg]. What was sent before is still written, for closeGrace at most. Run must have
// been called.
func (s *socket) Close(reason *handoff.Error) {
	s.end(reason)
	<-s.done
}

// end begins the end of the socket; the first reason counts.
func (s *socket) end(reason *handoff.Error) {
	s.once.Do(func() {
		s.reason, s.until = reason, time.Now().Add(2*closeGrace)
		close(s.closing)
		// A read or write that hangs now must not hold the end up. The net.Conn takes this from anyone.
		_ = s.conn.NetConn().SetWriteDeadline(time.Now().Add(closeGrace))
		_ = s.conn.NetConn().SetReadDeadline(s.until)
	})
}

// run reads and writes until the far end has gone or Close was called.
func (s *socket) run() {
	defer close(s.done)
	var writer sync.WaitGroup
	writer.Go(s.write)
	err := s.read()
	s.end(nil)
	if errors.Is(err, websocket.ErrReadLimit) {
		// What the far end still sends is read, or a reset would overtake the close frame.
		_, _ = io.Copy(io.Discard, s.conn.NetConn())
	}
	writer.Wait()
	_ = s.conn.Close()
}

// read returns why it ended.
func (s *socket) read() error {
	defer close(s.received)
	s.conn.SetReadLimit(maxFrame)
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
			s.end(handoff.Fault(handoff.CodeTooLarge, "an event", fmt.Sprintf("at most %d bytes", maxFrame)))
		}
		if err != nil {
			s.log.Debug("socket ended", zap.Error(err))
			return err
		}
		event := bytes.Clone(buffer.Bytes())
		if buffer.Cap() > keptBuffer {
			buffer = bytes.Buffer{}
		}
		select {
		case s.received <- event:
		case <-s.closing: // read on, so that the far end's close frame is seen and ours is not lost to a reset
		}
	}
	return nil
}

// alive moves the read deadline, but not beyond the end of a closing socket.
func (s *socket) alive() error {
	err := s.conn.SetReadDeadline(time.Now().Add(idleLimit))
	select {
	case <-s.closing: // after setting, for end may have come between
		return s.conn.SetReadDeadline(s.until)
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
		case event := <-s.queue:
			err = s.put(event, s.patience)
		case <-ping.C:
			err = s.ping()
		case <-s.probe:
			err = s.ping()
		case <-s.closing:
			s.farewell()
			return
		}
		if errors.Is(err, websocket.ErrCloseSent) { // the library has said so for the reader, who knows why
			<-s.closing
			return
		}
		if err != nil {
			s.end(s.stuck(err))
			return
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

func (s *socket) put(event []byte, limit time.Duration) error {
	s.queued.Add(-int64(len(event)))
	_ = s.conn.SetWriteDeadline(time.Now().Add(limit)) // it only stores the time
	return s.conn.WriteMessage(websocket.TextMessage, event)
}

// farewell flushes the queue, unless the far end is too slow for it, and says why the socket closes.
func (s *socket) farewell() {
	until := time.Now().Add(closeGrace)
	for slow := s.reason != nil && s.reason.Code == handoff.CodeSlowClient; !slow; {
		select {
		case event := <-s.queue:
			if s.put(event, time.Until(until)) != nil {
				return
			}
			continue
		default:
		}
		break
	}
	_ = s.conn.WriteControl(websocket.CloseMessage, closeFrame(s.reason), until)
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
