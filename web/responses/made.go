package responses

import (
	"context"
	"encoding/json"
	"slices"

	"switchboard/handoff"
	"switchboard/sessions"
)

// maxMade is how many sessions that programs made are remembered for a caller, the newest: as many as stored responses.
const maxMade = sessions.MaxDocuments

// madeDocument is the id of a caller's document with the names of these sessions, oldest first.
const madeDocument = "made_sessions"

// Made returns a function that reports whether a program made a session of a caller with this API, in this or an
// earlier process. If the store does not answer, it reports false for all.
func (a *API) Made(ctx context.Context, c handoff.Caller) func(server, thread string) bool {
	ctx, cancel := context.WithTimeout(ctx, storeWithin)
	defer cancel()
	names, _ := a.madeBy(ctx, c)
	return func(server, thread string) bool { return slices.Contains(names, server+"/"+thread) }
}

func (a *API) madeBy(ctx context.Context, c handoff.Caller) (names []string, err error) {
	d, there, err := a.documents.Document(ctx, c, madeDocument)
	if err == nil && there {
		err = json.Unmarshal(d.Body, &names)
	}
	return names, err
}

// makesSession records that a program made a session.
func (a *API) makesSession(c handoff.Caller, server, thread string) {
	ctx, cancel := context.WithTimeout(context.Background(), storeWithin)
	defer cancel()
	select {
	case a.listing <- struct{}{}:
		defer func() { <-a.listing }()
	case <-ctx.Done():
		return
	}
	names, err := a.madeBy(ctx, c)
	if name := server + "/" + thread; err == nil && !slices.Contains(names, name) {
		names = append(names[max(0, len(names)+1-maxMade):], name)
		_ = a.documents.store(c, madeDocument, []byte(handoff.Encode(names)), keptFor) // it was logged
	}
}
