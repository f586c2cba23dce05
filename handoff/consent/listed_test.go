package consent

import "testing"

// TestListed holds that what a word file lists is read as its section says, whatever other languages make of it.
func TestListed(t *testing.T) {
	q := Question{Text: "?"}
	for _, l := range languages() {
		for phrase, does := range l.phrases.all() {
			if does&kindVeto != 0 && does&^kindVeto != 0 {
				t.Errorf("%s: %q is both a veto and part of a yes", l.code, phrase)
			}
			got, want := Read(phrase, q), Unclear
			switch {
			case does&(kindYes|kindAlone) != 0:
				want = Yes
			case does&kindNo != 0:
				want = No
			case does&kindWait != 0:
				want = Later
			default:
				continue
			}
			if isMarked(phrase) || got != Yes && want != No && got != No || got == No && want == Unclear {
				continue // a word of two languages, of which the more cautious holds
			}
			if got != want {
				t.Errorf("%s: %q is %s, not %s", l.code, phrase, got, want)
			}
		}
	}
}

func isMarked(phrase string) bool { return hear(phrase).odd }
