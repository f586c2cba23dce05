package servers

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"
)

// A Wire moves whole frames between a kind and an agent server. Read gives a [*LongFrame] for one that it left out.
// Read and Write may run at the same time, Close at any time; Close ends both and returns when nothing of the wire is
// left.
type Wire interface {
	Read() ([]byte, error)
	Write(frame []byte) error
	Close() error
}

const (
	// MaxFrame is the largest frame that is sent or taken, in bytes.
	MaxFrame = 16 << 20
	// LongHead is how much is kept of a frame that is left out, in bytes: enough to see which request it answers.
	LongHead = 256
)

// ErrLongFrame is why a frame is left out that is longer than [MaxFrame].
var ErrLongFrame = errors.New("answer longer than 16 MiB")

// A LongFrame is a frame that was left out, but for its head.
type LongFrame struct {
	Head  []byte // at most LongHead bytes
	Size  int    // in bytes
	Cause error  // what its request is told
}

// answers matches the head of a response of JSON-RPC.
var answers = regexp.MustCompile(`^\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*([0-9]+)\s*,\s*"(?:result|error)"`)

// Answers returns the id of the request of JSON-RPC that the frame answers; nil: it can be seen of none.
func (e *LongFrame) Answers() []byte {
	if found := answers.FindSubmatch(e.Head); found != nil {
		return found[1]
	}
	return nil
}

// Error implements error.
func (e *LongFrame) Error() string { return fmt.Sprintf("frame of %d bytes", e.Size) }

// A Transport is a way to reach agent servers, which kinds share. Each is a value that whoever wires the program
// registers.
type Transport struct {
	Row string     // the setting that chooses it, such as "url"
	New func() Way // returns the empty settings of one server: a pointer to a struct, as in [Settings]
	// Takes returns what its row is set to for an address to add; false: it is none of this transport. nil: it takes
	// none.
	Takes func(address string) (value string, ok bool)
}

// Taking returns the [Kind.Takes] of a kind with these transports.
func Taking(transports []Transport) func(address string) (row, value string, ok bool) {
	return func(address string) (row, value string, ok bool) {
		for _, t := range transports {
			if t.Takes != nil {
				if value, ok := t.Takes(address); ok {
					return t.Row, value, true
				}
			}
		}
		return "", "", false
	}
}

// A Way is the transport of one server, with its settings.
type Way interface {
	// Check reports what is wrong in its settings, and completes them.
	Check(to Report, files Files)
	// Describe fills in what follows from them: Host, Remote, Program, EndsWithUs, Credential and About.Address.
	Describe(s *Spec)
	// Open connects. Its errors are [*handoff.Error].
	Open(ctx context.Context, end End) (Wire, error)
}

// An End is what a kind tells a transport about the far end.
type End struct {
	Server string           // its name in the fleet, for errors
	Dir    string           // where its program is started; "" is our directory
	Passes []string         // variables of ours that its program gets besides the usual; "NAME*" is a beginning
	Grace  time.Duration    // how long its program may take to end by itself once its input has ended; 0: 2 s
	Died   func(how string) // called when its program ended by itself; may be nil
	Apart  bool             // a connection beside the one that works, which only reads and ends soon
	Log    *zap.Logger      // nil: none
}

// Ways are the transports that a kind offers to one server. The file chooses one of them.
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

// Rows are the structs that the file is decoded into.
func (w Ways) Rows() []any {
	var all []any
	for _, o := range w {
		all = append(all, o.way)
	}
	return all
}

// Choose returns the transport whose row is set, checked. When that is not exactly one it reports that, and returns
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
