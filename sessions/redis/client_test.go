package redis

import (
	"errors"
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"switchboard/handoff"
)

// A replyError is an error reply of a Redis.
type replyError string

func (e replyError) Error() string { return string(e) }
func (replyError) RedisError()     {}

var _ goredis.Error = replyError("")

// Refusals from the state of a Redis may pass; those about one key do not. The older words are those of version 6,
// which has them within the error of the script.
func TestRefusalsThatPass(t *testing.T) {
	script := "ERR Error running script (call to f_0f3c): @user_script:54: @user_script: 54: "
	for text, want := range map[string]handoff.Code{
		"LOADING Redis is loading the dataset in memory":                               handoff.CodeUnreachable,
		"READONLY You can't write against a read only replica. script: 7b, on @:54.":   handoff.CodeUnreachable,
		script + "-READONLY You can't write against a read only replica.":              handoff.CodeUnreachable,
		"MISCONF Redis is configured to save RDB snapshots, but it's currently unable": handoff.CodeUnreachable,
		script + "-OOM command not allowed when used memory > 'maxmemory'.":            handoff.CodeUnreachable,
		"BUSY Redis is busy running a script. You can only call SCRIPT KILL":           handoff.CodeUnreachable,
		"ERR max number of clients reached":                                            handoff.CodeUnreachable,
		"NOAUTH Authentication required.":                                              handoff.CodeUnreachable,
		"WRONGTYPE Operation against a key holding the wrong kind of value":            handoff.CodeInternal,
		script + "WRONGTYPE Operation against a key holding the wrong kind of value":   handoff.CodeInternal,
		"ERR wrong number of arguments: OOM ":                                          handoff.CodeInternal,
		"BUSYKEY Target key name already exists.":                                      handoff.CodeInternal,
	} {
		s := &engine{where: "Redis"}
		if err := s.fault(replyError(text)); handoff.CodeOf(err) != want {
			t.Errorf("%q gives %v, want %s", text, err, want)
		}
	}
}

// TestNewest: which Redis counts is said by the newest failover that a Sentinel knows, if more than half answer.
func TestNewest(t *testing.T) {
	former, next, gone := view{at: "a", epoch: 3}, view{at: "b", epoch: 4}, view{err: errors.New("gone")}
	deciding := view{at: "a", epoch: 3, deciding: true}
	for _, c := range []struct {
		all  []view
		want string // "": none is agreed on
	}{
		{[]view{former, former, former}, "a"},
		{[]view{former, former, next}, "b"},
		{[]view{next, former, gone}, "b"},
		{[]view{former, deciding, former}, ""},
		{[]view{deciding, former, next}, "b"}, // that one is over
		{[]view{next, gone, gone}, ""},
		{[]view{next}, ""}, // the others have not answered in time
	} {
		if at, err := newest(c.all, 3); at != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%+v: %q, %v", c.all, at, err)
		}
	}
}
