package consent

import "testing"

// TestStoryDenies holds what a word that denies does in what is told between a yes and an order, and after a slip.
func TestStoryDenies(t *testing.T) {
	for _, c := range []struct {
		question int
		text     string
		want     Reply
	}{
		{2, "yes we need those, otherwise nothing works, so go ahead", Yes},
		{2, "oui il en a besoin sinon rien ne marche donc vas-y", Yes},
		{2, "yes the old ones never really worked for us, so go ahead", Yes},
		{2, "ja die brauchen wir sonst geht nichts, also mach das", Yes},
		{2, "ja das nicht, mach das", No},
		{2, "yes, no, go ahead", No},
		{2, "yes it needs those but don't run it, go ahead", No},
		{2, "otherwise nothing works", No},
		{2, "yes otherwise nothing works", Unclear},
		{4, "no, sorry, I misread that, I mean yes, go ahead", Unclear},
		{4, "no, sorry, I misread that, I mean no", No},
		{3, "sí que bigpc corra las pruebas", Yes},
		{3, "sí que laptop corra las pruebas", Unclear},
		{3, "yes, run the tests on the server", Unclear},
		{3, "ja, lass die Tests auf dem Server laufen", Unclear},
		{1, "yes please push I want it out before the demo", Yes},
		{1, "yes please push before the demo", Later},
		{3, "それはいや", No},
		{3, "はいはい", Unclear},
		{3, "jaja", Unclear},
		{3, "haha", Unclear},
	} {
		if got := Read(c.text, sixQuestions[c.question-1]); got != c.want {
			t.Errorf("%q is %s, not %s", c.text, got, c.want)
		}
	}
}
