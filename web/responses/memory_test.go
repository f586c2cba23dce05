package responses

import (
	"encoding/json"
	"runtime"
	"strings"
	"testing"

	"switchboard/handoff"
)

// A picture that fills most of a body is read with one copy, which is what the agent is given, and is not kept with the
// response.
func TestInputIsNotCopied(t *testing.T) {
	url := "data:image/png;base64," + strings.Repeat("A", 1<<20)
	body := []byte(`{"model":"bigpc","input":[{"role":"user","content":[{"type":"input_text","text":"what is it?"},{"type":"input_image","image_url":"` + url + `"}]}]}`)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	req, f := readRequest(body)
	runtime.ReadMemStats(&after)
	if f != nil {
		t.Fatal(f.Message)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > uint64(len(body))*3/2 {
		t.Errorf("reading a body of %d bytes took %d bytes", len(body), took)
	}
	if picture, is := req.input.parts[1].(handoff.Image); !is || picture.URL != url {
		t.Errorf("the agent is given %T", req.input.parts[1])
	}
	kept := req.input.kept("resp_1")
	var it struct {
		Content []struct {
			Text     string
			ImageURL *string `json:"image_url"`
		}
	}
	if err := json.Unmarshal(kept[0], &it); err != nil || len(kept[0]) > 1<<10 || it.Content[0].Text != "what is it?" || it.Content[1].ImageURL != nil {
		t.Errorf("kept %.300s, %v", kept[0], err)
	}
	if picture := req.input.parts[1].(handoff.Image); picture.URL != url {
		t.Error("what the agent is given was cut, too")
	}
}

// A small picture is kept, also after a large one, and of items that the agent knows only as much as is bounded. Words
// get no picture.
func TestKeptInput(t *testing.T) {
	small := "data:image/png;base64,AAAA"
	picture := `{"type":"input_image","image_url":"data:image/png;base64,` + strings.Repeat("A", maxContext) + `"}`
	large := `{"type":"mcp_call","id":"m1","name":"shell","output":"` + strings.Repeat("x", maxContext) + `"}`
	req, f := readRequest([]byte(`{"model":"bigpc","input":[` + large + `,{"id":"m1","role":"user","content":[` + picture +
		`,{"type":"input_text","text":"both"},{"type":"input_image","image_url":"` + small + `"}]}]}`))
	if f != nil {
		t.Fatal(f.Message)
	}
	kept := req.input.kept("resp_1")
	if got := string(kept[0]); got != `{"id":"m1","type":"mcp_call"}` {
		t.Errorf("the large item is %.200s", got)
	}
	if !strings.Contains(string(kept[1]), `"id":"in_1_1"`) {
		t.Errorf("two items have the same id: %.300s", kept[1])
	}
	if n := strings.Count(string(kept[1]), "image_url"); !strings.Contains(string(kept[1]), small) || n != 2 {
		t.Errorf("kept are %.300s", kept[1])
	}
}
