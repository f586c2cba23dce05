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

// The records of the store: the keys that sign, which is one, and each subscription by the sum of its address.
const (
	keysKind, keysName = "push keys", "vapid"
	subscribedKind     = "push"
)

// formerFile is where earlier versions had both, in the state directory.
const formerFile = "push.json"

// keys sign what is sent, for as long as there are subscriptions made with them: at the first start they are made.
type keys struct {
	Private string `json:"private"`
	Public  string `json:"public"`
}

// A kept is a subscription as it is kept.
type kept struct {
	Caller handoff.Caller       `json:"caller"`
	Login  string               `json:"login"` // that made it; it ends with that
	To     webpush.Subscription `json:"to"`
	Made   time.Time            `json:"made,omitzero"`
}

// former is what an earlier version kept in its file.
type former struct {
	keys
	Subscriptions []kept `json:"subscriptions"`
}

// load reads the keys of the installation from the store, or makes them; what an earlier version had in its file goes
// there first.
func (s *Sender) load(ctx context.Context) error {
	root, err := os.OpenRoot(s.cfg.Dir)
	if err != nil {
		return fmt.Errorf("open the state directory: %w", err)
	}
	defer func() { _ = root.Close() }() // nothing is buffered
	was, err := readFormer(root)
	if err != nil {
		return err
	}
	mine := was.keys
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
	if was.Private == "" {
		return nil
	}
	if s.keys != was.keys { // another instance was first, and its keys do not open these
		s.cfg.Log.Warn("browsers have to ask for notifications again: another instance's keys sign them",
			zap.Int("browsers", len(was.Subscriptions)))
		return root.Remove(formerFile)
	}
	for _, k := range was.Subscriptions {
		if err := s.put(ctx, k); err != nil {
			return fmt.Errorf("keep who is notified: %w", err)
		}
	}
	return root.Remove(formerFile)
}

// readFormer reads the file of an earlier version; without one there is nothing.
func readFormer(root *os.Root) (was former, err error) {
	text, err := root.ReadFile(formerFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return former{}, nil
	case err != nil:
		return former{}, fmt.Errorf("read the keys of notifications: %w", err)
	}
	if err := json.Unmarshal(text, &was); err != nil || was.Private == "" || was.Public == "" {
		return former{}, fmt.Errorf("%s in the state directory cannot be read: move it away to begin with nobody subscribed",
			formerFile)
	}
	return was, nil
}

// put keeps a subscription.
func (s *Sender) put(ctx context.Context, k kept) error {
	return s.cfg.Store.PutRecord(ctx, sessions.Record{Kind: subscribedKind, Name: nameOf(k.To.Endpoint),
		Body: []byte(handoff.Encode(k))})
}

// nameOf names a subscription: its address is a secret.
func nameOf(endpoint string) string {
	sum := sha256.Sum256([]byte(endpoint))
	return hex.EncodeToString(sum[:16])
}

// subscriptions reads who is told, in the order in which they asked. One bad record must not hide the others.
func (s *Sender) subscriptions(ctx context.Context) ([]kept, error) {
	records, err := s.cfg.Store.Records(ctx, subscribedKind)
	if err != nil {
		return nil, err
	}
	all := make([]kept, 0, len(records))
	for _, r := range records {
		var k kept
		if err := json.Unmarshal(r.Body, &k); err != nil {
			s.cfg.Log.Warn("a subscription cannot be read", zap.Error(err))
			continue
		}
		all = append(all, k)
	}
	slices.SortStableFunc(all, func(a, b kept) int { return a.Made.Compare(b.Made) })
	s.subscribed.Store(int64(len(all)))
	return all, nil
}
