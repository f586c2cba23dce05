package joined

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"maps"
	"time"

	"go.uber.org/zap"
)

// readEvery is how often the machines in the store are read for changes of other instances.
const readEvery = 2 * time.Second

// afterReading is like exclusively, but first reads what other instances did with machines. If the store does not
// answer, the change is made all the same, so that a machine that comes back is let in.
func (m *Machines) afterReading(ctx context.Context, change func() error) error {
	return m.exclusively(ctx, func() error {
		if m.cfg.Shared || m.unread {
			m.read(ctx)
		}
		return change()
	})
}

// read takes over what other instances did with machines. It is called in exclusively.
func (m *Machines) read(ctx context.Context) {
	records, err := m.cfg.Store.Machines(ctx)
	if m.unread = err != nil; m.unread {
		m.cfg.Log.Debug("machines not read", zap.Error(err))
		return
	}
	there := map[string]bool{}
	for _, r := range records {
		there[hex.EncodeToString(r.Key)] = true
	}
	maps.DeleteFunc(m.rejected, func(key, _ string) bool { return !there[key] })
	for _, one := range m.sorted() {
		if there[hex.EncodeToString(one.Key)] {
			continue
		}
		if err := m.dropLocally(one); err != nil {
			m.cfg.Log.Warn("a machine that was removed stays in the fleet", zap.String("machine", one.Name), zap.Error(err))
		}
	}
	for _, r := range records {
		key, was := hex.EncodeToString(r.Key), m.find(r.Key)
		as := r.Name + " " + string(r.Body)
		if was != nil && was.Name == r.Name && bytes.Equal(was.Body, r.Body) {
			continue
		}
		is := machine{Record: r, reports: newReports()}
		if was != nil {
			is.reports = was.reports
		}
		err := json.Unmarshal(r.Body, &is.details)
		if err == nil {
			err = m.install(was, is, func() error { return nil })
		}
		if err == nil {
			delete(m.rejected, key)
		} else if m.rejected[key] != as { // logged once, but tried at each reading: the obstacle may go
			m.rejected[key] = as
			m.cfg.Log.Warn("a machine is left out", zap.String("machine", r.Name), zap.Error(err))
		}
	}
}

// Run follows what other instances do with machines, if there are others. When ctx ends it ends all lines, and returns
// when all have ended.
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

// follow reads the machines in the store every readEvery until ctx ends.
func (m *Machines) follow(ctx context.Context) {
	ticker := time.NewTicker(readEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			_ = m.afterReading(ctx, func() error { return nil }) // it fails when ctx ends
		case <-ctx.Done():
			return
		}
	}
}
