package sqlite

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"fmt"
	"math"
	"time"

	"switchboard/handoff"
	"switchboard/sessions"
)

// keyedVersion is the version since which what belongs to no caller is in one table of values. The tables that versions
// before had for logins, secrets, apps, machines and records are converted; codes have ended by then.
const keyedVersion = 20

// convertKeyed converts the tables of the versions before [keyedVersion] to values.
func convertKeyed(ctx context.Context, tx transaction) error {
	var all []sessions.Value
	add := func(kind, name, group string, ends time.Time, body []byte) {
		all = append(all, sessions.Value{Kind: kind, Name: name, Group: group, Ends: ends, Body: body})
	}
	for _, table := range []struct {
		query string
		scan  func(*sql.Rows) error
	}{
		{"SELECT principal, id, sum, key, host, device, made, used, ends FROM logins", func(row *sql.Rows) error {
			var l sessions.Login
			err := row.Scan(&l.Principal, &l.ID, digest{&l.Sum}, digest{&l.Key}, &l.Host, &l.Device, nanos{&l.Made},
				nanos{&l.Used}, nanos{&l.Ends})
			add("login", hex.EncodeToString(l.Sum[:]), l.Principal, l.Ends, []byte(handoff.Encode(l)))
			return err
		}},
		{"SELECT sum, principal, key, coalesce(login, zeroblob(32)), user, session, ends FROM secrets", func(row *sql.Rows) error {
			var s sessions.Secret
			err := row.Scan(digest{&s.Sum}, &s.Principal, digest{&s.Key}, digest{&s.Login}, &s.User, &s.Session, nanos{&s.Ends})
			add("secret", hex.EncodeToString(s.Sum[:]), s.Principal, s.Ends, []byte(handoff.Encode(s)))
			return err
		}},
		{"SELECT id, principal, ends, body FROM apps", func(row *sql.Rows) error {
			var id, principal string
			var ends time.Time
			var body []byte
			err := row.Scan(&id, &principal, nanos{&ends}, &body)
			add("app", id, principal, ends, body)
			return err
		}},
		{"SELECT key, name, joined, body FROM machines", func(row *sql.Rows) error {
			var m sessions.Machine
			err := row.Scan(&m.Key, &m.Name, millis{&m.Joined}, &m.Body)
			add("machine", hex.EncodeToString(m.Key), "", time.Time{}, []byte(handoff.Encode(m)))
			return err
		}},
		{"SELECT kind, name, body FROM records", func(row *sql.Rows) error {
			var kind, name string
			var body []byte
			err := row.Scan(&kind, &name, &body)
			add("record "+kind, name, "", time.Time{}, body)
			return err
		}},
	} {
		rows, err := tx.QueryContext(ctx, table.query)
		if _, err = collect(rows, err, func(row *sql.Rows, _ *struct{}) error { return table.scan(row) }); err != nil {
			return err
		}
	}
	for _, v := range all {
		ends := int64(math.MaxInt64)
		if !v.Ends.IsZero() {
			ends = v.Ends.UnixMilli()
		}
		if _, err := tx.ExecContext(ctx, "INSERT OR REPLACE INTO vals (kind, name, grp, version, body, ends) "+
			"VALUES (?, ?, ?, ?, ?, ?)", v.Kind, v.Name, v.Group, rand.Text(), v.Body, ends); err != nil {
			return err
		}
	}
	for _, table := range []string{"logins", "secrets", "apps", "machines", "codes", "records"} {
		if _, err := tx.ExecContext(ctx, "DROP TABLE "+table); err != nil {
			return err
		}
	}
	return nil
}

// A digest scans a SHA-256 from a column.
type digest struct{ sum *[sha256.Size]byte }

// Scan implements [sql.Scanner].
func (d digest) Scan(value any) error {
	sum, ok := value.([]byte)
	if !ok || copy(d.sum[:], sum) != sha256.Size {
		return fmt.Errorf("%T is no SHA-256", value)
	}
	return nil
}

// A nanos scans a time from a column in Unix nanoseconds.
type nanos struct{ at *time.Time }

// Scan implements [sql.Scanner].
func (n nanos) Scan(value any) error {
	ns, ok := value.(int64)
	if !ok {
		return fmt.Errorf("%T is no time", value)
	}
	*n.at = time.Unix(0, ns).UTC()
	return nil
}
