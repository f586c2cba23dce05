package redis

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"switchboard/handoff"
	"switchboard/sessions"
)

var (
	codeScript      = script("code")
	codeSpendScript = script("code_spend")
)

// codes stores the codes with which pages log in, all in one key.
type codes struct{ *engine }

// PutCode implements [sessions.Codes].
func (s codes) PutCode(ctx context.Context, c sessions.Code) error {
	maker := sha256.Sum256(append(c.Key[:], c.Principal...))
	return s.fault(codeScript.Run(ctx, s.client, []string{s.codesKey()}, hex.EncodeToString(c.Sum[:]), c.Ends.UnixMicro(),
		hex.EncodeToString(maker[:]), handoff.Encode(c), sessions.MaxCodes, time.Now().UnixMicro()).Err())
}

// SpendCode implements [sessions.Codes].
func (s codes) SpendCode(ctx context.Context, sum [sha256.Size]byte) (sessions.Code, bool, error) {
	text, err := codeSpendScript.Run(ctx, s.client, []string{s.codesKey()}, hex.EncodeToString(sum[:]),
		time.Now().UnixMicro()).Text()
	return parseOne[sessions.Code](s.engine, s.codesKey(), text, err)
}

func (s codes) codesKey() string { return s.prefix + ":codes" }
