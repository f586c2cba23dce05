package servers

import "testing"

// TestLongFrame: the head of a frame that was left out says which request it is, or answers.
func TestLongFrame(t *testing.T) {
	for head, want := range map[string][3]string{
		`{"jsonrpc":"2.0","id":7,"result":{"a":"`:                 {"7", "", ""},
		` { "id" : 7 , "error" : {`:                               {"7", "", ""},
		`{"id":7,"jsonrpc":"2.0","result":[[[`:                    {"7", "", ""},
		`{"jsonrpc":"2.0","id":7,"method":"ask","params":{"a":"x`: {"", "7", "ask"},
		`{"method":"ask","id":"a-7","params":{"a":"x`:             {"", `"a-7"`, "ask"},
		`{"jsonrpc":"2.0","method":"tell","params":{"id":7`:       {"", "", "tell"},
		`{"jsonrpc":"2.0","method":"tell","params":`:              {"", "", "tell"},
		`{"id":7`:            {"", "", ""},
		`{"params":{"id":7,`: {"", "", ""},
		`[[[[[`:              {"", "", ""},
		``:                   {"", "", ""},
	} {
		e := &LongFrame{Head: []byte(head)}
		id, method := e.Asks()
		if got := [3]string{string(e.Answers()), string(id), method}; got != want {
			t.Errorf("%s: %q, want %q", head, got, want)
		}
	}
}
