package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"switchboard/handoff"
	"switchboard/servers"
	"switchboard/web"
)

// TestInstances: three instances over one Redis are one Switchboard. Each takes any request, and what is asked three
// times under one key is begun once. One that is cut off from the Redis loses its callers to the others, with what runs
// of them; when it is back it sends there whoever comes to it.
func TestInstances(t *testing.T) {
	t.Parallel()
	f, address := newFarm(t), strings.TrimSuffix(strings.TrimPrefix(startRedis(t), "redis://"), "/0")
	const key = "assistants-key-0123456789"
	var all []*running
	var ways []*cutter // to the Redis
	for range 3 {
		way := newCutter(t, "redis", address)
		ways = append(ways, way)
		all = append(all, start(t, func(p *plan) {
			p.Redis, p.Peers = newSecret("redis://"+way.proxy.Listen+"/0"), peerSettings{Listen: "127.0.0.1:0"}
			p.Model = modelSettings{URL: f.voice.URL, Name: "scripted"}
			p.Servers = []servers.Spec{{Name: "bigpc", Kind: "codex", Own: codexAt(f.at["bigpc"])}}
			assistant := web.NewKey("assistant", key)
			assistant.NamesCallers = true
			p.Access = append(p.Access, assistant)
		}))
	}
	ask := func(r *running, user, method, path, body string) (status int, rec record) {
		t.Helper()
		status, text := r.ask(method, path, body, "Authorization", "Bearer "+key, "OpenAI-Safety-Identifier", user,
			"Idempotency-Key", "the key of "+user)
		if status < 300 {
			must(t, json.Unmarshal(text, &rec))
		}
		return status, rec
	}
	for _, r := range all {
		r.up("bigpc")
	}
	ids, words := map[string]string{}, map[string]string{}
	for i, user := range []string{"anna", "bert", "cora"} {
		words[user] = fmt.Sprintf("job %d takes 12000", i)
		for n := range all { // the first has the caller
			var status int
			var rec record
			until(t, user+" to be served", func() bool { // an instance that was held up begins nothing for a moment
				status, rec = ask(all[(i+n)%len(all)], user, http.MethodPost, "/fleet/handoffs",
					fmt.Sprintf(`{"server":"bigpc","thread_id":"new","prompt":%q}`, words[user]))
				return status != http.StatusServiceUnavailable
			})
			if status >= 300 || ids[user] != "" && rec.ID != ids[user] {
				t.Fatalf("%s asked for the work again: %d %+v, before it was %s", user, status, rec, ids[user])
			}
			ids[user] = rec.ID
		}
	}
	until(t, "the work to run", func() bool {
		for user, id := range ids {
			if _, rec := ask(all[2], user, http.MethodGet, "/fleet/handoffs/"+id, ""); rec.State != handoff.StatusStarted {
				return false
			}
		}
		return true
	})

	ways[0].proxy.Stop()
	until(t, "another to take over from the first", func() bool { // as soon as one has, the others need not look
		return strings.Contains(all[1].logs.String()+all[2].logs.String(), "gone are taken over")
	})
	must(t, ways[0].proxy.Start())
	for i, user := range []string{"anna", "bert", "cora"} {
		until(t, "the outcome of "+user, func() bool {
			_, rec := ask(all[(i+1)%len(all)], user, http.MethodGet, "/fleet/handoffs/"+ids[user], "")
			return rec.Outcome == handoff.OutcomeResult
		})
		if n := f.turns()[words[user]]; n != 1 {
			t.Errorf("%q has %d turns", words[user], n)
		}
	}
	until(t, "the first to send anna where she is", func() bool {
		status, rec := ask(all[0], "anna", http.MethodGet, "/fleet/handoffs/"+ids["anna"], "")
		return status == http.StatusOK && rec.Outcome == handoff.OutcomeResult &&
			strings.Contains(all[0].logs.String(), "another instance has a caller")
	})
}
