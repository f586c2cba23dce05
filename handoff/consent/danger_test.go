package consent

import (
	"strings"
	"sync/atomic"
	"testing"
)

// dangers are clauses of each language that make no yes of what stands before them: another time, a condition, a limit,
// a question, another machine, an order of something else, and what takes back. Set once.
var dangers = map[string]string{
	"en": "but not now|but only tomorrow|if the tests are green|unless Tom objects|after lunch|when I'm back|but ask me first|maybe|or what|on the server|but only half of it|except the last one|and delete the rest|I changed my mind|until I say stop|once it's reviewed|instead of the other one|but Tom has to look first|provided it's safe|why",
	"de": "aber nicht jetzt|aber erst morgen|wenn die Tests grün sind|falls das geht|nach dem Essen|sobald ich zurück bin|aber frag mich vorher|vielleicht|oder was|auf dem Server|aber nur die Hälfte|außer dem letzten|und lösch den Rest|ich hab's mir anders überlegt|bis ich stopp sage|es sei denn es dauert|warum",
	"fr": "mais pas maintenant|mais seulement demain|si les tests passent|après le déjeuner|quand je serai rentré|mais demande-moi d'abord|peut-être|sur le serveur|mais seulement la moitié|sauf le dernier|et supprime le reste|j'ai changé d'avis|à moins que ça dure|pourquoi",
	"es": "pero ahora no|pero solo mañana|si pasan las pruebas|después de comer|cuando vuelva|pero pregúntame antes|quizás|en el servidor|pero solo la mitad|menos el último|y borra el resto|he cambiado de idea|a menos que tarde|por qué",
	"it": "ma non adesso|ma solo domani|se i test passano|dopo pranzo|quando torno|ma prima chiedimi|forse|sul server|ma solo metà|tranne l'ultimo|e cancella il resto|ho cambiato idea|a meno che ci metta troppo|perché mai",
	"pt": "mas agora não|mas só amanhã|se os testes passarem|depois do almoço|quando eu voltar|mas me pergunta antes|talvez|no servidor|mas só a metade|menos o último|e apaga o resto|mudei de ideia|a não ser que demore|por quê",
	"nl": "maar niet nu|maar pas morgen|als de tests groen zijn|na de lunch|zodra ik terug ben|maar vraag het me eerst|misschien|op de server|maar alleen de helft|behalve de laatste|en verwijder de rest|ik heb me bedacht|tenzij het lang duurt|waarom",
	"pl": "ale nie teraz|ale dopiero jutro|jeśli testy przejdą|po obiedzie|jak wrócę|ale najpierw mnie zapytaj|może później|na serwerze|ale tylko połowę|oprócz ostatniego|i usuń resztę|zmieniłem zdanie|chyba że długo potrwa|dlaczego",
	"ru": "но не сейчас|но только завтра|если тесты пройдут|после обеда|когда вернусь|но сначала спроси меня|может быть|на сервере|но только половину|кроме последнего|и удали остальное|я передумал|зачем",
	"uk": "але не зараз|але тільки завтра|якщо тести пройдуть|після обіду|коли повернусь|але спочатку спитай мене|можливо|на сервері|але тільки половину|крім останнього|я передумав|навіщо",
	"sv": "men inte nu|men först imorgon|om testerna går igenom|efter lunch|när jag är tillbaka|men fråga mig först|kanske|på servern|men bara hälften|utom den sista|och ta bort resten|jag har ändrat mig|varför",
	"tr": "ama şimdi değil|ama yarın|testler geçerse|yemekten sonra|ben dönünce|ama önce bana sor|belki|sunucuda|ama sadece yarısını|sonuncusu hariç|vazgeçtim|neden",
	"hi": "लेकिन अभी नहीं|लेकिन कल|अगर टेस्ट पास हों|खाने के बाद|जब मैं लौटूँ|लेकिन पहले मुझसे पूछो|शायद|सर्वर पर|लेकिन सिर्फ आधा|मन बदल गया|क्यों",
	"ar": "لكن ليس الآن|لكن بكرة|إذا نجحت الاختبارات|بعد الغدا|لما أرجع|لكن اسألني قبل|ربما|على السيرفر|لكن النص بس|غيرت رأيي|ليش",
	"zh": "但现在不行|但明天再说|如果测试通过的话|吃完饭以后|等我回来|但先问我|也许|在服务器上|但只要一半|我改主意了|为什么",
	"ja": "でも今はだめ|でも明日|テストが通ったら|お昼のあとで|戻ってから|でも先に聞いて|たぶん|サーバーで|半分だけ|気が変わった|なんで",
	"ko": "하지만 지금은 말고|근데 내일|테스트가 통과하면|점심 먹고 나중에|내가 돌아오면|근데 먼저 물어봐|아마|서버에서|절반만|마음이 바뀌었어|왜",
}

// TestDangerEndsYes holds that no plain yes stays one with a clause of danger after it.
func TestDangerEndsYes(t *testing.T) {
	lines := corpus(t)
	inParallel(len(lines)/nth(), func(i int) {
		l := lines[i*nth()]
		clauses := strings.Split(dangers[l.lang], "|")
		if l.got != Yes || clauses[0] == "" || !isPlainYes(l.text, askedWords(l.to)) { // a story may go on with much
			return
		}
		text := strings.TrimRight(l.text, ".!。！।")
		for turn := range 3 {
			clause := clauses[(i+turn*5)%len(clauses)]
			for _, reply := range []string{text + " " + clause, text + ", " + clause} {
				if Read(reply, l.to) == Yes {
					t.Errorf("%s: %q is a yes", l.file, reply)
				}
			}
		}
	})
}

// asides are clauses of each language that say nothing for or against what was asked. Set once.
var asides = map[string]string{
	"en": "I'm just driving home|my hands are full of flour|everybody uses that one|I looked at it this morning|we talked about it yesterday|I left it open at home",
	"de": "ich fahr grad nach Hause|meine Hände sind voller Mehl|das benutzt eh jeder|ich hab's heute früh angeschaut|ich steh im Stau",
	"fr": "je suis au volant|j'ai les mains pleines de farine|je l'ai relu ce matin|j'ai laissé ça ouvert à la maison",
	"es": "estoy conduciendo|tengo las manos llenas de harina|lo revisé esta mañana|yo estoy en un atasco",
	"it": "sono in macchina|ho le mani piene di farina|l'ho riletto stamattina|io sto cucinando",
	"pt": "eu estou dirigindo|estou com as mãos sujas|eu revisei hoje de manhã|eu deixei aberto em casa",
	"nl": "ik zit in de auto|ik heb mijn handen vol deeg|ik heb het vanmorgen bekeken|ik sta te koken",
	"pl": "jestem w samochodzie|mam ręce w mące|sprawdziłem to rano|stoję w korku",
	"ru": "я за рулём|у меня руки в муке|я утром всё проверил|я стою в пробке",
	"uk": "я за кермом|у мене руки в борошні|я вранці все перевірив|я стою в заторі",
	"sv": "jag kör bil|jag har händerna fulla med deg|jag läste igenom det i morse",
	"tr": "ben araba kullanıyorum|benim ellerim hamurlu|ben sabah baktım",
}

// minKept is how many of a hundred yeses with an order of the act stay one with an aside after them.
const minKept = 90

// TestAsidesKeepYes holds that most yeses that order the act by its name stay one with an aside after them.
func TestAsidesKeepYes(t *testing.T) {
	lines := corpus(t)
	var all, kept atomic.Int64
	inParallel(len(lines)/nth(), func(i int) {
		l := lines[i*nth()]
		clauses := strings.Split(asides[l.lang], "|")
		if l.got != Yes || clauses[0] == "" || l.file == hardFile || !hear(l.text).ordersPlainly(askedWords(l.to)) || !hear(l.text).hasYes(askedWords(l.to)) {
			return
		}
		all.Add(1)
		if got := Read(strings.TrimRight(l.text, ".!")+" "+clauses[i%len(clauses)], l.to); got == Yes {
			kept.Add(1)
		} else if got == No {
			t.Errorf("%q is a no with %q", l.text, clauses[i%len(clauses)])
		}
	})
	t.Logf("%d of %d are kept", kept.Load(), all.Load())
	if kept.Load()*100 < all.Load()*minKept {
		t.Errorf("only %d of %d are kept", kept.Load(), all.Load())
	}
}

// nth is of how many replies a property takes one: of fewer under the race detector and in short runs.
func nth() int {
	if testing.Short() {
		return max(everyNth, 5)
	}
	return everyNth
}
