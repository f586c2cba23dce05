package redis

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"switchboard/handoff"
	"switchboard/sessions"
)

var (
	codeScript      = script("code")
	codeSpendScript = script("code_spend")
)

// codes keeps the codes with which pages log in. All are in one key: a wrong one counts against all that wait.
type codes struct{ *engine }

// PutCode implements [sessions.Codes].
func (s codes) PutCode(ctx context.Context, c sessions.Code) error {
	data, err := json.Marshal(c)
	if err != nil {
		return handoff.Fault(handoff.CodeInternal, "", "encode a code: "+err.Error())
	}
	by := sha256.Sum256(append(c.Key[:], c.Principal...))
	return s.fault(codeScript.Run(ctx, s.client, []string{s.codesKey()}, hex.EncodeToString(c.Sum[:]),
		c.Ends.UnixMicro(), hex.EncodeToString(by[:]), data, sessions.MaxCodes, time.Now().UnixMicro()).Err())
}

// SpendCode implements [sessions.Codes].
func (s codes) SpendCode(ctx context.Context, sum [sha256.Size]byte) (sessions.Code, bool, error) {
	data, err := codeSpendScript.Run(ctx, s.client, []string{s.codesKey()}, hex.EncodeToString(sum[:]),
		time.Now().UnixMicro(), sessions.MaxGuesses).Text()
	if errors.Is(err, goredis.Nil) {
		return sessions.Code{}, false, nil
	}
	if err != nil {
		return sessions.Code{}, false, s.fault(err)
	}
	var c sessions.Code
	if err := json.Unmarshal([]byte(data), &c); err != nil {
		s.badEntry(s.codesKey())
		return sessions.Code{}, false, nil
	}
	return c, true, nil
}

func (s codes) codesKey() string { return s.prefix + ":codes" }
