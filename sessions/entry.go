package sessions

import (
	"strings"
	"time"

	"switchboard/handoff/ledger"
)

// EntryNames are the names of the stored fields of an entry, in the order of [EntryFields].
var EntryNames = strings.Fields("key principal user owner args status inherited attempt call client server project " +
	"thread watermark turn prompt title why outcome code spoken accepted ended tests unkept asker parent giver")

// EntryFields appends pointers to the fields of an entry: each a *string, *int, *bool or *[time.Time].
func EntryFields(to []any, e *ledger.Entry) []any {
	return append(to,
		&e.Key, &e.Caller.Principal, &e.Caller.User, &e.Owner, &e.Args, (*string)(&e.Status), &e.Inherited, &e.Attempt,
		&e.Print, &e.ClientID, &e.Target.Server, &e.Target.Project, &e.Target.Thread,
		(*string)(&e.Watermark), (*string)(&e.Turn), &e.Prompt, &e.Title, &e.Why, (*string)(&e.Outcome),
		(*string)(&e.Code), &e.Spoken, &e.Accepted, &e.Ended, (*string)(&e.Tests), &e.Unkept, &e.Asker,
		(*string)(&e.Parent), &e.Giver,
	)
}

// GoodEntry reports whether an entry that was read from a store has all required fields.
func GoodEntry(e ledger.Entry) bool {
	return e.Key != "" && e.Owner != "" && e.Caller.Principal != "" && e.Status != "" && !e.Accepted.IsZero()
}

// EntryTime returns the time of Unix milliseconds, as entries have it.
func EntryTime(ms int64) time.Time { return time.UnixMilli(ms).UTC() }
