package consent

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
	"sort"
	"strings"
)

// Bounds of a table.
const (
	blockLength = 16  // phrases in a block; all but the first are written as the difference from the one before
	maxPhrase   = 255 // bytes of a phrase
)

// A table has phrases in order, compressed. Each phrase is the number of bytes that it shares with the phrase before
// it, the length of the rest, the kinds in two bytes, and the rest. The first phrase of a block shares nothing, so that
// a search can begin there. Set once.
type table struct {
	data   []byte
	blocks []uint32 // where each block begins in data
}

// A listing collects the phrases of a language, in any order, with repetitions. It is reused for the next language.
type listing struct {
	text    []byte
	phrases []listed
	data    []byte
	blocks  []uint32
}

// A listed phrase is a part of its listing's text.
type listed struct {
	act      string // "": the phrase is for any question
	from, to uint32
	does     kind
}

func (l *listing) add(act string, phrase []byte, does kind) {
	from := uint32(len(l.text))
	l.text = append(l.text, phrase...)
	l.phrases = append(l.phrases, listed{act, from, uint32(len(l.text)), does})
}

// tables returns the phrases by act, and empties the listing. A phrase that was added more than once has all of its
// kinds.
func (l *listing) tables() map[string]table {
	text := func(p listed) []byte { return l.text[p.from:p.to] }
	slices.SortFunc(l.phrases, func(a, b listed) int {
		return cmp.Or(strings.Compare(a.act, b.act), bytes.Compare(text(a), text(b)))
	})
	out := map[string]table{}
	for i := 0; i < len(l.phrases); {
		act, last := l.phrases[i].act, []byte(nil)
		l.data, l.blocks = l.data[:0], l.blocks[:0]
		for n := 0; i < len(l.phrases) && l.phrases[i].act == act; n++ {
			phrase, does, shared := text(l.phrases[i]), kind(0), 0
			for ; i < len(l.phrases) && l.phrases[i].act == act && bytes.Equal(text(l.phrases[i]), phrase); i++ {
				does |= l.phrases[i].does
			}
			if n%blockLength == 0 {
				l.blocks = append(l.blocks, uint32(len(l.data)))
			} else {
				for shared < min(len(last), len(phrase)) && last[shared] == phrase[shared] {
					shared++
				}
			}
			l.data = append(l.data, byte(shared), byte(len(phrase)-shared))
			l.data = binary.LittleEndian.AppendUint16(l.data, uint16(does))
			l.data = append(l.data, phrase[shared:]...)
			last = phrase
		}
		out[act] = table{bytes.Clone(l.data), slices.Clone(l.blocks)}
	}
	l.text, l.phrases = l.text[:0], l.phrases[:0]
	return out
}

// cut decodes the first phrase of data: the number of bytes that it shares with the one before it, its kinds, its rest,
// and the data after it.
func cut(data []byte) (shared int, does kind, rest, following []byte) {
	end := 4 + int(data[1])
	return int(data[0]), kind(binary.LittleEndian.Uint16(data[2:])), data[4:end], data[end:]
}

// find returns the kinds of a phrase, 0 if it is not in the table, and reports whether a longer phrase begins with it.
func (t table) find(words string) (does kind, more bool) {
	after := sort.Search(len(t.blocks), func(i int) bool {
		_, _, first, _ := cut(t.data[t.blocks[i]:])
		return string(first) > words
	})
	var data []byte
	if len(t.blocks) > 0 {
		data = t.data[t.blocks[max(after-1, 0)]:]
	}
	matched := 0 // bytes that words share with the phrase before, which is not greater
	for len(data) > 0 {
		shared, d, rest, following := cut(data)
		data = following
		switch {
		case shared == 0:
			matched = 0
		case shared > matched:
			continue
		case shared < matched:
			return does, false
		}
		n := 0
		for n < len(rest) && matched < len(words) && rest[n] == words[matched] {
			n, matched = n+1, matched+1
		}
		switch {
		case n == len(rest) && matched == len(words):
			does = d
		case matched == len(words):
			return does, true
		case n < len(rest) && rest[n] > words[matched]:
			return does, false
		}
	}
	return does, false
}
