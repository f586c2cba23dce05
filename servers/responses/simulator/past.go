package simulator

import (
	"context"
	"fmt"
	"time"

	"switchboard/handoff/threads"
	"switchboard/servers/responses/wire"
	machines "switchboard/servers/simulator"
)

// Remember stores the sessions that a machine of the built-in world has from the start, as threads of its agent.
func Remember(ctx context.Context, store threads.Store, m machines.Machine) error {
	now := time.Now()
	for n, s := range machines.Seeds(m.Name) {
		// In the form of a thread id, and the same after every start, so that clients may remember it.
		id := fmt.Sprintf("thr_%s%c", "aaaaaaaaaaaaaaaaaaaaaaaaa", 'a'+n)
		at := now.Add(-s.Old).Add(-time.Duration(len(s.Turns)) * 10 * time.Minute)
		steps := []threads.Step{threads.Create{Owner: m.Name, Thread: id, Title: s.Title, Dir: s.Dir, At: at}}
		items := 0
		for i, t := range s.Turns {
			at = at.Add(10 * time.Minute)
			turn := fmt.Sprintf("turn_%s_%d", id, i)
			write := threads.Append{Owner: m.Name, Thread: id, Turn: turn, Fence: int64(i + 1), At: at, From: items + 1,
				Items: past(t, turn)}
			steps = append(steps,
				threads.Claim{Owner: m.Name, Thread: id, Turn: turn, At: at.Add(-time.Minute), Items: []threads.Item{
					{JSON: wire.Encode(object{"type": "message", "role": "user", "content": t.Prompt})},
				}},
				threads.End{Append: write, Status: threads.Completed, Text: t.Answer})
			items += 1 + len(write.Items)
		}
		for _, step := range steps {
			if _, err := store.Advance(ctx, step); err != nil {
				return fmt.Errorf("the session %q: %w", s.Title, err)
			}
		}
	}
	return nil
}

// past returns the items of the agent in a turn.
func past(t machines.SeedTurn, turn string) []threads.Item {
	var items []threads.Item
	if t.Command != "" {
		call := Call("call_"+turn, "exec", object{"command": t.Command}).withID("ran_" + turn)
		items = append(items, threads.Item{From: "simulated", JSON: wire.Encode(call)},
			threads.Item{JSON: wire.Encode(object{"type": wire.Output, "call_id": call["call_id"], "output": "Exit code: 0\n" +
				t.Output})})
	}
	return append(items, threads.Item{From: "simulated", JSON: wire.Encode(Say(t.Answer).withID("said_" + turn))})
}
