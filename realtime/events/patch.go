package events

import "github.com/tidwall/sjson"

// Set puts raw JSON at a path of an event, and leaves every other byte's meaning alone. Paths are constant.
func Set(event []byte, path, raw string) []byte {
	out, err := sjson.SetRawBytes(event, path, []byte(raw))
	if err != nil { // only for paths that cannot be
		return event
	}
	return out
}

// Remove takes a field out of an event.
func Remove(event []byte, path string) []byte {
	out, err := sjson.DeleteBytes(event, path)
	if err != nil {
		return event
	}
	return out
}

// Quote returns a text as JSON.
func Quote(s string) string { return string(Encode(s)) }
