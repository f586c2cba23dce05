package consent

import "testing"

// TestTraps holds replies that look like a yes or like a no, and are neither, beside what stays one.
func TestTraps(t *testing.T) {
	for _, c := range []struct {
		question int
		text     string
		want     Reply
	}{
		// An "if not" that is no "otherwise".
		{3, "pode se não demorar muito", Unclear},
		{3, "sim pode rodar se não atrapalhar ninguém", Unclear},
		{3, "dale si no tarda mucho ni rompe nada", Unclear},
		{3, "sì vai se no ci mette molto", Unclear},
		{2, "sim pode instalar senão nada funciona", Yes},
		{2, "sim pode instalar se não nada funciona", Yes},
		{2, "sí instala si no nada funciona", Yes},
		// Not the copy, but what it is made of.
		{5, "ja ga maar verder maar dan in het origineel", Unclear},
		{5, "yes go on then in the original", Unclear},
		{5, "ja ga verder dan in het origineel", Unclear},
		{5, "так продовжуй але в оригіналі", Later},
		{5, "Yes, make a copy, I still have the original open.", Yes},
		// "I see."
		{4, "jaha", Unclear},
		{4, "jaha okej", Unclear},
		{4, "jaha kör", Yes},
		{4, "ach so", Nothing},
		// Somebody remembers what was asked.
		{3, "les tests ah oui les tests", Unclear},
		{3, "the tests, yes, the tests", Unclear},
		{3, "テスト はい テスト", Unclear},
		{1, "bigpc ah yes bigpc", Unclear},
		{3, "yes the tests yes the tests", Yes},
		{1, "push it yes push it", Yes},
		// Who is let do what.
		{1, "let him", Unclear},
		{1, "let him, please", Unclear},
		{1, "пусть сам", Unclear},
		{1, "хай сам", Unclear},
		{1, "let him do it", Yes},
		{1, "let him push", Yes},
		{1, "пусть пушит", Yes},
		{1, "yes let him", Yes},
		// The first "no" is taken back.
		{5, "нет ой то есть да продолжай в копии", Yes},
		{5, "いや違う はい コピーで続けてください", Yes},
		{6, "don't uh no wait do allow it yes", Unclear},
		{3, "no wait yes", Unclear},
		{3, "nein ach quatsch ja", Unclear},
		{3, "아니 잠깐 응 돌려", Yes},
		{3, "no wait don't", No},
		{3, "no don't run it yes I'm sure", No},
		{3, "no sorry yes I mean no", No},
		{3, "I wouldn't say yes", No},
		{6, "不可以下载", No},
		// Tired of being asked: with an order of the act it is a yes.
		{3, "可以可以别再问了", Unclear},
		{3, "别再问了", Unclear},
		{3, "ja ja hör auf zu fragen", Unclear},
		{3, "응응 그만 물어봐", Unclear},
		{3, "别再问了跑吧", Yes},
		// A last "no" that is no part of a reassurance before an order.
		{2, "nie ma problemu instaluj wszystko co trzeba nie", Unclear},
		{2, "nie ma problemu instaluj wszystko co trzeba", Yes},
		// A word that holds off, at the front.
		{3, "ancora e dai sì lanciali", Later},
	} {
		if got := Read(c.text, sixQuestions[c.question-1]); got != c.want {
			t.Errorf("%q is %s, not %s", c.text, got, c.want)
		}
	}
}
