package servers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"
)

// A Wire moves whole frames between a kind and an agent server. Read returns a [*LongFrame] as the error for a frame
// that it left out. Read and Write may run at the same time, and Close at any time. Close ends both, and returns when
// the resources of the wire are free.
type Wire interface {
	Read() ([]byte, error)
	Write(frame []byte) error
	Close() error
}

const (
	// MaxFrame is the largest frame that is sent or received, in bytes.
	MaxFrame = 16 << 20
	// LongHead is how much of the beginning of a long frame is kept, in bytes: enough for the id of its request.
	LongHead = 256
	LeftOut  = "_switchboard/left_out" // the method by which a gate says that it left out a frame that answers nothing
)

// ErrLongFrame is the cause for leaving out a frame that is longer than [MaxFrame].
var ErrLongFrame = errors.New("answer longer than 16 MiB")

// A LongFrame is a frame that was left out, except for its head.
type LongFrame struct {
	Head  []byte // at most LongHead bytes
	Size  int    // in bytes
	Cause error  // the error for its request
}

// Answers returns the id of the JSON-RPC request that the frame answers; nil: it is no response, or the id is not in
// the head.
func (e *LongFrame) Answers() json.RawMessage {
	if id, _, then := e.begins(); then == "result" || then == "error" {
		return id
	}
	return nil
}

// Asks returns the id and the method of the frame, if it is a JSON-RPC request with both in its head; else nil.
func (e *LongFrame) Asks() (id json.RawMessage, method string) {
	if id, method, _ = e.begins(); method == "" {
		return nil, ""
	}
	return id, method
}

// begins reads the members at the beginning of the frame, up to the one then, which may be long.
func (e *LongFrame) begins() (id json.RawMessage, method, then string) {
	d := json.NewDecoder(bytes.NewReader(e.Head))
	_, err := d.Token()
	for err == nil {
		key, _ := d.Token()
		then, _ = key.(string)
		switch then {
		case "jsonrpc":
			_, err = d.Token()
		case "id":
			err = d.Decode(&id)
		case "method":
			err = d.Decode(&method)
		default:
			return id, method, then
		}
	}
	return nil, "", ""
}

// Error implements error.
func (e *LongFrame) Error() string { return fmt.Sprintf("frame of %d bytes", e.Size) }

// A Transport is a way to reach agent servers that several kinds can use. cmd registers the transports.
type Transport struct {
	Row string     // the setting that chooses it, such as "url"
	New func() Way // returns the empty settings of one server: a pointer to a struct, as in [Settings]
	// Takes returns the value of Row for an address that a person adds; false: it cannot. nil: it takes no address.
	Takes func(address string) (value string, ok bool)
}

// Taking returns the [Kind.Takes] of a kind with these transports. runs reports whether a command starts an agent of
// the kind.
func Taking(transports []Transport, runs func(command []string) bool) func(words []string, chosen bool) []Row {
	return func(words []string, chosen bool) []Row {
		for _, t := range transports {
			if t.Takes == nil {
				continue
			}
			value, ok := t.Takes(words[0])
			switch there := words[1:]; {
			case ok && len(there) == 0:
				return []Row{{Name: t.Row, Text: value}}
			case ok && rowsOf(t.New())[commandRow]:
				return []Row{{Name: t.Row, Text: value}, {Name: commandRow, List: there}}
			case ok:
				return nil
			}
		}
		isCommand := func(t Transport) bool { return t.Row == commandRow }
		if slices.ContainsFunc(transports, isCommand) && !strings.Contains(words[0], "://") && (chosen || runs(words)) {
			return []Row{{Name: commandRow, List: words}}
		}
		return nil
	}
}

// commandRow is the setting with the command of an agent.
const commandRow = "command"

// FromLine returns the settings of the transport of machines that joined; nil: it is not one of these.
func FromLine(transports []Transport) Way {
	i := slices.IndexFunc(transports, func(t Transport) bool { return t.Row == "joined" })
	if i < 0 {
		return nil
	}
	return transports[i].New()
}

// A Way is the transport of one server, with its settings.
type Way interface {
	// Check reports what is wrong in the settings, and completes them.
	Check(to Report, files Files)
	// Describe sets the fields of a spec that follow from the settings: Host, Remote, Joined, Program, EndsWithUs,
	// Credential and About.Address.
	Describe(s *Spec)
	// Open connects. Its errors are [*handoff.Error].
	Open(ctx context.Context, end End) (Wire, error)
}

// An End is what a transport has to know about the server and the connection.
type End struct {
	Server string           // its name in the fleet, for errors
	Dir    string           // the directory that its program is started in; "" is ours
	Passes []string         // variables of ours that its program gets besides the usual; "NAME*" is a prefix
	Grace  time.Duration    // how long its program may take to end after the end of its input; 0: 2 s
	Died   func(how string) // called when its program has ended by itself; may be nil
	Apart  bool             // the connection only reads, beside the one that works, and ends soon
	Log    *zap.Logger      // nil: none
}

// Ways are the transports that a kind offers to one server. The configuration chooses one of them.
type Ways []offered

type offered struct {
	row string
	way Way
}

// NewWays returns empty settings for each transport.
func NewWays(all []Transport) Ways {
	var ways Ways
	for _, t := range all {
		ways = append(ways, offered{t.Row, t.New()})
	}
	return ways
}

// Rows returns the structs that the configuration is decoded into.
func (w Ways) Rows() []any {
	var all []any
	for _, o := range w {
		all = append(all, o.way)
	}
	return all
}

// Choose checks and returns the transport whose row is set. If there is not exactly one, it reports that and returns
// nil. It also reports settings that belong to another transport.
func (w Ways) Choose(to Report, files Files) Way {
	var names []string
	var chosen []offered
	for _, o := range w {
		names = append(names, o.row)
		if to.IsSet(o.row) {
			chosen = append(chosen, o)
		}
	}
	// A row that is also a setting of another chosen transport belongs to that one.
	chosen = slices.DeleteFunc(slices.Clone(chosen), func(o offered) bool {
		return slices.ContainsFunc(chosen, func(other offered) bool { return other.row != o.row && rowsOf(other.way)[o.row] })
	})
	if len(chosen) != 1 {
		if len(names) == 1 {
			to.Bad("", "needs a %s", names[0])
			return nil
		}
		last := max(len(names)-1, 0)
		to.Bad("", "needs one of %s",
			strings.Join(append([]string{strings.Join(names[:last], ", ")}, names[last:]...), " and "))
		return nil
	}
	way := chosen[0].way
	own := rowsOf(way)
	for _, o := range w {
		for row := range rowsOf(o.way) {
			switch {
			case own[row] || !to.IsSet(row):
			case own[o.row]:
				to.Bad(row, "does not go with %s", chosen[0].row)
			default:
				to.Bad(row, "goes with %s only", o.row)
			}
		}
	}
	way.Check(to, files)
	return way
}

// rowsOf returns the names of the settings in a struct.
func rowsOf(part any) map[string]bool {
	rows := map[string]bool{}
	for field := range reflect.TypeOf(part).Elem().Fields() {
		if row := field.Tag.Get("yaml"); row != "-" && row != "" {
			rows[row] = true
		}
	}
	return rows
}
