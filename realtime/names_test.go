package realtime

import (
	"regexp"
	"testing"
)

// The id of a call is as it always was where there is one instance, and else names its own.
func TestCallIDNamesTheInstance(t *testing.T) {
	for instance, want := range map[string]string{"": `^rtc_[0-9a-f]{24}$`, "AB2": `^rtc_AB2_[0-9a-f]{24}$`} {
		id := newCallID(instance)
		if !regexp.MustCompile(want).MatchString(id) || !callIDs.MatchString(id) {
			t.Errorf("%q: %s", instance, id)
		}
	}
}
