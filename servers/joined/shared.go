package joined

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"time"

	"go.uber.org/zap"
)

// readEvery is how often it is looked for what other instances did with machines.
const readEvery = 2 * time.Second

// newest runs a change like changes does, once what other instances did with machines is read. Where the store does not
// answer, the change is made on what is known here, so that a machine that comes back is let in.
func (m *Machines) newest(ctx context.Context, change func() error) error {
	return m.changes(ctx, func() error {
		if m.cfg.Shared {
			m.read(ctx)
		}
		return change()
	})
}

// read learns from the store what other instances did with machines. It is called in changes.
func (m *Machines) read(ctx context.Context) {
	records, err := m.cfg.Store.Machines(ctx)
	if err != nil {
		m.cfg.Log.Debug("machines not read", zap.Error(err))
		return
	}
	there := map[string]bool{}
	for _, r := range records {
		there[hex.EncodeToString(r.Key)] = true
	}
	for _, one := range m.sorted() {
		if there[hex.EncodeToString(one.Key)] {
			continue
		}
		if err := m.part(one); err != nil {
			m.cfg.Log.Warn("a machine that was removed stays in the fleet", zap.String("machine", one.Name), zap.Error(err))
		}
	}
	for _, r := range records {
		key, was := hex.EncodeToString(r.Key), m.find(r.Key)
		as := r.Name + " " + string(r.Body)
		if was != nil && was.Name == r.Name && bytes.Equal(was.Body, r.Body) {
			continue
		}
		is := machine{Record: r}
		err := json.Unmarshal(r.Body, &is.kept)
		if err == nil {
			err = m.place(was, is, func() error { return nil })
		}
		if err == nil {
			delete(m.bad, key)
		} else if m.bad[key] != as { // told once, and tried again: what is in its way may go
			m.bad[key] = as
			m.cfg.Log.Warn("a machine is left out", zap.String("machine", r.Name), zap.Error(err))
		}
	}
}

// Run follows what other instances do with machines, where there are others. When ctx ends it ends all lines, and
// returns when none is left.
func (m *Machines) Run(ctx context.Context) error {
	if m.cfg.Shared {
		m.follow(ctx)
	}
	<-ctx.Done()
	m.mu.Lock()
	m.ended = true
	m.mu.Unlock()
	m.end()
	m.open.Wait()
	return nil
}

// follow reads the machines again and again until ctx ends.
func (m *Machines) follow(ctx context.Context) {
	ticker := time.NewTicker(readEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			_ = m.newest(ctx, func() error { return nil }) // it fails when ctx ends
		case <-ctx.Done():
			return
		}
	}
}
