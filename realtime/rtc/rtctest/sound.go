package rtctest

import (
	"bytes"
	"encoding/base64"
)

// Sound is a model's delta of µ-law with a length in milliseconds, all of one byte.
func Sound(response, item string, ms int, value byte) string {
	audio := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{value}, ms*FrameBytes/20))
	return `{"type":"response.output_audio.delta","response_id":"` + response + `","item_id":"` + item + `","output_index":0,"content_index":0,"delta":"` + audio + `"}`
}
