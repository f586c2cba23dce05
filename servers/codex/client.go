package codex

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"switchboard/handoff"
	"switchboard/servers"
	"switchboard/servers/jsonrpc"
)

// How long each kind of request may take. Measured on a busy machine they take 2–350 ms.
const (
	handshakeTimeout = 10 * time.Second
	readTimeout      = 10 * time.Second // thread/read and its pages
	attachTimeout    = 20 * time.Second // thread/start, thread/resume, thread/fork: a cold server loads plugins
	startTimeout     = 30 * time.Second // turn/start
	controlTimeout   = 10 * time.Second // turn/steer, turn/interrupt, answers to questions
	detachTimeout    = 2 * time.Second  // thread/unsubscribe
)

// An overloaded server refuses at once, as does one that is just unloading the thread. At one moment of that it
// finds the thread neither loaded nor stored (1 of 40 tries around it on a busy machine; 20 ms later it was there),
// so that a thread that is resumed is gone when it stays so. Everything but turn/start is then asked again.
const (
	overloadTries = 5
	closingTries  = 7 // three seconds
	goneTries     = 4 // a third of a second
)

var overloaded = handoff.Backoff{First: 50 * time.Millisecond, Longest: 2 * time.Second}

// askedAgain is how often a request is sent at most that was refused with err.
func askedAgain(method string, err error) int {
	switch {
	case refusedAs(err, refusedOverloaded):
		return overloadTries
	case refusedAs(err, refusedClosing):
		return closingTries
	case method == "thread/resume" && refusedAs(err, refusedGone):
		return goneTries
	}
	return 1
}

var errTimeout = errors.New("timed out")

// A client is the closed set of what can be asked of an app-server. There is no method that passes a name
// through. Errors are those of [jsonrpc.Peer.Call].
type client struct{ peer *jsonrpc.Peer }

// initialize shakes hands and returns the server's version.
func (c client) initialize(ctx context.Context) (string, error) {
	own := "devel"
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		own = strings.Trim(info.Main.Version, "()")
	}
	params := initializeParams{
		ClientInfo:   clientInfo{Name: "switchboard", Version: own},
		Capabilities: capabilities{ExperimentalAPI: true, RequiredHumanApproval: true, OptOutNotificationMethods: optOut},
	}
	var result initializeResult
	if err := c.ask(ctx, "initialize", params, handshakeTimeout, &result, nil); err != nil {
		return "", err
	}
	if err := c.peer.Tell(ctx, "initialized", nil); err != nil {
		return "", err
	}
	return serverVersion(result.UserAgent), nil
}

// account returns whether it can use its model: nobody is signed in where somebody must be.
func (c client) account(ctx context.Context) (signedIn bool, err error) {
	var result struct {
		Account json.RawMessage `json:"account"`
		Needed  bool            `json:"requiresOpenaiAuth"`
	}
	if err := c.ask(ctx, "account/read", struct{}{}, readTimeout, &result, nil); err != nil {
		return false, err
	}
	return !result.Needed || len(result.Account) > 0 && string(result.Account) != "null", nil
}

// threadStart makes a thread and subscribes to it. land runs before the next frame is read.
func (c client) threadStart(ctx context.Context, p threadStartParams, land func(*threadResult)) (*threadResult, error) {
	return c.subscribing(ctx, "thread/start", p, land)
}

// threadResume loads a thread if need be and subscribes to it. land runs before the next frame is read:
// what the response tells is older than every later frame. n is how many of its newest turns come with it.
func (c client) threadResume(ctx context.Context, id string, n int, land func(*threadResult)) (*threadResult, error) {
	page := turnsRequest{Limit: n, ItemsView: "notLoaded"}
	params := threadResumeParams{ThreadID: id, ExcludeTurns: true, InitialTurnsPage: page}
	return c.subscribing(ctx, "thread/resume", params, land)
}

// threadFork copies a thread up to and with a turn, or all of it, and subscribes to the copy. land runs
// before the next frame is read.
func (c client) threadFork(ctx context.Context, p threadForkParams, land func(*threadResult)) (*threadResult, error) {
	p.ExcludeTurns = true
	return c.subscribing(ctx, "thread/fork", p, land)
}

func (c client) subscribing(
	ctx context.Context,
	method string,
	p any,
	land func(*threadResult),
) (*threadResult, error) {
	var result threadResult
	err := c.ask(ctx, method, p, attachTimeout, &result, landing(land))
	return &result, err
}

// threadUnsubscribe ends the subscription of this connection.
func (c client) threadUnsubscribe(ctx context.Context, thread string) error {
	return c.ask(ctx, "thread/unsubscribe", threadParams{thread}, detachTimeout, nil, nil)
}

// sourceKinds are of whom threads are listed: of everybody but subagents. Set once.
var sourceKinds = []string{"cli", "vscode", "exec", "appServer", "unknown"}

// threadList gives a page of the threads that ran, newest first, of every model provider. after is where the page
// before it ended; nil: the first. Only ctx bounds it: codex goes on with a list that is given up.
func (c client) threadList(ctx context.Context, limit int, after *string) (threadListResult, error) {
	params := threadListParams{
		Cursor: after, SourceKinds: sourceKinds, UseStateDBOnly: after != nil, SortKey: "recency_at", SortDirection: "desc",
		ModelProviders: []string{},
	}
	var result threadListResult
	err := less(min(limit, maxPage), func(limit int) error {
		params.Limit = limit
		return c.again(ctx, "thread/list", params, &result, nil)
	})
	return result, err
}

// threadRead describes one thread.
func (c client) threadRead(ctx context.Context, thread string) (wireThread, error) {
	var result threadReadResult
	err := c.ask(ctx, "thread/read", threadParams{thread}, readTimeout, &result, nil)
	return result.Thread, err
}

// turnsList returns the newest turns, newest first, or those after a page of them. after is its cursor; nil: the
// newest. view is notLoaded, summary or full.
func (c client) turnsList(
	ctx context.Context,
	thread string,
	after *string,
	limit int,
	view string,
) (turnsPage, error) {
	params := turnsListParams{ThreadID: thread, Cursor: after, turnsRequest: turnsRequest{Limit: limit, ItemsView: view}}
	var result turnsPage
	err := c.ask(ctx, "thread/turns/list", params, readTimeout, &result, nil)
	return result, err
}

// archive puts a thread away, or brings it back.
func (c client) archive(ctx context.Context, thread string, on bool) error {
	method := "thread/archive"
	if !on {
		method = "thread/unarchive"
	}
	return c.ask(ctx, method, threadParams{ThreadID: thread}, controlTimeout, &struct{}{}, nil)
}

func (c client) rename(ctx context.Context, thread, name string) error {
	return c.ask(ctx, "thread/name/set", threadNameParams{thread, name}, controlTimeout, &struct{}{}, nil)
}

// itemsPage is how many items are read at once, unless they are too long together: outputs and pictures come
// with them.
const itemsPage = 50

// itemsList returns the last finished items of a turn, oldest first.
func (c client) itemsList(ctx context.Context, thread, turn string) ([]wireItem, error) {
	page, err := c.itemsBefore(ctx, itemsListParams{ThreadID: thread, TurnID: turn})
	items := make([]wireItem, 0, len(page.Data))
	for _, entry := range slices.Backward(page.Data) {
		items = append(items, entry.Item)
	}
	return items, err
}

// itemsBefore returns a page of finished items of a thread or turn, newest first.
func (c client) itemsBefore(ctx context.Context, params itemsListParams) (itemsListResult, error) {
	params.SortDirection = "desc"
	var result itemsListResult
	err := less(itemsPage, func(limit int) error {
		params.Limit = limit
		return c.ask(ctx, "thread/items/list", params, readTimeout, &result, nil)
	})
	if refusedAs(err, refusedItems) {
		return c.itemsOfTurns(ctx, params.ThreadID, params.TurnID)
	}
	return result, err
}

// itemsOfTurns returns the items of a thread's newest turns, or of one of them, newest first. A session whose
// history is of the kind "legacy" lists its items only so: all that codex before 0.155 began, also in newer ones.
// They have other ids there than those that were heard.
func (c client) itemsOfTurns(ctx context.Context, thread, turn string) (itemsListResult, error) {
	var page turnsPage
	err := less(searchTurns, func(limit int) (err error) {
		page, err = c.turnsList(ctx, thread, nil, limit, "full")
		return err
	})
	result := itemsListResult{}
	for _, w := range page.Data {
		for _, item := range slices.Backward(w.Items) {
			if turn == "" || turn == w.ID {
				result.Data = append(result.Data, itemEntry{w.ID, item})
			}
		}
	}
	return result, err
}

// turnStart starts a turn: one try, never repeated, not even when the server is overloaded.
func (c client) turnStart(ctx context.Context, p turnStartParams, land func(*turnResult)) (*turnResult, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, errTimeout)
	defer cancel()
	var result turnResult
	if err := c.peer.CallIn(ctx, "turn/start", p, &result, landing(land)); err != nil {
		return nil, err
	}
	if result.Turn.ID == "" {
		return nil, &servers.UnansweredError{Cause: jsonrpc.ErrUnreadable}
	}
	return &result, nil
}

// turnSteer adds input to a running turn.
func (c client) turnSteer(ctx context.Context, thread, turn string, input []userInput) error {
	params := turnSteerParams{ThreadID: thread, ExpectedTurnID: turn, Input: input}
	return c.ask(ctx, "turn/steer", params, controlTimeout, new(turnSteerResult), nil)
}

// turnInterrupt interrupts a turn. The turn id must not be empty: the server would interrupt any turn.
func (c client) turnInterrupt(ctx context.Context, thread, turn string) error {
	return c.ask(ctx, "turn/interrupt", turnInterruptParams{thread, turn}, controlTimeout, nil, nil)
}

// answer responds to a request of the server.
func (c client) answer(ctx context.Context, id json.RawMessage, result any) error {
	ctx, cancel := context.WithTimeoutCause(ctx, controlTimeout, errTimeout)
	defer cancel()
	return c.peer.Answer(ctx, id, result)
}

// ask sends a request that may be repeated when the server cannot take it now, and decodes the result.
func (c client) ask(
	ctx context.Context, method string, params any, timeout time.Duration, result any, land func(jsonrpc.Reply),
) error {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, errTimeout)
	defer cancel()
	return c.again(ctx, method, params, result, land)
}

// again is ask, bounded by ctx alone.
func (c client) again(ctx context.Context, method string, params, result any, land func(jsonrpc.Reply)) error {
	for try := 1; ; try++ {
		err := c.peer.CallIn(ctx, method, params, result, land)
		if err == nil || try >= askedAgain(method, err) {
			return err
		}
		select {
		case <-time.After(overloaded.Pause(try - 1)):
		case <-ctx.Done():
			return err
		case <-c.peer.Done():
			return err
		}
	}
}

// landing decodes a result for a function that runs in the reader.
func landing[T any](land func(*T)) func(jsonrpc.Reply) {
	if land == nil {
		return nil
	}
	return func(r jsonrpc.Reply) {
		result := new(T)
		if r.Err == nil && json.Unmarshal(r.Result, result) == nil {
			land(result)
		}
	}
}

// needed is the oldest version that was tried. Older ones shake hands as well: 0.140 does not know thread/items/list
// and recency_at, 0.145 reports no commands.
var needed = [2]int{0, 150}

// checkVersion refuses a server that is too old. What tells no version, or 0.0 as a build of one's own does, is taken
// as it is.
func checkVersion(server, version string) error {
	major, rest, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	end := strings.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' }) // a dot, or a dash before "alpha"
	if end < 0 {
		end = len(rest)
	}
	found := make([]int, 0, len(needed))
	for _, part := range []string{major, rest[:end]} {
		n, err := strconv.Atoi(part)
		if err != nil {
			return nil
		}
		found = append(found, n)
	}
	if slices.Compare(found, needed[:]) >= 0 || slices.Compare(found, []int{0, 0}) == 0 {
		return nil
	}
	runs := fmt.Sprintf("runs codex %d.%d; %d.%d is needed", found[0], found[1], needed[0], needed[1])
	return handoff.Fault(handoff.CodeOutdated, server+" "+runs, "it "+runs)
}

// serverVersion reads "0.169.0" out of "switchboard/0.169.0 (Debian 12.0.0; x86_64) …".
func serverVersion(userAgent string) string {
	_, rest, ok := strings.Cut(userAgent, "/")
	if !ok {
		return ""
	}
	version, _, _ := strings.Cut(rest, " ")
	return handoff.ClipRunes(version, titleRunes)
}
