package verbs

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A beating is a stream on which nothing but heartbeats come, which a proxy cuts after a while.
type beating struct{ left int }

func (b *beating) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, io.ErrUnexpectedEOF
	}
	b.left--
	time.Sleep(15 * time.Second)
	return copy(p, ": alive\n\n"), nil
}

type quiet struct{ asked int }

func (q *quiet) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodPost { // it was heard
		return &http.Response{StatusCode: http.StatusNoContent, Body: http.NoBody, Request: r}, nil
	}
	q.asked++
	body := io.Reader(&beating{left: 4})
	if q.asked > 10 {
		body = strings.NewReader(ended)
	}
	return &http.Response{StatusCode: 200, Body: io.NopCloser(body), Request: r}, nil
}

// TestFollowQuietWork: a service that answers each time is not given up because a silent agent's stream is cut each
// minute.
func TestFollowQuietWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out, errs bytes.Buffer
		q := &quiet{}
		tm := &Terminal{Client: Client{HTTP: &http.Client{Transport: q}, Base: "http://far"}, Out: &out, Err: &errs,
			Name: "switchboard"}
		if _, err := tm.follow(t.Context(), "r1"); err != nil {
			t.Errorf("given up after %d connections, all answered: %v", q.asked, err)
		}
	})
}
