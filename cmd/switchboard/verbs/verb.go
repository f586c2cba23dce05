package verbs

import (
	"context"
	"errors"

	"switchboard/cmd/switchboard/cli"
)

// Group is the heading of the verbs that a running service is needed for.
const Group = "Of the running Switchboard"

// Uses are the flags of the program that matter to them.
func Uses() []string { return []string{"config", "listen"} }

// A Reach says which running service a verb speaks to, and with which key.
type Reach struct {
	URL, KeyFile string // "": the service that runs here; the key of the environment, if there is one
	JSON         bool
}

// Flags are the flags that set it.
func (r *Reach) Flags() []cli.Flag {
	return []cli.Flag{
		{Name: "url", Value: "URL", Into: &r.URL, Help: "A Switchboard elsewhere, such as " +
			"https://bigpc.tail1234.ts.net; it takes a key. Else the one that you run on this machine, which takes none."},
		{Name: "key-file", Value: "FILE", Into: &r.KeyFile,
			Help: "File with the key to speak as; else SWITCHBOARD_KEY, if it is set."},
		{Name: "json", Into: &r.JSON, Help: "Print the JSON of the API."},
	}
}

// A Dialer connects a terminal to the service that a Reach names.
type Dialer func(Reach) (*Terminal, error)

// verb completes a verb that speaks to a running service: with the flags that all of them have, and with do, which it
// runs at a terminal that is connected.
func (dial Dialer) verb(v cli.Verb, do func(ctx context.Context, t *Terminal) error) *cli.Verb {
	var reach Reach
	v.Group, v.Uses, v.Flags = Group, Uses(), append(reach.Flags(), v.Flags...)
	v.Run = func(ctx context.Context) error {
		t, err := dial(reach)
		if err != nil {
			return err
		}
		err = do(ctx, t)
		if _, ended := errors.AsType[Outcome](err); err != nil && !ended && ctx.Err() != nil {
			return ErrLeft
		}
		return err
	}
	return &v
}

// ErrLeft is the error of a verb that was interrupted before it was done.
var ErrLeft = errors.New("left")
