package handoff

import "net/http"

// Written reports whether all that was written to the client of an HTTP request has left, and the client has not: only
// then was the client told. A client that left a moment ago may not be noticed.
func Written(w http.ResponseWriter, r *http.Request) bool {
	return http.NewResponseController(w).Flush() == nil && r.Context().Err() == nil
}
