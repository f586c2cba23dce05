package consent

import (
	"slices"
	"testing"
)

// TestCitation holds that the act with its object, named as a language names what is done, is the question again, and
// that an order of it, a yes, a particle or a "please" beside it is a yes.
func TestCitation(t *testing.T) {
	for _, c := range []struct {
		question int
		cited    string
		ordered  []string
	}{
		{5, "in einer Kopie weitermachen", []string{"mach in einer Kopie weiter", "ja, in einer Kopie weitermachen", "bitte in einer Kopie weitermachen"}},
		{3, "die Tests laufen lassen", []string{"lass die Tests laufen", "ja, die Tests laufen lassen"}},
		{3, "运行测试", []string{"运行测试吧", "好的，运行测试", "请运行测试", "让它运行测试吧"}},
		{2, "安装依赖", []string{"安装依赖吧", "可以，安装依赖"}},
		{3, "go test로 테스트 실행", []string{"테스트 실행해", "네, 테스트 실행", "테스트 실행해 주세요"}},
		{3, "テスト実行", []string{"テスト実行して", "はい、テスト実行", "テスト実行お願いします"}},
		{3, "lancer les tests", []string{"lance les tests", "oui, lancer les tests"}},
		{3, "ejecutar las pruebas", []string{"ejecuta las pruebas", "sí, ejecutar las pruebas"}},
		{3, "eseguire i test", []string{"esegui i test", "sì, esegui i test"}},
		{3, "rodar os testes", []string{"roda os testes", "sim, rodar os testes"}},
		{3, "запустить тесты", []string{"запусти тесты", "да, запускай тесты", "пусть запускает тесты"}},
		{3, "запускати тести", []string{"запускай тести", "так, запускай тести"}},
		{3, "uruchomić testy", []string{"uruchom testy", "tak, uruchom testy"}},
		{3, "testleri çalıştırmak", []string{"testleri çalıştır", "evet, testleri çalıştır"}},
		{3, "run the tests", []string{"run the tests please", "yes, run the tests", "run those tests", "run all the tests"}},
		{6, "pip install requests з інтернету", []string{"так, pip install requests з інтернету", "дозволь pip install requests з інтернету"}},
		{2, "allow npm install in api", []string{"yes, allow npm install in api", "allow it to run npm install", "let it run npm install"}},
	} {
		q := sixQuestions[c.question-1]
		if got := Read(c.cited, q); got != Echo && got != Unclear && got != Nothing {
			t.Errorf("%q is %s", c.cited, got)
		}
		for _, text := range c.ordered {
			if got := Read(text, q); got != Yes {
				t.Errorf("%q is %s, not yes", text, got)
			}
		}
	}
}

// TestChoices holds how a word file writes several phrases as one.
func TestChoices(t *testing.T) {
	got := spelledOut("(it|they) may (|now )go")
	want := []string{"it may go", "it may now go", "they may go", "they may now go"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, not %q", got, want)
	}
	if got := spelledOut("no (choice"); !slices.Equal(got, []string{"no (choice"}) {
		t.Errorf("%q", got)
	}
}
