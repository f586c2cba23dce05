package realtime

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"switchboard/handoff"
)

// A call that is left while its socket is dialled for the first time is not joined.
func TestAttachLeftWhileDialled(t *testing.T) {
	asked, left := make(chan struct{}, 1), make(chan struct{})
	far := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked <- struct{}{}
		<-left
		w.WriteHeader(http.StatusBadGateway)
	}))
	defer far.Close()
	front, err := NewFront(Config{ModelURL: "ws" + strings.TrimPrefix(far.URL, "http") + "/v1/realtime", Router: &listener{}})
	if err != nil {
		t.Fatal(err)
	}
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
	close(left)
	<-answered
	if code := gjson.Get(w.Body.String(), "error.code").String(); code != string(handoff.CodeNotFound) {
		t.Errorf("answered %d %s", w.Code, w.Body)
	}
	stop()
	if err := <-ran; err != nil {
		t.Error(err)
	}
}
