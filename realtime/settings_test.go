package realtime

import (
	"testing"

	"github.com/tidwall/gjson"
)

func TestAudioRate(t *testing.T) {
	for format, want := range map[string]int{
		`{"type":"audio/pcm","rate":24000}`: 48, `{"type":"audio/pcm"}`: 48, `{}`: 48, `{"type":"audio/pcm","rate":0}`: 48,
		`{"type":"audio/pcm","rate":16000}`: 32, `{"type":"audio/pcmu"}`: 8, `{"type":"audio/pcma","rate":8000}`: 8,
	} {
		if got := audioRate(gjson.Parse(format)); got != want {
			t.Errorf("%s: %d, want %d", format, got, want)
		}
	}
}
