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

// triesToGive is how often the request for work is sent if no answer arrives. Its idempotency key makes the work begin
// once.
const triesToGive = 3

// heardWithin bounds how long a verb tries at its end to report that the outcome was seen.
const heardWithin = 2 * time.Second

// An Order is work to give.
type Order struct {
	Server string // "bigpc", or "bigpc/api" for a project
	Thread string // a name or id of a session, "new", or "" for the one in use there
	Prompt string
	Mode   string // now, next or aside; "" is now
	Key    string // the idempotency key, under which the work begins once; "": a random one
}

// Give gives work and follows it to its outcome. If ctx ends earlier, the work goes on, and Give returns the error of
// ctx. If it is unknown whether the work began, Give prints the idempotency key with which the work can be given again.
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

// promise sends the request for work until the service answers, at most triesToGive times.
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

// refused reports whether an error means that no work began: the service itself refused it, or a proxy before it did.
func refused(err error) bool {
	f, answered := errors.AsType[*Fault](err)
	return answered && (f.Code != "" || f.Status < http.StatusInternalServerError)
}

// Follow prints work from its beginning to its outcome. If the words of the work went into other work, it goes on with
// that. Work that failed before it began counts as cancelled.
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

// followOne prints one piece of work. into is the id of the work that its words went into, or "".
func (t *Terminal) followOne(ctx context.Context, id string) (record handoff.Record, into string, err error) {
	shown := newTalk(t.Out, t.Err, t.Name, t.command)
	shown.live = t.Live
	away := func(err error) { shown.note("(%v; trying again)", err) }
	path := "/fleet/handoffs/" + url.PathEscape(id)
	for data, err := range t.follow(ctx, path+"/events", away) {
		fault, answered := errors.AsType[*Fault](err)
		// There are no events for work of an earlier process of the service; its record is read below.
		if err != nil && (!answered || fault.Code != handoff.CodeNotFound) {
			return record, "", err
		}
		var e runLine
		if err != nil || json.Unmarshal(data, &e) != nil {
			continue
		}
		if t.JSON {
			shown.writeErr = cmp.Or(shown.writeErr, t.line(data)) // go on for the outcome
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

// ended prints the outcome. If everything was written, it reports the outcome as heard, so that no call tells it again.
func (t *Terminal) ended(ctx context.Context, shown *talk, record handoff.Record) handoff.Record {
	if !t.JSON {
		shown.end(record)
	}
	if shown.writeErr == nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), heardWithin)
		defer cancel()
		// If this fails, the next call tells the outcome again.
		_, _ = t.call(ctx, http.MethodPost, "/fleet/handoffs/"+url.PathEscape(record.ID)+"/heard", struct{}{}, nil)
	}
	return record
}
