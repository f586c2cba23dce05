package sessions

import (
	"net/url"

	"switchboard/handoff"
)

// CallerName is a caller as stores name it, escaped, so that no name reaches another's entries. A caller
// without a principal is an error.
func CallerName(c handoff.Caller) (string, error) {
	if c.Principal == "" { // nobody's stickies would be everybody's
		return "", handoff.Fault(handoff.CodeInternal, "", "a caller without a principal")
	}
	name := url.QueryEscape(c.Principal)
	if c.User != "" {
		name += "/" + url.QueryEscape(c.User)
	}
	return name, nil
}
