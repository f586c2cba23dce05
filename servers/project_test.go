package servers

import (
	"strings"
	"testing"
	"testing/synctest"

	"switchboard/handoff"
)

const (
	idShop = "01c00000-0000-7000-8000-000000000001"
	idAPI  = "01c00000-0000-7000-8000-000000000002"
	idLost = "01c00000-0000-7000-8000-000000000003" // not in the list
)

// projects is a server with one session in each of two projects, and one in neither.
func projects() (*fakeServer, Spec) {
	s := &fakeServer{threads: []Thread{
		{ID: idShop, Title: "Checkout flow", Dir: "/src/shop"},
		{ID: idAPI, Title: "Rate limits", Dir: "/src/api/server"},
		{ID: idAuth, Title: "Checkout flow", Dir: "/src/apiary"},
	}}
	s.onAttach = func(_ *fakeLink, id string) (handoff.Attached, error) {
		at := handoff.Attached{Agent: &fakeAgent{}, Target: handoff.Target{Thread: id}, Workspace: "/elsewhere"}
		for _, t := range s.threads {
			if t.ID == id {
				at.Workspace = t.Dir
			}
		}
		return at, nil
	}
	return s, Spec{Name: "bigpc", Projects: map[string]string{"api": "/src/api/", "shop": "/src/shop", "src": "/src"},
		Dial: s.dial}
}

// TestSessionsOfAProject: if a project is named, in any form, sessions of other places are not found.
func TestSessionsOfAProject(t *testing.T) {
	bubble(t, func(t *testing.T) {
		_, spec := projects()
		f := run(t, spec)
		synctest.Wait()
		for _, row := range []struct {
			server, thread, id string
			code               handoff.Code
			choices            string
		}{
			{"bigpc/api", "rate limits", idAPI, "", ""},
			{"bigpc/shop", "checkout flow", idShop, "", ""},
			{"bigpc/shop", "checkout", idShop, "", ""},
			{"bigpc/shop", idShop, idShop, "", ""},
			{"bigpc/shop", idShop[:9], idShop, "", ""},
			{"bigpc/api", idAPI[:9], idAPI, "", ""},
			{"bigpc", "rate limits", idAPI, "", ""},
			{"bigpc/src", "checkout flow", "", handoff.CodeAmbiguousSession, "Checkout flow, in shop, Checkout flow, in apiary"},
			{"bigpc", "checkout flow", "", handoff.CodeAmbiguousSession, "Checkout flow, in shop, Checkout flow, in apiary"},
			{"bigpc/api", "checkout flow", "", handoff.CodeSessionElsewhere, "shop on bigpc, src on bigpc"},
			{"bigpc/api", "the Checkout Flow session", "", handoff.CodeSessionElsewhere, "shop on bigpc, src on bigpc"},
			{"bigpc/api", "checkout", "", handoff.CodeUnknownSession, "rate limits"},
			{"bigpc/api", idShop, "", handoff.CodeSessionElsewhere, "shop on bigpc"},
			{"bigpc/shop", idAPI, "", handoff.CodeSessionElsewhere, "api on bigpc"},
			{"bigpc/shop", idAuth[:10], "", handoff.CodeSessionElsewhere, "src on bigpc"},
			{"bigpc/shop", "new", "new", "", ""},
			{"bigpc/shop", "", "", "", ""},
			{"bigpc/shop", idLost, idLost, "", ""},
		} {
			got, err := f.Resolve(t.Context(), nobody, handoff.Target{Server: row.server, Thread: row.thread})
			if row.code == "" {
				if err != nil || got.Thread != row.id {
					t.Errorf("%s %q: %+v, %v", row.server, row.thread, got, err)
				}
				continue
			}
			fault := handoff.AsError(err)
			if err == nil || fault.Code != row.code || strings.Join(fault.Choices, ", ") != row.choices {
				t.Errorf("%s %q: %+v, %v, choices %q", row.server, row.thread, got, err, fault.Choices)
			}
			if strings.Contains(fault.Spoken(), idShop) {
				t.Errorf("%s %q: an id is said: %s", row.server, row.thread, fault.Spoken())
			}
		}
	})
}

// TestAttachKeepsToTheProject: attaching refuses a session of another project that resolving could not check.
func TestAttachKeepsToTheProject(t *testing.T) {
	bubble(t, func(t *testing.T) {
		_, spec := projects()
		f := run(t, spec)
		synctest.Wait()
		for target, code := range map[handoff.Target]handoff.Code{
			{Server: "bigpc", Project: "shop", Thread: idLost}: handoff.CodeSessionElsewhere,
			{Server: "bigpc", Project: "api", Thread: idShop}:  handoff.CodeSessionElsewhere,
			{Server: "bigpc", Project: "shop", Thread: idShop}: "",
			{Server: "bigpc", Thread: idLost}:                  "",
		} {
			at, err := f.Attach(t.Context(), target)
			if code == "" && (err != nil || at.Target != target) || code != "" &&
				(err == nil || handoff.AsError(err).Code != code) {
				t.Errorf("%+v: %+v, %v", target, at.Target, err)
			}
		}
	})
}
