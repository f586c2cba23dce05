package simulator

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// Serve runs one machine and serves its app-server on a listener until ctx ends: a WebSocket on any path. It closes the
// listener and returns nil when every connection has ended. If it serves a machine again, the machine is as after a
// crash: its threads are there, and its running turns were interrupted. When a machine that leaves is lost, its
// listener is closed.
func (w *World) Serve(ctx context.Context, machine string, ln net.Listener) error {
	m := w.find(machine)
	if m == nil {
		return errors.Join(fmt.Errorf("there is no simulated machine %q", machine), ln.Close())
	}
	serving, lose := context.WithCancel(ctx)
	defer lose()
	m.do(func() {
		if m.running, m.lose = !m.gone, lose; m.gone {
			lose()
		}
	})
	server := &http.Server{Handler: m, ReadHeaderTimeout: 5 * time.Second}
	defer context.AfterFunc(serving, func() { _ = server.Close() })()
	err := server.Serve(ln)
	m.kill()
	if !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	<-ctx.Done()
	return nil
}
