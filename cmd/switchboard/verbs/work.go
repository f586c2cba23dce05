package verbs

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"switchboard/handoff"
)

// triesToGive is how often work is given whose answer did not arrive. The key sees to it that it begins once.
const triesToGive = 3

// heardWithin bounds how long the end waits for the service to note that the outcome was told.
const heardWithin = 2 * time.Second

// An Order is work to give.
type Order struct {
	Server string // "bigpc", or "bigpc/api" for a project
	Thread string // a name or id of a session, "new", or "" for the one in use there
	Prompt string
	Mode   string // now, next or aside; "" is now
	Key    string // the asker's own name for it, under which it begins once; "": a new one
}

// Give gives work and follows it to its outcome. When ctx ends before, the work goes on, and the error of ctx tells
// so. Where nobody knows whether it began, its key is told: given again with that, it begins once.
func (t *Terminal) Give(ctx context.Context, o Order) (handoff.Outcome, error) {
	body := map[string]string{"server": o.Server, "prompt": o.Prompt, "mode": cmp.Or(o.Mode, "now")}
	if o.Thread != "" {
		body["thread_id"] = o.Thread
	}
	o.Key = cmp.Or(o.Key, rand.Text())
	text, err := t.promise(ctx, body, o.Key)
	var given handoff.Record
	if err == nil {
		if err = json.Unmarshal(text, &given); err != nil {
			err = fmt.Errorf("what answers there is no Switchboard: %w", err)
		}
	}
	if err != nil {
		if !refused(err) {
			_, _ = fmt.Fprintf(t.Err,
				"\nNobody knows whether the work began. Run the same command again with --idempotency-key %s, and it begins "+
					"once.\n", o.Key)
		}
		return "", err
	}
	return t.Follow(ctx, given.ID)
}

// promise asks for work until the service answers, as often as triesToGive.
func (t *Terminal) promise(ctx context.Context, body map[string]string, key string) (text []byte, err error) {
	header := http.Header{"Content-Type": {"application/json"}, "Idempotency-Key": {key}}
	for try := 1; ; try++ {
		text, err = t.call(ctx, http.MethodPost, "/fleet/handoffs", body, header)
		if err == nil || refused(err) || ctx.Err() != nil || try == triesToGive {
			return text, err
		}
		select {
		case <-time.After(againAfter):
		case <-ctx.Done():
			return nil, err
		}
	}
}

// refused reports whether the service itself answered, or what stands before it let nothing through: no work began.
func refused(err error) bool {
	f, answered := errors.AsType[*Fault](err)
	return answered && (f.Code != "" || f.Status < http.StatusInternalServerError)
}

// Follow shows what happens to work, from its beginning to its outcome. Words that went into other work have the
// outcome of that; what failed before anything was begun counts as cancelled.
func (t *Terminal) Follow(ctx context.Context, id string) (handoff.Outcome, error) {
	for {
		record, into, err := t.followOne(ctx, id)
		if fault, answered := errors.AsType[*Fault](err); answered && fault.Code == handoff.CodeNotFound {
			whole, lookErr := t.workID(ctx, id)
			if lookErr == nil && whole != id {
				id = whole
				continue
			}
			err = cmp.Or(lookErr, err)
		}
		switch {
		case err != nil && ctx.Err() != nil:
			_, _ = fmt.Fprintf(t.Err,
				"\nThe work goes on. See it again with `%[1]s handoff --follow %[2]s`, end it with `%[1]s handoff --stop %[2]s`.\n", t.Name, id)
			return "", context.Cause(ctx)
		case err != nil:
			return "", err
		case into == "" && record.Outcome == handoff.OutcomeFailed && record.Error != nil && record.Error.Code.Unbegun():
			return handoff.OutcomeCancelled, nil
		case into == "":
			return record.Outcome, nil
		}
		id = into
	}
}

// followOne shows one piece of work. into is the work that its words went into, "" for none.
func (t *Terminal) followOne(ctx context.Context, id string) (record handoff.Record, into string, err error) {
	shown := newTalk(t.Out, t.Err, t.Name, t.handle)
	away := func(err error) { shown.note("(%v; trying again)", err) }
	path := "/fleet/handoffs/" + url.PathEscape(id)
	for data, err := range t.follow(ctx, path+"/events", away) {
		fault, answered := errors.AsType[*Fault](err)
		// Work of an earlier life of the service is not found here; it is asked for below.
		if err != nil && (!answered || fault.Code != handoff.CodeNotFound) {
			return record, "", err
		}
		var e runLine
		if err != nil || json.Unmarshal(data, &e) != nil {
			continue
		}
		if t.JSON {
			shown.unread = cmp.Or(shown.unread, t.line(data)) // the outcome counts, whoever reads
		} else {
			shown.tell(e)
		}
		into = cmp.Or(e.Into, into)
		if e.Record != nil && e.Record.Outcome != "" && (e.Type == "ended" || e.Type == "snapshot") {
			return t.ended(ctx, shown, *e.Record), into, nil
		}
	}
	if _, err := t.get(ctx, path, &record); err != nil {
		return record, "", err
	}
	if record.Outcome == "" {
		return record, "", fmt.Errorf("the work goes on, and nobody can tell about it from here: see it with `%s handoff "+
			"--follow %s`", t.Name, id)
	}
	return t.ended(ctx, shown, record), into, nil
}

// ended shows the outcome. One that was written whole no call needs to tell.
func (t *Terminal) ended(ctx context.Context, shown *talk, record handoff.Record) handoff.Record {
	if !t.JSON {
		shown.end(record)
	}
	if shown.unread == nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), heardWithin)
		defer cancel()
		// Where this fails it is told again later.
		_, _ = t.call(ctx, http.MethodPost, "/fleet/handoffs/"+url.PathEscape(record.ID)+"/heard", struct{}{}, nil)
	}
	return record
}
