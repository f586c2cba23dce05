package consent

import "testing"

// TestBackchannel holds what only shows that a caller listens, and what is more than that.
func TestBackchannel(t *testing.T) {
	for text, want := range map[string]bool{
		"": true, "  ": true, "...": true, "Mm-hmm.": true, "mhm": true, "Uh-huh": true, "Okay.": true, "Yeah, yeah": true,
		"Right.": true, "I see.": true, "Oh, okay": true, "got it": true, "Hmm": true, "Thank you.": true, "go on": true,
		"genau": true, "Aha.": true, "Ach so": true, "d'accord": true, "はい": true, "なるほど": true, "嗯嗯": true, "好的": true,
		"そうですね": true, "네": true, "понятно": true, "claro": true,
		"okay, wait, don't": false, "no": false, "wait": false, "stop": false, "hm?": false, "okay?": false,
		"what": false, "run the tests": false, "okay run it again": false, "yes yes yes yes yes": false, "do it": false,
		"Halt": false, "nein": false, "espera": false, "待って": false, "不要": false, "put it on the table": false,
	} {
		if got := Backchannel(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// TestHush holds what asks for quiet, and what speaks of work.
func TestHush(t *testing.T) {
	for text, want := range map[string]bool{
		"Stop.": true, "stop stop": true, "okay, stop": true, "please stop talking": true, "hold on": true, "be quiet": true,
		"Halt": true, "sei still": true, "arrête": true, "para": true, "止めて": true, "停": true, "그만": true, "хватит": true,
		"stop the work": false, "stop it on bigpc": false, "cancel it": false, "no": false, "": false, "okay": false,
		"stop the tests": false, "don't stop": false, "stop?": false,
	} {
		if got := Hush(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// TestMurmursAllowNothing holds that the words of listeners are no yes to any question, whatever else is listed.
func TestMurmursAllowNothing(t *testing.T) {
	for _, l := range languages() {
		if len(l.back) == 0 || len(l.hush) == 0 {
			t.Errorf("%s has no words of listeners, or none that ask for quiet", l.code)
		}
		for phrase := range l.back {
			for _, q := range sixQuestions {
				if Read(phrase, q) == Yes {
					t.Errorf("%s: %q is a yes", l.code, phrase)
				}
			}
			if !Backchannel(phrase) {
				t.Errorf("%s: %q is more than a backchannel", l.code, phrase)
			}
		}
		for phrase := range l.hush {
			if Backchannel(phrase) || !Hush(phrase) {
				t.Errorf("%s: %q does not ask for quiet", l.code, phrase)
			}
		}
	}
}
