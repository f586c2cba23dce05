package main

import "github.com/goccy/go-yaml/token"

// maxNesting is how deep the configuration may nest, counted on the safe side. The parser recurses, and takes
// time with the square of the depth; the settings need five levels.
const maxNesting = 64

// tooDeep returns the first token that nests deeper than [maxNesting], before the parser sees any; nil for
// none. In a block a level needs a column more than the one around it, so a line that begins far to the
// right counts as deep. What else nests are open brackets, and dashes, keys, anchors and tags that follow
// one another.
func tooDeep(tokens token.Tokens) *token.Token {
	depth, line := 0, 0
	var around []int // depths around the brackets that are open
	for _, t := range tokens {
		first := t.Position.Line != line
		line = t.Position.Line
		if len(around) == 0 && first {
			depth = 0
		}
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			around = append(around, depth)
			depth++
		case token.SequenceEndType, token.MappingEndType:
			if last := len(around) - 1; last >= 0 {
				depth, around = around[last], around[:last]
			}
		case token.CollectEntryType:
			if last := len(around) - 1; last >= 0 {
				depth = around[last] + 1
			}
		case token.SequenceEntryType, token.MappingKeyType, token.MappingValueType, token.AnchorType, token.TagType:
			depth++
		case token.CommentType:
			continue
		}
		if depth > maxNesting || len(around) == 0 && first && t.Position.Column > maxNesting {
			return t
		}
	}
	return nil
}
