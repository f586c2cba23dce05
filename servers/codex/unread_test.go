package codex

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"switchboard/handoff"
	"switchboard/servers"
)

// TestUnreadItems: if the items of a turn whose end was missed cannot be listed, they are read with the turn, or else
// its last message is. If that fails several times, the turn ends as completed but not read.
func TestUnreadItems(t *testing.T) {
	final := `{"type":"agentMessage","id":"b","text":"All done.","phase":"final_answer"}`
	withItems := func(items string) string {
		return fmt.Sprintf(
			`{"data":[{"id":%q,"status":"completed","completedAt":1,"items":[%s],"error":null}],"nextCursor":null}`,
			turn1,
			items,
		)
	}
	looking := `{"type":"agentMessage","id":"a","text":"Looking.","phase":"commentary"}`
	said := func(f *fake) { f.messageDone(turn1, "a", "Looking.") }
	const cannot, broken, none = `thread/items/list is not supported yet`, `disk on fire`, ""
	for name, c := range map[string]struct {
		heard func(f *fake)
		reads [][2]string // why the items cannot be listed ("": they can, and there are none), and what thread/turns/list says with items; "" is a refusal
		end   handoff.TurnEnded
	}{
		"a legacy session": {said, [][2]string{{cannot, withItems(looking + "," + final)}},
			handoff.TurnEnded{Text: "All done."}},
		"its last message": {said, [][2]string{{broken, withItems(final)}}, handoff.TurnEnded{Text: "All done."}},
		"at another time": {said, [][2]string{{broken, ""}, {broken, withItems("")}, {broken, withItems(final)}},
			handoff.TurnEnded{Text: "All done."}},
		"none are listed": {said, [][2]string{{none, withItems(final)}}, handoff.TurnEnded{Text: "All done."}},
		"and none at all": {said, [][2]string{{none, withItems("")}, {none, ""}, {none, withItems("")}},
			handoff.TurnEnded{Text: "Looking.", Code: handoff.CodeUnread, Detail: errNoItems.Error()}},
		"never": {said, [][2]string{{broken, ""}, {broken, ""}, {broken, ""}},
			handoff.TurnEnded{Text: "Looking.", Code: handoff.CodeUnread, Detail: "-32600: disk on fire"}},
		"never, but heard": {func(f *fake) {
			f.notify(noteItemCompleted, fmt.Sprintf(`{"threadId":%q,"turnId":%q,"item":%s}`, thread1, turn1, final))
		}, [][2]string{{broken, ""}, {broken, ""}, {broken, ""}}, handoff.TurnEnded{Text: "All done."}},
	} {
		t.Run(name, bubble(func(t *testing.T) {
			f, _, r := running(t)
			f.turnStarted(turn1)
			c.heard(f)
			f.status(idle)
			for _, read := range c.reads {
				sleep(5 * time.Second)
				f.turns(turnJSON(turn1, "completed", true))
				if frame := f.expect("thread/items/list"); read[0] == none {
					f.reply(frame, `{"data":[],"nextCursor":null}`)
				} else {
					f.refuse(frame, -32600, read[0])
				}
				if frame := f.expect("thread/turns/list"); read[1] == "" {
					f.refuse(frame, -32600, broken)
				} else {
					f.reply(frame, read[1])
				}
			}
			<-r.done
			if got := r.got[len(r.got)-1]; !reflect.DeepEqual(got, handoff.Update(c.end)) {
				t.Errorf("got %+v, want %+v", got, c.end)
			}
			f.quiet()
		}))
	}
}

// TestReconcileInALegacySession: in a legacy session, the user's messages are read with the turns.
func TestReconcileInALegacySession(t *testing.T) {
	for name, c := range map[string]struct {
		client string
		want   handoff.TurnID
	}{"ours": {"m1", turn1}, "somebody else's": {"desk", ""}} {
		t.Run(name, func(t *testing.T) {
			withThread(t, watermark, func(t *testing.T, f *fake, link *servers.Link, at handoff.Attached) {
				s := reconcile(t.Context(), at)
				says := func(turn, client string) string {
					return fmt.Sprintf(`{"id":%q,"status":"completed","completedAt":1,"items":[%s],"error":null}`, turn,
						userSays(client))
				}
				for look := 0; look == 0 || c.want == "" && look < 2; look++ {
					sleep(reconcileFor)
					f.reply(f.expect("thread/resume"), threadJSON(thread1, idle, turnJSON(turn1, "completed", true)+","+watermark))
					f.refuse(f.expect("thread/items/list"), -32601, "thread/items/list is not supported yet")
					f.reply(f.expect("thread/turns/list"),
						`{"data":[`+says(turn1, c.client)+","+says(turn2, "m0")+`],"nextCursor":null}`)
				}
				if got := s.get(t); got != c.want {
					t.Errorf("turn %q, want %q", got, c.want)
				}
			})
		})
	}
}
