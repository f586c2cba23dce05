package realtime

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/gorilla/websocket"

	"switchboard/handoff"
)

// dialLimit bounds reaching the model: a person waits for it.
const dialLimit = 10 * time.Second

// frameBuffer fits an audio event of 200 ms in one write.
const frameBuffer = 16 << 10

// safetyHeader names the end user to OpenAI; the only header of a client that is passed on.
const safetyHeader = "OpenAI-Safety-Identifier"

// dialModel opens a model session. model overrides the configured one when it is not empty; client holds
// the headers of the client's request. The socket is not running yet: hand it to [Front.serve], or run and
// close it. Errors have code [handoff.CodeVoiceUnreachable].
func (f *Front) dialModel(ctx context.Context, model string, client http.Header) (*socket, *handoff.Error) {
	ctx, cancel := context.WithTimeout(ctx, f.reach)
	defer cancel()
	target := *f.model
	query := target.Query()
	if model == "" {
		model = f.config.Model
	}
	if model != "" {
		query.Set("model", model)
	}
	target.RawQuery = query.Encode()
	header := http.Header{}
	if f.config.Key != "" {
		header.Set("Authorization", "Bearer "+f.config.Key)
	}
	if id := client.Get(safetyHeader); id != "" {
		header.Set(safetyHeader, id)
	}
	dialer := websocket.Dialer{Proxy: http.ProxyFromEnvironment, ReadBufferSize: frameBuffer, WriteBufferSize: frameBuffer, WriteBufferPool: &f.buffers}
	conn, response, err := dialer.DialContext(ctx, target.String(), header)
	f.counts.dialled(err == nil)
	if err != nil {
		return nil, f.unreachable(response, err)
	}
	return newSocket(conn, f.log), nil
}

// unreachable says why without the model's words, which may repeat a part of the key.
func (f *Front) unreachable(response *http.Response, err error) *handoff.Error {
	detail := err.Error()
	if errors.Is(err, websocket.ErrBadHandshake) && response != nil {
		detail = "it answered " + strconv.Itoa(response.StatusCode)
	}
	return handoff.Fault(handoff.CodeVoiceUnreachable, f.model.Host, detail)
}
