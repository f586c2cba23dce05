package push

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	webpush "github.com/SherClockHolmes/webpush-go"
	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/sessions"
)

// Kinds and names of records in the store: one record has the keys; each subscription is named by a hash of its
// address.
const (
	keysKind, keysName = "push keys", "vapid"
	subscribedKind     = "push"
)

// oldFileName is the file in the state directory in which earlier versions stored both.
const oldFileName = "push.json"

// keys sign the messages. They are made at the first start, and must stay the same: subscriptions are bound to them.
type keys struct {
	Private string `json:"private"`
	Public  string `json:"public"`
}

// A subscription is a subscription of a browser, as it is stored.
type subscription struct {
	Caller handoff.Caller       `json:"caller"`
	Login  string               `json:"login"` // id of the login that made it, and with which it ends
	To     webpush.Subscription `json:"to"`
	Made   time.Time            `json:"made,omitzero"`
	Wishes handoff.Wishes       `json:"wishes,omitzero"`

	read sessions.Record // as it was read, for [Sender.drop]
}

// oldFile is the content of [oldFileName].
type oldFile struct {
	keys
	Subscriptions []subscription `json:"subscriptions"`
}

// load reads the keys from the store, or makes them. It first moves the file of an earlier version into the store.
func (s *Sender) load(ctx context.Context) error {
	root, err := os.OpenRoot(s.cfg.Dir)
	if err != nil {
		return fmt.Errorf("open the state directory: %w", err)
	}
	defer func() { _ = root.Close() }() // nothing is buffered
	old, err := readOldFile(root)
	if err != nil {
		return err
	}
	mine := old.keys
	if mine.Private == "" {
		if mine.Private, mine.Public, err = webpush.GenerateVAPIDKeys(); err != nil {
			return fmt.Errorf("make the keys of notifications: %w", err)
		}
	}
	one, err := s.cfg.Store.KeepRecord(ctx,
		sessions.Record{Kind: keysKind, Name: keysName, Body: []byte(handoff.Encode(mine))})
	if err == nil {
		err = json.Unmarshal(one.Body, &s.keys)
	}
	if err != nil {
		return fmt.Errorf("read the keys of notifications: %w", err)
	}
	if old.Private == "" {
		return nil
	}
	if s.keys != old.keys { // another instance stored its keys first, and these subscriptions do not work with them
		s.cfg.Log.Warn("browsers have to ask for notifications again: another instance's keys sign them",
			zap.Int("browsers", len(old.Subscriptions)))
		return root.Remove(oldFileName)
	}
	for _, k := range old.Subscriptions {
		if err := s.put(ctx, k); err != nil {
			return fmt.Errorf("keep who is notified: %w", err)
		}
	}
	return root.Remove(oldFileName)
}

// readOldFile reads the file of an earlier version. Without one it returns the zero value.
func readOldFile(root *os.Root) (old oldFile, err error) {
	text, err := root.ReadFile(oldFileName)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return oldFile{}, nil
	case err != nil:
		return oldFile{}, fmt.Errorf("read the keys of notifications: %w", err)
	}
	if err := json.Unmarshal(text, &old); err != nil || old.Private == "" || old.Public == "" {
		return oldFile{}, fmt.Errorf("%s in the state directory cannot be read: move it away to begin with nobody subscribed",
			oldFileName)
	}
	return old, nil
}

// put stores a subscription.
func (s *Sender) put(ctx context.Context, k subscription) error {
	return s.cfg.Store.PutRecord(ctx, sessions.Record{Kind: subscribedKind, Name: nameOf(k.To.Endpoint),
		Body: []byte(handoff.Encode(k))})
}

// nameOf returns the name of a subscription's record: a hash, because the address is a secret.
func nameOf(endpoint string) string {
	sum := sha256.Sum256([]byte(endpoint))
	return hex.EncodeToString(sum[:16])
}

// subscriptions returns all subscriptions, oldest first. It logs and leaves out records that cannot be read.
func (s *Sender) subscriptions(ctx context.Context) ([]subscription, error) {
	records, err := s.cfg.Store.Records(ctx, subscribedKind)
	if err != nil {
		return nil, err
	}
	all := make([]subscription, 0, len(records))
	for _, r := range records {
		var k subscription
		if err := json.Unmarshal(r.Body, &k); err != nil {
			s.cfg.Log.Warn("a subscription cannot be read", zap.Error(err))
			continue
		}
		k.read = r
		all = append(all, k)
	}
	slices.SortStableFunc(all, func(a, b subscription) int { return a.Made.Compare(b.Made) })
	s.subscribed.Store(int64(len(all)))
	return all, nil
}
