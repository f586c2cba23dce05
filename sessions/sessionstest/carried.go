package sessionstest

import (
	"slices"
	"testing"

	"switchboard/sessions"
)

// testCarried: the ids of carried calls are those that were stored last.
func testCarried(t *testing.T, s Store) {
	for _, ids := range [][]string{nil, {"rtc_1", "rtc_2"}, {"rtc_2"}, nil} {
		Must(t, sessions.CarriedCalls{Documents: s}.Keep(t.Context(), ids))
		left, err := sessions.CarriedCalls{Documents: s}.Left(t.Context())
		if Must(t, err); !slices.Equal(left, ids) {
			t.Errorf("kept %q, and %q is left", ids, left)
		}
	}
}
