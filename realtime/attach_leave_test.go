package realtime

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"switchboard/handoff"
)

// A call that is left while its socket is dialled for the first time is not joined.
func TestAttachLeftWhileDialled(t *testing.T) {
	asked := make(chan struct{}, 1)
	far := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		<-r.Context().Done()
	}))
	defer far.Close()
	front, err := NewFront(Config{ModelURL: "ws" + strings.TrimPrefix(far.URL, "http") + "/v1/realtime", Router: &listener{}})
	if err != nil {
		t.Fatal(err)
	}
	front.reach = time.Hour // only leaving ends the dial
	ctx, stop := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- front.Run(ctx) }()
	w, answered := httptest.NewRecorder(), make(chan struct{})
	go func() {
		defer close(answered)
		front.ServeAttach(w, httptest.NewRequest(http.MethodPost, "/v1/realtime/attach", nil), someone, "rtc_1")
	}()
	<-asked
	if err := front.Hangup(someone, "rtc_1"); err != nil {
		t.Error(err)
	}
	<-answered
	if code := gjson.Get(w.Body.String(), "error.code").String(); code != string(handoff.CodeNotFound) {
		t.Errorf("answered %d %s", w.Code, w.Body)
	}
	stop()
	if err := <-ran; err != nil {
		t.Error(err)
	}
}
