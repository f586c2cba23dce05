package sessions

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"
)

// snapshotVersion is the format below. Another one is refused, never guessed at.
const snapshotVersion = 1

// A snapshot file is two lines of JSON: a header, and the list of keys that the header's sum vouches for.
type snapshotHeader struct {
	Version int    `json:"switchboard_snapshot"`
	Sum     string `json:"sha256"` // of the second line without its line end, hex
}

// A savedKey is one key of the embedded Redis.
type savedKey struct {
	Key     text   `json:"key"`
	Type    string `json:"type"`              // string, hash, list, set or zset
	Expires int64  `json:"expires,omitempty"` // Unix milliseconds; 0 never
	// Values is flat: field, value for a hash; member, score for a zset.
	Values []text `json:"values"`
}

// text is a Redis string: JSON text where it can be, else {"base64": "…"}.
type text string

// MarshalJSON implements [json.Marshaler].
func (t text) MarshalJSON() ([]byte, error) {
	if utf8.ValidString(string(t)) {
		return json.Marshal(string(t))
	}
	return json.Marshal(textBytes{[]byte(t)})
}

// UnmarshalJSON implements [json.Unmarshaler].
func (t *text) UnmarshalJSON(data []byte) error {
	if !bytes.HasPrefix(data, []byte("{")) {
		return json.Unmarshal(data, (*string)(t))
	}
	var raw textBytes
	if err := strict(data, &raw); err != nil {
		return err
	}
	*t = text(raw.Base64)
	return nil
}

type textBytes struct {
	Base64 []byte `json:"base64"`
}

// encodeSnapshot returns the content of a snapshot file.
func encodeSnapshot(keys []savedKey) ([]byte, error) {
	if keys == nil {
		keys = []savedKey{}
	}
	body, err := json.Marshal(keys)
	if err != nil {
		return nil, err
	}
	return withHeader(body), nil
}

// withHeader puts the first line before the second.
func withHeader(body []byte) []byte {
	return fmt.Appendf(nil, `{"switchboard_snapshot":%d,"sha256":"%x"}`+"\n%s\n", snapshotVersion, sha256.Sum256(body), body)
}

// decodeSnapshot reads the content of a snapshot file. It refuses whatever encodeSnapshot would not have
// written.
func decodeSnapshot(data []byte) ([]savedKey, error) {
	head, rest, _ := bytes.Cut(data, []byte("\n"))
	var header snapshotHeader
	if err := strict(head, &header); err != nil {
		return nil, errors.New("it does not begin like a snapshot")
	}
	if header.Version != snapshotVersion {
		return nil, fmt.Errorf("it has version %d and this Switchboard reads version %d", header.Version, snapshotVersion)
	}
	body, after, found := bytes.Cut(rest, []byte("\n"))
	sum := sha256.Sum256(body)
	if !found || len(after) > 0 || hex.EncodeToString(sum[:]) != header.Sum {
		return nil, errors.New("it was cut off or changed")
	}
	var keys []savedKey
	if err := strict(body, &keys); err != nil {
		return nil, fmt.Errorf("its list of keys is wrong: %w", err)
	}
	seen := make(map[text]bool, len(keys))
	for _, k := range keys {
		if seen[k.Key] {
			return nil, fmt.Errorf("it has the key %q twice", k.Key)
		}
		seen[k.Key] = true
		if err := k.check(); err != nil {
			return nil, fmt.Errorf("key %q: %w", k.Key, err)
		}
	}
	return keys, nil
}

// check reports what keeps a key from being restored.
func (k savedKey) check() error {
	n := len(k.Values)
	if n == 0 || k.Expires < 0 {
		return errors.New("it has no values, or an expiry before 1970")
	}
	switch k.Type {
	case "string":
		if n != 1 {
			return errors.New("a string has one value")
		}
	case "list", "set":
	case "hash":
		if n%2 != 0 {
			return errors.New("a field has no value")
		}
	case "zset":
		if n%2 != 0 {
			return errors.New("a member has no score")
		}
		for i := 1; i < n; i += 2 {
			if score, err := strconv.ParseFloat(string(k.Values[i]), 64); err != nil || math.IsNaN(score) {
				return fmt.Errorf("%q is not a score", k.Values[i])
			}
		}
	default:
		return fmt.Errorf("unknown type %q", k.Type)
	}
	return nil
}

// strict decodes one JSON value with no unknown fields and nothing after it.
func strict(data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if d.More() {
		return errors.New("something follows the value")
	}
	return nil
}
