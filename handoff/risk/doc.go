// Package risk decides how dangerous it is to allow what an agent asks for: a command, an edit, a copy. It reads the
// structured command, never the agent's reasons.
//
// A short list is low or medium, and everything else is high. A command line is parsed as a shell does, and must
// consist of simple commands with literal words (line.go). Each command must fit a row of table.txt (row.go), with
// listed flags and with operands of a listed kind (kinds.go). Each path must have a listed name or ending, and must not
// be hidden (place.go). To allow more, add a row or an ending. To make a command dangerous, remove its row or raise its
// tier.
//
// The tier decides how a question may be answered (package evidence, router/questions.go), and for the agents that we
// run ourselves also whether they ask at all (servers/responses/workspace/gate.go). Other agents decide themselves when
// they ask.
//
// It must not know who is asked or what they said. [WhyNotVoice] says which tier may be allowed by voice.
package risk
