package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"switchboard/handoff"
	"switchboard/handoff/threads"
)

// threadStore stores the threads of our own agents. It implements [threads.Store] and is safe for concurrent use.
type threadStore struct{ *file }

// Threads returns the threads of the store.
func (s *Store) Threads() threads.Store { return threadStore{s.file} }

// Advance makes one step in one transaction.
func (t threadStore) Advance(ctx context.Context, step threads.Step) (threads.Result, error) {
	if _, begins := step.(threads.Claim); begins && t.lockLost.Load() {
		return threads.Result{}, t.taken()
	}
	var made threads.Change
	var refusal error // why the step was refused
	err := t.changeFenced(ctx, func(ctx context.Context, tx transaction) error {
		view, err := threads.See(txRows{ctx, tx}, step)
		if err != nil {
			return err
		}
		if made, refusal = threads.Decide(view, step); refusal != nil || made.Same {
			return nil
		}
		return writeChange(ctx, tx, made)
	})
	if err != nil || refusal != nil {
		return threads.Result{}, cmp.Or(err, refusal)
	}
	return made.Result, nil
}

// txRows reads threads and turns within a transaction. It implements [threads.Rows].
type txRows struct {
	ctx context.Context
	tx  transaction
}

// Thread implements [threads.Rows].
func (r txRows) Thread(id string) (threads.Thread, error) {
	return bodyOf[threads.Thread](r.ctx, r.tx, "SELECT body FROM threads WHERE id = ?", id)
}

// Turn implements [threads.Rows].
func (r txRows) Turn(thread, id string) (threads.Turn, error) {
	return bodyOf[threads.Turn](r.ctx, r.tx, "SELECT body FROM turns WHERE thread = ? AND id = ?", thread, id)
}

// bodiesOf decodes the JSON bodies of all rows of a query.
func bodiesOf[T any](ctx context.Context, tx transaction, query string, args ...any) ([]T, error) {
	rows, err := tx.QueryContext(ctx, query, args...)
	return collect(rows, err, func(row *sql.Rows, value *T) error {
		var body []byte
		if err := row.Scan(&body); err != nil {
			return err
		}
		return json.Unmarshal(body, value)
	})
}

// bodyOf decodes the JSON body of one row; the zero value if there is none.
func bodyOf[T any](ctx context.Context, tx transaction, query string, args ...any) (value T, _ error) {
	all, err := bodiesOf[T](ctx, tx, query, args...)
	if len(all) > 0 {
		value = all[0]
	}
	return value, err
}

// writeChange writes a change.
func writeChange(ctx context.Context, tx transaction, c threads.Change) error {
	for _, t := range c.Threads {
		if err := putBody(ctx, tx, t, "INSERT INTO threads (id, owner, ran, updated, parent, body) VALUES (?, ?, ?, "+
			"?, ?, ?) "+
			"ON CONFLICT (id) DO UPDATE SET ran = excluded.ran, updated = excluded.updated, body = excluded.body",
			t.ID, t.Owner, t.Newest() != "", t.Updated.UnixNano(), t.Parent); err != nil {
			return err
		}
	}
	for _, t := range c.Turns {
		if err := putBody(ctx, tx, t, "INSERT INTO turns (thread, id, first, until, body) VALUES (?, ?, ?, ?, ?) "+
			"ON CONFLICT (thread, id) DO UPDATE SET until = excluded.until, body = excluded.body",
			t.Thread, t.ID, t.From, t.Until); err != nil {
			return err
		}
	}
	for i, it := range c.Items {
		place := c.Thread.Items - len(c.Items) + i
		if _, err := tx.ExecContext(ctx, "INSERT INTO items (thread, place, turn, source, json) VALUES (?, ?, ?, ?, ?)",
			c.Thread.ID, place, it.Turn, it.From, string(it.JSON)); err != nil {
			return err
		}
	}
	return nil
}

// putBody writes a row whose last column is a value as JSON.
func putBody(ctx context.Context, tx transaction, value any, query string, columns ...any) error {
	body, err := json.Marshal(value)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, query, append(columns, string(body))...)
	return err
}

// Read returns a whole thread, at one instant.
func (t threadStore) Read(ctx context.Context, owner, thread string) (threads.Record, error) {
	tx, err := t.read.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return threads.Record{}, t.fault(err)
	}
	defer func() { _ = tx.Rollback() }() // it changes nothing
	rows := txRows{ctx, tx}
	head, err := rows.Thread(thread)
	switch {
	case err != nil:
		return threads.Record{}, t.fault(err)
	case head.ID == "" || head.Owner != owner:
		return threads.Record{}, handoff.Fault(handoff.CodeSessionGone, "", "there is no such thread")
	}
	r := threads.Record{Thread: head}
	for limit := head.Items; ; {
		own, err := ownOf(ctx, tx, head, limit)
		if err != nil {
			return threads.Record{}, t.fault(err)
		}
		r.Turns, r.Items = slices.Concat(own.Turns, r.Turns), slices.Concat(own.Items, r.Items)
		if head.Parent == "" {
			return r, nil
		}
		limit = head.ForkAt
		if head, err = rows.Thread(head.Parent); err != nil || head.ID == "" {
			return threads.Record{}, t.fault(cmp.Or(err, fmt.Errorf("the thread that %s was copied from is not there", thread)))
		}
	}
}

// ownOf reads the part of a thread that is not in its parent, up to the item at limit.
func ownOf(ctx context.Context, tx transaction, t threads.Thread, limit int) (threads.Record, error) {
	var r threads.Record
	var err error
	if r.Turns, err = bodiesOf[threads.Turn](ctx, tx, "SELECT body FROM turns WHERE thread = ? AND until <= ? ORDER "+
		"BY first", t.ID, limit); err != nil {
		return r, err
	}
	rows, err := tx.QueryContext(ctx, "SELECT turn, source, json FROM items WHERE thread = ? AND place < ? ORDER BY place",
		t.ID, limit)
	r.Items, err = collect(rows, err, func(row *sql.Rows, it *threads.Item) error {
		return row.Scan(&it.Turn, &it.From, (*[]byte)(&it.JSON))
	})
	return r, err
}

// List returns the threads of an owner that have had a turn, newest first.
func (t threadStore) List(ctx context.Context, owner string, limit int) ([]threads.Thread, error) {
	all, err := bodiesOf[threads.Thread](ctx, t.read, "SELECT body FROM threads WHERE owner = ? AND ran ORDER BY "+
		"updated DESC, id LIMIT ?", owner, max(limit, 0))
	return all, t.fault(err)
}

// sweepThreads is how many threads one sweep deletes; each may have many items.
const sweepThreads = 20

// forgetThreads deletes some of the threads that were last used before a time and that no copy reads. It reports
// whether there may be more.
func forgetThreads(ctx context.Context, tx transaction, before time.Time) (more bool, err error) {
	const unused = "(SELECT id FROM threads AS t WHERE updated <= ? AND " +
		"NOT EXISTS (SELECT 1 FROM threads AS copy WHERE copy.parent <> '' AND copy.parent = t.id) ORDER BY updated, id " +
		"LIMIT ?)"
	for _, forget := range []string{"DELETE FROM items WHERE thread IN ", "DELETE FROM turns WHERE thread IN ",
		"DELETE FROM threads WHERE id IN "} {
		n, err := affected(tx.ExecContext(ctx, forget+unused, before.UnixNano(), sweepThreads))
		if err != nil {
			return false, err
		}
		more = n > 0 // of the threads: the parent of a deleted copy may be next
	}
	return more, nil
}
