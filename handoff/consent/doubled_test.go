package consent

import (
	"strings"
	"testing"
)

// doubled are a language's words for yes, for certainty and for going on, and how it says yes twice in one word.
// Set once.
var doubled = []struct{ lang, yes, sure, goOn, fused string }{
	{"en", "yes|yeah|okay", "sure|of course|definitely", "go ahead|please do|do it|please", "yesyes|yeahyeah|okok"},
	{"de", "ja|okay|jo", "klar|natürlich|sicher", "mach das|nur zu|bitte|leg los", "jaja|jojo"},
	{"fr", "oui|ouais|ok", "bien sûr|évidemment|d'accord", "vas-y|allez-y|fais-le|s'il te plaît", "ouioui"},
	{"es", "sí|vale|ok", "claro|por supuesto|desde luego", "adelante|hazlo|dale|por favor", "sisi"},
	{"it", "sì|ok|va bene", "certo|certamente|sicuro", "fai pure|procedi|vai|per favore", "sisi"},
	{"pt", "sim|ok|tá bom", "claro|com certeza|pode", "vai em frente|pode fazer|faz isso|por favor", "simsim"},
	{"nl", "ja|oké|jep", "zeker|natuurlijk|tuurlijk", "doe maar|ga je gang|ga maar door|alsjeblieft", "jaja"},
	{"pl", "tak|okej|dobrze", "jasne|oczywiście|pewnie", "proszę|śmiało|rób|poproszę", "taktak"},
	{"ru", "да|хорошо|ок", "конечно|разумеется|обязательно", "давай|делай|пожалуйста|вперёд", "дада"},
	{"uk", "так|ага|добре", "звичайно|звісно|авжеж", "давай|роби|будь ласка|вперед", "тактак"},
	{"sv", "ja|okej|japp", "visst|absolut|självklart", "kör på|gör det|varsågod|tack", "jaja"},
	{"tr", "evet|tamam|olur", "tabii|elbette|kesinlikle", "devam et|yap|lütfen|buyur", "evetevet"},
	{"hi", "हाँ|जी हाँ|ठीक है", "बिल्कुल|ज़रूर|बेशक", "कर दो|आगे बढ़ो|कृपया|करो", "हाँहाँ"},
	{"ar", "نعم|أيوه|تمام", "طبعا|أكيد|بالتأكيد", "تفضل|افعل ذلك|من فضلك|نفذ", "نعمنعم"},
	{"zh", "好|好的|可以|行", "当然|没问题|当然可以", "去吧|请|继续吧|做吧", "好好|行行"},
	{"ja", "はい|うん|いいよ", "もちろん|ぜひ|当然", "どうぞ|お願いします|やって", "はいはい|うんうん"},
	{"ko", "네|응|좋아요", "물론이죠|당연하죠|그럼요", "하세요|진행해|부탁해요", "네네|응응"},
}

// TestDoubledYes holds that a yes that is said more than once, with words of certainty and of going on, is a yes.
func TestDoubledYes(t *testing.T) {
	for _, l := range doubled {
		sep := " "
		if l.lang == "zh" || l.lang == "ja" {
			sep = ""
		}
		lost, all := 0, 0
		check := func(words ...string) {
			for _, text := range []string{strings.Join(words, sep), strings.Join(words, ", ") + "."} {
				for _, q := range sixQuestions[1:3] {
					all++
					if got := Read(text, q); got != Yes {
						lost++
						t.Errorf("%s: %q is %s", l.lang, text, got)
						break
					}
				}
			}
		}
		yeses, sures, gos := strings.Split(l.yes, "|"), strings.Split(l.sure, "|"), strings.Split(l.goOn, "|")
		for i, sure := range sures {
			for j, yes := range yeses {
				check(yes, yes, sure)
				check(sure, yes)
				check(yes, yeses[(j+1)%len(yeses)], sure)
				goOn := gos[(i+j)%len(gos)]
				check(yes, goOn)
				check(yes, yes, goOn)
				check(yes, yes, sure, goOn)
				check(yes, sure, goOn)
				check(sure, goOn)
				check(sure, yes, yes, goOn)
				check(yes, yes, yes, sure, goOn)
			}
			for fused := range strings.SplitSeq(l.fused, "|") {
				check(fused, sure)
				for _, goOn := range gos {
					check(fused, goOn)
					check(fused, sure, goOn)
				}
			}
		}
	}
}
