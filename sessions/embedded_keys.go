package sessions

import (
	"bufio"
	"bytes"
	"fmt"
	"strconv"
	"time"

	"github.com/alicebob/miniredis/v2/server"
)

// readers are the commands that read a key of each type that a snapshot can keep, before and after the
// key's name.
var readers = map[string]struct {
	command string
	rest    []string
}{
	"string": {"GET", nil},
	"hash":   {"HGETALL", nil},
	"list":   {"LRANGE", []string{"0", "-1"}},
	"set":    {"SMEMBERS", nil},
	"zset":   {"ZRANGE", []string{"0", "-1", "WITHSCORES"}},
}

// dump reads every key, each of one moment. While it reads, others are served: keys that belong together
// may be of moments that are as far apart as the dump takes. That loses no more than a process that is
// killed then would lose anyway, because a change during the dump brings another one.
func (e *embedded) dump() ([]savedKey, error) {
	e.age()
	db := e.server.DB(0)
	names := db.Keys()
	keys := make([]savedKey, 0, len(names))
	for _, name := range names {
		kind := db.Type(name)
		if kind == "" { // it has expired meanwhile
			continue
		}
		read, ok := readers[kind]
		if !ok {
			return nil, fmt.Errorf("cannot keep %q of type %s", name, kind)
		}
		values, err := e.ask(append([]string{read.command, name}, read.rest...)...)
		if err != nil {
			return nil, fmt.Errorf("read %q: %w", name, err)
		}
		if len(values) == 0 {
			continue
		}
		k := savedKey{Key: text(name), Type: kind, Values: values}
		if ttl := db.TTL(name); ttl > 0 {
			k.Expires = time.Now().Add(ttl).UnixMilli()
		}
		keys = append(keys, k)
	}
	return keys, nil
}

// ask gives a command to the server without a connection. It returns the strings of the answer, none for
// what is not there.
func (e *embedded) ask(command ...string) ([]text, error) {
	var answer bytes.Buffer
	peer := server.NewPeer(bufio.NewWriter(&answer))
	e.server.Server().Dispatch(peer, command)
	peer.Flush()
	reply, err := server.ParseReply(bufio.NewReader(&answer))
	if err != nil {
		return nil, err
	}
	rows, isList := reply.([]any)
	if !isList && reply != nil {
		rows = []any{reply}
	}
	values := make([]text, len(rows))
	for i, row := range rows {
		value, ok := row.(string)
		if !ok {
			return nil, fmt.Errorf("unexpected answer %T", row)
		}
		values[i] = text(value)
	}
	return values, nil
}

// restore writes checked keys into an empty Redis. Those that have expired meanwhile are left out.
func (e *embedded) restore(keys []savedKey) error {
	db := e.server.DB(0)
	now := time.Now()
	for _, k := range keys {
		if k.Expires != 0 && k.Expires <= now.UnixMilli() {
			continue
		}
		name, values := string(k.Key), make([]string, len(k.Values))
		for i, v := range k.Values {
			values[i] = string(v)
		}
		var err error
		switch k.Type {
		case "string":
			err = db.Set(name, values[0])
		case "hash":
			db.HSet(name, values...)
		case "list":
			_, err = db.Push(name, values...)
		case "set":
			_, err = db.SetAdd(name, values...)
		case "zset":
			for i := 0; i < len(values) && err == nil; i += 2 {
				score, _ := strconv.ParseFloat(values[i+1], 64) // checked
				_, err = db.ZAdd(name, score, values[i])
			}
		}
		if err != nil {
			return fmt.Errorf("key %q: %w", name, err)
		}
		if k.Expires != 0 {
			db.SetTTL(name, time.UnixMilli(k.Expires).Sub(now))
		}
	}
	return nil
}
