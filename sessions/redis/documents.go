package redis

import (
	"context"
	"errors"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"switchboard/handoff"
	"switchboard/sessions"
)

var documentScript = fenced("document")

// documents stores the documents of fronts.
type documents struct{ *engine }

// PutDocument implements [sessions.Documents].
func (s documents) PutDocument(ctx context.Context, d sessions.Document) error {
	name, list, keyPrefix, err := s.documentKeys(d.Owner)
	if err == nil {
		err = d.Check()
	}
	if err != nil {
		return err
	}
	now := time.Now()
	return s.runFenced(ctx, name, documentScript, []string{list, keyPrefix + d.ID}, d.ID, d.Body,
		max(d.Ends.UnixMilli(), 1), now.UnixMilli(), sessions.MaxDocuments, keyPrefix, now.Add(sessions.Brief).UnixMilli())
}

// Document implements [sessions.Documents].
func (s documents) Document(ctx context.Context, owner handoff.Caller, id string) (sessions.Document, bool, error) {
	_, list, keyPrefix, err := s.documentKeys(owner)
	if err != nil {
		return sessions.Document{}, false, err
	}
	var body *goredis.StringCmd
	var ends *goredis.FloatCmd
	_, err = s.client.Pipelined(ctx, func(p goredis.Pipeliner) error {
		body, ends = p.Get(ctx, keyPrefix+id), p.ZScore(ctx, list, id)
		return nil
	})
	if errors.Is(err, goredis.Nil) {
		return sessions.Document{}, false, nil
	}
	if err != nil {
		return sessions.Document{}, false, s.fault(err)
	}
	d := sessions.Document{Owner: owner, ID: id, Body: []byte(body.Val()), Ends: time.UnixMilli(int64(ends.Val())).UTC()}
	return d, d.Ends.After(time.Now()), nil
}

// DropDocument implements [sessions.Documents].
func (s documents) DropDocument(ctx context.Context, owner handoff.Caller, id string) (bool, error) {
	name, list, keyPrefix, err := s.documentKeys(owner)
	if err != nil {
		return false, err
	}
	var drop change
	drop.do("ZREM", list, id)
	drop.do("DEL", keyPrefix+id)
	n, err := s.write(ctx, name, drop)
	return n > 0, err
}

// documentKeys returns the name of an owner, the key of their list of documents, and the prefix of each document's
// key.
func (s documents) documentKeys(owner handoff.Caller) (name, list, keyPrefix string, err error) {
	name, err = sessions.CallerName(owner)
	return name, s.key(name, "documents"), s.key(name, "document:"), err
}
