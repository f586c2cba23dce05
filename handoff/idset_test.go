package handoff

import (
	"strconv"
	"testing"
)

func TestIDSet(t *testing.T) {
	var s IDSet
	if (*IDSet)(nil).Known("a") || s.Known("a") || !s.Add("a") || s.Add("a") || !s.Known("a") {
		t.Fatal("an id is new once")
	}
	for i := range maxIDs {
		s.Add(strconv.Itoa(i))
	}
	if s.Known("a") || !s.Known("0") || len(s.has) != maxIDs || len(s.order) != maxIDs {
		t.Errorf("%d kept", len(s.has))
	}
}
