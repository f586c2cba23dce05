package realtime

import (
	"net/http"
	"sync"

	"switchboard/handoff"
)

// maxBeside bounds the sockets beside a call's own client; further ones are refused.
const maxBeside = 4

// openBeside answers GET /v1/realtime?call_id=: one more socket on a call of this caller. It gets what the client gets,
// and its events count as the client's. The call goes on without it; it ends with the call, or with what let it in.
// carry returns when the socket or the call has ended.
func (f *Front) openBeside(
	w http.ResponseWriter, r *http.Request, grant handoff.Grant, id string,
) (carry func(), fault *handoff.Error) {
	c, fault := f.live.enterBeside(grant, id)
	if fault != nil {
		return nil, fault
	}
	s := f.upgrade(w, r, locationOf(id), c.log(), nil)
	if s == nil {
		f.live.leaveBeside(c)
		return nil, nil
	}
	return func() {
		defer f.live.leaveBeside(c)
		f.counts.beginBeside()
		defer f.counts.endBeside(s)
		c.do(func() { c.legs.welcome(s) })
		var running sync.WaitGroup
		defer running.Wait()
		defer guard(f.asks, grant.Revoked, s.End)()
		running.Go(func() { s.Run(func(event []byte) { c.do(func() { c.fromBeside(s, event) }) }) })
		select {
		case <-s.Ending():
			c.do(func() { c.legs.part(s) })
		case <-c.past:
			s.Close(c.cause)
		}
	}, nil
}
