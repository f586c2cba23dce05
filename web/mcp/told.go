package mcp

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/zap"

	"switchboard/handoff"
)

// outcomeMark is the name in the _meta of a result that has an outcome; the value is the id of the work. The library
// writes a result after its handler has returned, and by this mark the writer of the connection knows which it is. The
// text of an agent cannot forge it, since quotation marks in text are escaped.
const outcomeMark = "switchboard/outcome"

// A telling knows which outcomes are in the results that are to be written to one client: in the answer to one HTTP
// request, or over one pipe. It is safe for concurrent use.
type telling struct {
	mu      sync.Mutex
	waiting map[handoff.ID]handoff.Grant // Guarded by mu: not written yet
}

// expect marks a result that has the outcome of work, for the holder of a grant.
func (t *telling) expect(g handoff.Grant, id handoff.ID, result *mcp.CallToolResult) {
	result.Meta = mcp.Meta{outcomeMark: id}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.waiting == nil {
		t.waiting = map[handoff.ID]handoff.Grant{}
	}
	t.waiting[id] = g
}

// written takes bytes that were written, which have whole results, and returns the work whose outcomes are in them.
func (t *telling) written(p []byte) (told map[handoff.ID]handoff.Grant) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id, g := range t.waiting {
		if bytes.Contains(p, []byte(handoff.Encode(outcomeMark)+":"+handoff.Encode(id))) {
			if told == nil {
				told = map[handoff.ID]handoff.Grant{}
			}
			told[id] = g
			delete(t.waiting, id)
		}
	}
	return told
}

// told records the outcomes that clients were told.
func (f *Front) told(works map[handoff.ID]handoff.Grant) {
	for id, g := range works {
		if err := f.cfg.Work.Told(context.Background(), g, id); err != nil { // it is told again
			f.cfg.Log.Debug("an outcome is not known any more", zap.Error(err))
		}
	}
}

// A watchedAnswer is the answer to an HTTP request, and records the outcomes that are written to it.
type watchedAnswer struct {
	http.ResponseWriter
	request *http.Request
	telling *telling
	told    func(map[handoff.ID]handoff.Grant)
}

// Write implements [http.ResponseWriter].
func (w watchedAnswer) Write(p []byte) (int, error) {
	n, err := w.ResponseWriter.Write(p)
	if err == nil && n == len(p) {
		if told := w.telling.written(p); told != nil && handoff.Written(w.ResponseWriter, w.request) {
			w.told(told)
		}
	}
	return n, err
}

// Unwrap returns the writer for [http.ResponseController].
func (w watchedAnswer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// A watchedPipe is a connection with one message in each line, and records the outcomes that are written to it.
type watchedPipe struct {
	io.ReadWriteCloser
	telling *telling
	told    func(map[handoff.ID]handoff.Grant)
}

// Write implements [io.Writer].
func (p watchedPipe) Write(line []byte) (int, error) {
	n, err := p.ReadWriteCloser.Write(line)
	if err == nil && n == len(line) {
		p.told(p.telling.written(line))
	}
	return n, err
}
