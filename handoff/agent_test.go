package handoff

import "testing"

func TestInputText(t *testing.T) {
	for _, c := range []struct {
		input []Part
		want  string
	}{
		{nil, ""},
		{TextInput("go on"), "go on"},
		{[]Part{Text("look"), Image{URL: "data:image/png;base64,AA=="}, Text("at this")}, "look\nat this"},
	} {
		if got := InputText(c.input); got != c.want {
			t.Errorf("%v reads %q, want %q", c.input, got, c.want)
		}
	}
}
