package verbs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"
	"unicode"

	"switchboard/handoff"
)

// maxAnswer bounds an answer of the service, in bytes. The longest is a piece of work with all its items.
const maxAnswer = 8 << 20

// A Client speaks to a running service. Its fields are set once.
type Client struct {
	HTTP *http.Client // has no timeout, because streams last
	Base string       // http://host:port
	Key  string       // "" for the socket of the state directory, which needs none
}

// A Fault is an error that the service answered.
type Fault struct {
	Status  int          // of HTTP
	Code    handoff.Code // "" if the answer was not Switchboard's
	Message string       // a sentence
	Next    string       // what to do now; may be ""
	Why     string       // why a machine is down, as a clause; else ""
	Detail  string       // for people, as the log has it; "" from a service elsewhere
}

// Error returns the service's own words.
func (f *Fault) Error() string { return strings.TrimSpace(f.What() + " " + f.Next) }

// What returns what happened, in the service's own words.
func (f *Fault) What() string {
	if f.Detail == "" || strings.Contains(f.Message, f.Detail) {
		return f.Message
	}
	return f.Message + " (" + f.Detail + ")"
}

// Sendable reports whether a key is valid in the header of a request.
func Sendable(key string) bool {
	return key == strings.TrimSpace(key) && !strings.ContainsFunc(key, unicode.IsControl)
}

// send sends a request. If the service answers with an error, that is a [*Fault].
func (c *Client) send(ctx context.Context, method, path string, body any, header http.Header) (*http.Response, error) {
	var text io.Reader = http.NoBody
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		text = bytes.NewReader(data)
	}
	r, err := http.NewRequestWithContext(ctx, method, c.Base+path, text)
	if err != nil {
		return nil, err
	}
	maps.Copy(r.Header, header)
	if c.Key != "" {
		r.Header.Set("Authorization", "Bearer "+c.Key)
	}
	resp, err := c.HTTP.Do(r)
	if err != nil {
		return nil, fmt.Errorf("no Switchboard answers: %w", err)
	}
	if resp.StatusCode >= http.StatusMultipleChoices {
		defer func() { _ = resp.Body.Close() }() // only read from
		return nil, faultOf(resp)
	}
	return resp, nil
}

// faultOf reads the error from the body of an answer.
func faultOf(resp *http.Response) *Fault {
	f := &Fault{Status: resp.StatusCode}
	text, _ := io.ReadAll(io.LimitReader(resp.Body, maxAnswer)) // after an error, what came before it
	var body struct{ Error handoff.Problem }
	if json.Unmarshal(text, &body) == nil {
		f.Code, f.Message = body.Error.Code, Plain(body.Error.Message)
		f.Next, f.Why, f.Detail = Plain(body.Error.Next), Plain(body.Error.Why), Plain(body.Error.Detail)
	}
	if f.Code == "" {
		f.Message = "What answers there is no Switchboard: " + resp.Status + "."
	}
	return f
}

// NobodyListens reports whether an error means that nothing took the connection, so that nothing was sent. A service
// that is too busy to take one is there.
func NobodyListens(err error) bool {
	return errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED)
}

// call sends a request and returns the body of the answer.
func (c *Client) call(ctx context.Context, method, path string, body any, header http.Header) ([]byte, error) {
	resp, err := c.send(ctx, method, path, body, header)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }() // only read from
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("the answer broke off: %w", err)
	case len(text) > maxAnswer:
		return nil, fmt.Errorf("the answer has more than %d MiB", maxAnswer>>20)
	}
	return text, nil
}

// get reads JSON into a value, and returns the JSON itself.
func (c *Client) get(ctx context.Context, path string, into any) ([]byte, error) {
	text, err := c.call(ctx, http.MethodGet, path, nil, nil)
	return text, decode(text, err, into)
}

// post sends a POST request, reads the JSON of the answer into a value, and returns the JSON itself.
func (c *Client) post(ctx context.Context, path string, body, into any) ([]byte, error) {
	text, err := c.call(ctx, http.MethodPost, path, body, nil)
	return text, decode(text, err, into)
}

// decode reads the JSON of an answer into a value, unless there was an error.
func decode(text []byte, err error, into any) error {
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("what answers there is no Switchboard: %w", err)
	}
	return nil
}

// show gets JSON, reads it into a value, and prints it: as JSON with --json, else by calling show.
func (t *Terminal) show(ctx context.Context, path string, into any, show func() error) error {
	text, err := t.get(ctx, path, into)
	if err != nil {
		return err
	}
	if t.JSON {
		return t.line(text)
	}
	return show()
}

// do sends a request that changes something, and says what it did; with --json it prints the answer, if it has content.
func (t *Terminal) do(ctx context.Context, method, path string, body any, did string) error {
	text, err := t.call(ctx, method, path, body, nil)
	switch {
	case err != nil || t.JSON && len(text) == 0:
		return err
	case t.JSON:
		return t.line(text)
	}
	return t.say("%s", did)
}

// say prints a line of the result.
func (t *Terminal) say(format string, args ...any) error {
	_, err := fmt.Fprintln(t.Out, Plain(fmt.Sprintf(format, args...)))
	return err
}

// line prints JSON of the service on a line of its own.
func (t *Terminal) line(text []byte) error {
	_, err := fmt.Fprintf(t.Out, "%s\n", escaped(text))
	return err
}

// Ready asks whether the service can take work.
func (c *Client) Ready(ctx context.Context) error {
	_, err := c.call(ctx, http.MethodGet, "/readyz", nil, nil)
	return err
}

// Here is what a service tells of itself.
type Here struct {
	Base  string `json:"base"`  // the URL at which this machine reaches it: http://host:port
	Voice string `json:"voice"` // the voice model and its host; "": simulated
}

// Here returns what the service that runs here tells of itself.
func (c *Client) Here(ctx context.Context) (answer Here, err error) {
	_, err = c.get(ctx, "/here", &answer)
	return answer, err
}

// errOlder says that a service does not know a request yet: it answered something else.
var errOlder = errors.New("the Switchboard that runs is older than this program: restart it")

// Login returns a link that logs a principal in to the service that runs here; "" means the owner.
func (c *Client) Login(ctx context.Context, principal string) (string, error) {
	var answer struct{ Link string }
	_, err := c.post(ctx, "/login", principal, &answer)
	if err == nil && answer.Link == "" {
		err = errOlder
	}
	return answer.Link, err
}

// ReadKeys has the service that runs here read the made keys again. alone says that it reads only the file of its state
// directory, as a single instance.
func (c *Client) ReadKeys(ctx context.Context) (alone bool, err error) {
	var answer struct{ Alone *bool }
	_, err = c.post(ctx, "/keys", nil, &answer)
	if err == nil && answer.Alone == nil {
		err = errOlder
	}
	return err == nil && *answer.Alone, err
}

// Machines returns the machines of the service that runs here that are not simulated, by name, and whether each joined;
// also those for other callers.
func (c *Client) Machines(ctx context.Context) (joined map[string]bool, err error) {
	_, err = c.get(ctx, "/machines", &joined)
	return joined, err
}

// Test has the service that runs here send a machine a request now, even if the machine is for other callers. It
// returns how long the answer took, and the machine's address; "" if it is simulated.
func (c *Client) Test(ctx context.Context, server string) (took time.Duration, address string, err error) {
	var answer struct {
		Took    int64  `json:"took_ms"`
		Address string `json:"address"`
	}
	_, err = c.post(ctx, "/machines/"+url.PathEscape(server)+"/test", struct{}{}, &answer)
	return time.Duration(answer.Took) * time.Millisecond, answer.Address, err
}
