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

// How long each kind of request may take. On a busy machine they took 2 to 350 ms.
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
	overloadTries = 5 // the server is overloaded
	closingTries  = 7 // the server is unloading the thread; within three seconds
	goneTries     = 4 // the thread to resume is gone; within a third of a second
)

// overloaded are the pauses between these tries.
var overloaded = handoff.Backoff{First: 50 * time.Millisecond, Longest: 2 * time.Second}

// maxTries returns how often a request is sent at most that was refused with err.
func maxTries(method string, err error) int {
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

// A client is the closed set of requests to an app-server. None of its methods sends a method that a caller names.
// Errors are those of [jsonrpc.Peer.Call].
type client struct{ peer *jsonrpc.Peer }

// initialize initializes the connection and returns the server's version.
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

// account reports whether the server can use its model: somebody is signed in, or that is not needed.
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

// threadResume loads a thread, if it is not loaded, and subscribes to it. The result has the n newest turns.
func (c client) threadResume(
	ctx context.Context, id string, n int, onResult func(*threadResult),
) (*threadResult, error) {
	page := turnsRequest{Limit: n, ItemsView: "notLoaded"}
	params := threadResumeParams{ThreadID: id, ExcludeTurns: true, InitialTurnsPage: page}
	return c.subscribing(ctx, "thread/resume", params, onResult)
}

// subscribing sends thread/start, thread/resume or thread/fork, and so subscribes to the thread. onResult runs before
// the next frame is read, since the result is older than every later frame.
func (c client) subscribing(
	ctx context.Context, method string, p any, onResult func(*threadResult),
) (*threadResult, error) {
	var result threadResult
	err := c.ask(ctx, method, p, attachTimeout, &result, inReader(onResult))
	return &result, err
}

// threadUnsubscribe ends the subscription of this connection.
func (c client) threadUnsubscribe(ctx context.Context, thread string) error {
	return c.ask(ctx, "thread/unsubscribe", threadParams{thread}, detachTimeout, nil, nil)
}

// sourceKinds are the sources whose threads are listed: all but subagents. Set once.
var sourceKinds = []string{"cli", "vscode", "exec", "appServer", "unknown"}

// threadList returns a page of the threads that ran, newest first, of all model providers. after is the cursor of the
// page before; nil: the first page. Only ctx bounds the time: Codex would go on with a list that we have given up.
func (c client) threadList(ctx context.Context, limit int, after *string) (threadListResult, error) {
	params := threadListParams{
		Cursor: after, SourceKinds: sourceKinds, UseStateDBOnly: after != nil, SortKey: "recency_at", SortDirection: "desc",
		ModelProviders: []string{},
	}
	var result threadListResult
	err := withFewer(min(limit, maxPage), func(limit int) error {
		params.Limit = limit
		return c.retry(ctx, "thread/list", params, &result, nil)
	})
	return result, err
}

// threadRead describes one thread.
func (c client) threadRead(ctx context.Context, thread string) (wireThread, error) {
	var result threadReadResult
	err := c.ask(ctx, "thread/read", threadParams{thread}, readTimeout, &result, nil)
	return result.Thread, err
}

// turnsList returns a page of turns, newest first. after is the cursor of the page before; nil: the first page. view is
// notLoaded, summary or full.
func (c client) turnsList(
	ctx context.Context, thread string, after *string, limit int, view string,
) (turnsPage, error) {
	params := turnsListParams{ThreadID: thread, Cursor: after, turnsRequest: turnsRequest{Limit: limit, ItemsView: view}}
	var result turnsPage
	err := c.ask(ctx, "thread/turns/list", params, readTimeout, &result, nil)
	return result, err
}

// archive archives a thread, or restores it.
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

// itemsPage is how many items are read at once. With outputs and pictures they may be too long: then fewer are read.
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
	err := withFewer(itemsPage, func(limit int) error {
		params.Limit = limit
		return c.ask(ctx, "thread/items/list", params, readTimeout, &result, nil)
	})
	if refusedAs(err, refusedItems) {
		return c.itemsOfTurns(ctx, params.ThreadID, params.TurnID)
	}
	return result, err
}

// itemsOfTurns returns the items of a thread's newest turns, or of one of them, newest first. It is for threads whose
// history is of the kind "legacy": those that Codex before 0.155 began, also in newer versions. The ids of these items
// are not those of their notifications.
func (c client) itemsOfTurns(ctx context.Context, thread, turn string) (itemsListResult, error) {
	var page turnsPage
	err := withFewer(searchTurns, func(limit int) (err error) {
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

// turnStart starts a turn, in one try. It is not repeated even if the server is overloaded.
func (c client) turnStart(ctx context.Context, p turnStartParams, onResult func(*turnResult)) (*turnResult, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, errTimeout)
	defer cancel()
	var result turnResult
	if err := c.peer.CallIn(ctx, "turn/start", p, &result, inReader(onResult)); err != nil {
		return nil, err
	}
	if result.Turn.ID == "" {
		return nil, &servers.UnansweredError{Cause: jsonrpc.ErrUnreadable}
	}
	return &result, nil
}

// turnSteer adds input to a running turn.
func (c client) turnSteer(ctx context.Context, thread, turn string, input []userInput) error {
	params := turnSteerParams{ThreadID: thread, ExpectedTurnID: turn, Input: input, ClientUserMessageID: steerID}
	return c.ask(ctx, "turn/steer", params, controlTimeout, new(turnSteerResult), nil)
}

// turnInterrupt interrupts a turn. The turn id must not be empty: the server would interrupt whichever turn runs.
func (c client) turnInterrupt(ctx context.Context, thread, turn string) error {
	return c.ask(ctx, "turn/interrupt", turnInterruptParams{thread, turn}, controlTimeout, nil, nil)
}

// goalGet returns the goal of a thread.
func (c client) goalGet(ctx context.Context, thread string) (wireGoal, error) {
	var result struct {
		Goal wireGoal `json:"goal"`
	}
	err := c.ask(ctx, "thread/goal/get", threadParams{thread}, readTimeout, &result, nil)
	return result.Goal, err
}

// goalSet sets or pauses the goal of a thread.
func (c client) goalSet(ctx context.Context, p goalSetParams) error {
	return c.ask(ctx, "thread/goal/set", p, controlTimeout, &struct{}{}, nil)
}

// answer responds to a request of the server.
func (c client) answer(ctx context.Context, id json.RawMessage, result any) error {
	ctx, cancel := context.WithTimeoutCause(ctx, controlTimeout, errTimeout)
	defer cancel()
	return c.peer.Answer(ctx, id, result)
}

// ask sends a request, again if the server cannot take it now, and decodes the result.
func (c client) ask(
	ctx context.Context, method string, params any, timeout time.Duration, result any, onResult func(jsonrpc.Reply),
) error {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, errTimeout)
	defer cancel()
	return c.retry(ctx, method, params, result, onResult)
}

// retry is like ask, but only ctx bounds the time.
func (c client) retry(ctx context.Context, method string, params, result any, onResult func(jsonrpc.Reply)) error {
	for try := 1; ; try++ {
		err := c.peer.CallIn(ctx, method, params, result, onResult)
		if err == nil || try >= maxTries(method, err) {
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

// inReader returns a handler of responses, which runs in the reader. It decodes the result and calls onResult.
func inReader[T any](onResult func(*T)) func(jsonrpc.Reply) {
	if onResult == nil {
		return nil
	}
	return func(r jsonrpc.Reply) {
		result := new(T)
		if r.Err == nil && json.Unmarshal(r.Result, result) == nil {
			onResult(result)
		}
	}
}

// needed is the oldest version that was tried. Older ones also initialize, but 0.140 has no thread/items/list and no
// recency_at, and 0.145 reports no commands.
var needed = [2]int{0, 150}

// checkVersion returns an error for a server that is too old. It accepts a server without a version, and version 0.0,
// which private builds have.
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
