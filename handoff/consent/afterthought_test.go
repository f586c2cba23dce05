package consent

import "testing"

func TestAfterthoughts(t *testing.T) {
	for _, c := range []struct {
		question int
		reply    string
		want     bool
	}{
		{1, "go ahead and push it so the others can get it", true},
		{1, "go ahead and push it so the others can review it first", false},
		{1, "go ahead and push it so the others can get it tomorrow", false},
		{3, "да, запускай тесты, посмотрим, не сломалось ли там что-нибудь", true},
		{3, "да, запускай тесты, посмотрим, нет, не надо", false},
		{3, "run the tests and tell me afterwards how it went, yes", true},
		{3, "run the tests, no, tell me how it went", false},
		{3, "Ja, lass die Tests laufen, ich wollte sowieso gerade wissen, ob noch alles grün ist.", true},
		{3, "Ja, lass die Tests laufen, ich wollte wissen, ob ich das erlauben soll", false},
		{1, "yes push it, I want to see what it would push", false},
		{3, "네 테스트 돌리세요 저도 결과가 어떻게 나올지 궁금했어요", true},
		{3, "dont do it yet Sí, ejecuta los tests, quiero ver si pasan.", false},
		{3, "好 跑测试吧 我也想看看现在是不是都能过", true},
		{6, "it's not dangerous allow it", true},
		{6, "nic się nie stanie tak pobierz to", true},
		{6, "go go go", true},
		{1, "sí sí sí", true},
		{1, "sí sí sí, ya", false},
		{6, "yeah yeah", false},
		{6, "no no no", false},
		{2, "npm install in het project api", false},
		{2, "npm install w projekcie api, tak", true},
		{6, "그 패키지가 뭐예요", false},
	} {
		if got := Read(c.reply, sixQuestions[c.question-1]); (got == Yes) != c.want {
			t.Errorf("%q: %v", c.reply, got)
		}
	}
}
