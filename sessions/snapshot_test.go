package sessions

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"
)

// memory opens an embedded store with no directory and returns it.
func memory(t *testing.T) *embedded {
	t.Helper()
	s, err := Open(t.Context(), Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s.keeper.(*embedded)
}

// sorted brings keys into an order that can be compared: neither keys nor the members of a set have one.
func sorted(keys []savedKey) []savedKey {
	for _, k := range keys {
		if k.Type == "set" {
			slices.Sort(k.Values)
		}
	}
	slices.SortFunc(keys, func(a, b savedKey) int { return strings.Compare(string(a.Key), string(b.Key)) })
	return keys
}

// Every type of key survives dump, file and restore, with odd bytes and its life.
func TestSnapshotKeepsEveryType(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		from, to := memory(t), memory(t)
		err := errors.Join(
			from.client.Set(ctx, "string", "caf\xe9\x00\r\n", time.Hour).Err(),
			from.client.Set(ctx, "empty", "", 0).Err(),
			from.client.Set(ctx, "\xff key", `{"base64":"x"}`, 0).Err(),
			from.client.HSet(ctx, "hash", "field", "value", "", "empty field", "日本", "").Err(),
			from.client.PExpire(ctx, "hash", 1500*time.Millisecond).Err(),
			from.client.RPush(ctx, "list", "b", "a", "b", "").Err(),
			from.client.SAdd(ctx, "set", "x", "y", "\x80").Err(),
			from.client.ZAdd(ctx, "zset", redis.Z{Score: 1767225600123.5, Member: "ms"}, redis.Z{Score: math.Inf(1), Member: "last"},
				redis.Z{Score: -0.1, Member: "12"}, redis.Z{Score: 1 << 53, Member: ""}).Err(),
		)
		if err != nil {
			t.Fatal(err)
		}
		keys, err := from.dump()
		if err != nil {
			t.Fatal(err)
		}
		if len(keys) != 7 {
			t.Fatalf("%d keys: %+v", len(keys), keys)
		}
		data, err := encodeSnapshot(keys)
		if err != nil {
			t.Fatal(err)
		}
		decoded, err := decodeSnapshot(data)
		if err != nil {
			t.Fatal(err)
		}
		if err := to.restore(decoded); err != nil {
			t.Fatal(err)
		}
		again, err := to.dump()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(sorted(keys), sorted(again)); diff != "" {
			t.Fatalf("changed on the way (-before +after):\n%s", diff)
		}
		time.Sleep(2 * time.Second)
		if n := to.client.Exists(ctx, "hash", "string", "list").Val(); n != 2 {
			t.Fatalf("%d keys left, want the hash gone and the others there", n)
		}
		restored := memory(t) // a file of two seconds ago: the hash is no longer in it
		if err := restored.restore(decoded); err != nil {
			t.Fatal(err)
		}
		if n := restored.client.Exists(ctx, "hash", "string").Val(); n != 1 {
			t.Fatalf("%d keys restored of hash and string, want the string", n)
		}
	})
}

// What the snapshot cannot keep is an error that names the key, not a silent loss.
func TestSnapshotRefusesOtherTypes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memory(t)
		if err := e.client.XAdd(t.Context(), &redis.XAddArgs{Stream: "feed", Values: []string{"a", "b"}}).Err(); err != nil {
			t.Fatal(err)
		}
		if _, err := e.dump(); err == nil || !strings.Contains(err.Error(), "feed") {
			t.Fatalf("dump: %v", err)
		}
	})
}

func TestDecodeSnapshotRefuses(t *testing.T) {
	for name, keys := range map[string][]savedKey{
		"twice":         {{Key: "a", Type: "string", Values: []text{"1"}}, {Key: "a", Type: "string", Values: []text{"2"}}},
		"no values":     {{Key: "a", Type: "hash"}},
		"odd hash":      {{Key: "a", Type: "hash", Values: []text{"field"}}},
		"odd zset":      {{Key: "a", Type: "zset", Values: []text{"member"}}},
		"no score":      {{Key: "a", Type: "zset", Values: []text{"member", "x"}}},
		"nan":           {{Key: "a", Type: "zset", Values: []text{"member", "nan"}}},
		"two strings":   {{Key: "a", Type: "string", Values: []text{"1", "2"}}},
		"unknown type":  {{Key: "a", Type: "stream", Values: []text{"1", "2"}}},
		"negative life": {{Key: "a", Type: "string", Values: []text{"1"}, Expires: -1}},
	} {
		t.Run(name, func(t *testing.T) {
			data, err := encodeSnapshot(keys)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := decodeSnapshot(data); err == nil {
				t.Fatalf("accepted: %+v", got)
			}
		})
	}
	data, err := encodeSnapshot(nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := decodeSnapshot(data); err != nil || len(got) != 0 {
		t.Fatalf("a store without keys: %+v, %v", got, err)
	}
}

// The reader of snapshots takes any bytes: it refuses them, or what it reads can be restored and is
// written again the same. The fuzzer does not know the sum, so it fuzzes the second line.
func FuzzSnapshot(f *testing.F) {
	f.Add([]byte(`[{"key":"a","type":"hash","expires":4102444800000,"values":["f","v"]}]`), true)
	f.Add([]byte(`[{"key":{"base64":"/w=="},"type":"zset","values":["m","1.5"]}]`), true)
	f.Add([]byte(`[{"key":"a","type":"zset","values":["m","0x1p4"]}]`), true)
	f.Add([]byte(`{"switchboard_snapshot":1,"sha256":""}`), false)
	f.Fuzz(func(t *testing.T, data []byte, wrap bool) {
		if wrap {
			data = withHeader(data)
		}
		keys, err := decodeSnapshot(data)
		if err != nil {
			return
		}
		again, err := encodeSnapshot(keys)
		if err != nil {
			t.Fatalf("encode what was read: %v", err)
		}
		if got, err := decodeSnapshot(again); err != nil || !cmp.Equal(keys, got) {
			t.Fatalf("read again: %v\n%s", err, cmp.Diff(keys, got))
		}
		if err := memory(t).restore(keys); err != nil {
			t.Fatalf("restore %+v: %v", keys, err)
		}
	})
}
