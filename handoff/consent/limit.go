package consent

import "slices"

// limits are words for "only". Before or after what is named they allow a part of it. Set once.
var limits = setOf("only just merely nur bloss lediglich solo solamente unicamente seulement juste uniquement soltanto solamente so somente " +
	"apenas alleen slechts enkel tylko wylacznie только лишь исключительно тільки лише sadece yalnızca yalnizca bara endast enbart सिर्फ केवल बस sirf فقط بس 只 仅 僅")

// limitsAfter are those that stand after what they limit. Set once.
var limitsAfter = [][]string{hear("だけ").tokens, hear("のみ").tokens, hear("만").tokens, hear("فقط").tokens, hear("alone").tokens, hear("only").tokens}

// isLimited tells whether a reply allows only a part of what was asked: "only the test file".
func (h heard) isLimited(ask asking) bool {
	for at, t := range h.tokens {
		if limits[t] && !(t == "so" && h.isEnglish(ask)) && !(t == "just" && at > 0 && tellers[h.tokens[at-1]]) && !h.inPhrase(at) && h.namesPart(at+1, ask) {
			return true
		}
		for _, after := range limitsAfter {
			if at > 0 && h.hasAt(at, after) && ask.named(h.tokens[at-1:at]) && !ask.calls(h.tokens[at-1]) {
				return true
			}
		}
	}
	return false
}

// tellers are words after which "just" says when: "I just pulled it". Set once.
var tellers = setOf("i we ive weve he she they")

// isEnglish tells whether a reply is surely in English.
func (h heard) isEnglish(ask asking) bool {
	spoken := h.likely(nil, ask)
	return len(spoken) == 1 && spoken[0] == english()
}

// namesPart tells whether a thing of the question is named at a position, after articles, and no order.
func (h heard) namesPart(at int, ask asking) bool {
	part := false
	for _, l := range languages() {
		for from := at; from < len(h.tokens) && !h.marked[from]; from++ {
			link, order, thing := false, false, false
			take := func(_ int, kind phraseKind) {
				link = link || kind == kindLink || kind == kindTail
				order = order || kind == kindYes || kind == kindOrder || kind == kindDo || kind == kindAct
				thing = thing || kind == kindTopic
			}
			l.book.at(h.tokens[from:], take)
			ask.at(h.tokens[from:], l, take)
			part = part || thing && !order && ask.machine(h.tokens[from:]) == 0
			if order || !link {
				break
			}
		}
	}
	return part
}

// isPart tells whether a reply names one of several files that were asked about, and not the others.
func (h heard) isPart(ask asking) bool {
	if len(ask.files) < 2 {
		return false
	}
	named := false
	for i, t := range h.tokens {
		if both[t] || ask.named(h.tokens[i:i+1]) && plural[t] {
			return false
		}
		for _, file := range ask.files {
			named = named || slices.Contains(file, t) && !commonInFiles[t]
		}
	}
	return named
}

// commonInFiles are words of files' names that people say of much else. Set once.
var commonInFiles = setOf("go")

// both are words that join what they stand between, or mean all of it. Set once.
var both = setOf("and both und beide beiden et deux y e ambos ambas dos due entrambi entrambe dois duas en beide allebei twee i oba obie dwa dwie и оба обе два две " +
	"та обидва обидві два дві ve iki och båda bada två tva और दोनों दोनो दो و 和 跟 与 俩 两 둘 두 와 과 랑 両 二 と all alle two files")

// plural are words for several files. Set once.
var plural = setOf("files dateien fichiers archivos ficheros arquivos ficheiros bestanden pliki файлы файли dosyalar filerna फाइलें الملفات 文")

// inPhrase tells whether a token is part of a longer phrase: "just this once".
func (h heard) inPhrase(at int) bool {
	return slices.ContainsFunc(languages(), func(l *language) bool {
		return slices.ContainsFunc(h.indexes()[:at+1], func(from int) bool {
			return l.book.longest(h.tokens[from:]) > max(1, at-from)
		})
	})
}
