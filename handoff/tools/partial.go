package tools

import (
	"encoding/json"
	"strings"
)

// ReadTarget reads where work will go from the beginning of a function call's arguments. The schema's
// properties come in the order server, thread_id, prompt, so it is known once the thread is complete or
// the prompt begins. It is a guess: what counts is the whole request.
func ReadTarget(partial string) (CodexArguments, bool) {
	var args CodexArguments
	d := json.NewDecoder(strings.NewReader(partial))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return CodexArguments{}, false
	}
	for {
		key, err := d.Token()
		if err != nil {
			return CodexArguments{}, false
		}
		if key == "prompt" {
			break
		}
		value, err := d.Token()
		if err != nil {
			return CodexArguments{}, false
		}
		text, isText := value.(string)
		switch {
		case key == "server" && isText:
			args.Server = text
		case key == "thread_id" && (isText || value == nil):
			args.Thread = text
		default:
			return CodexArguments{}, false
		}
		if args.Server != "" && args.Thread != "" {
			break
		}
	}
	args.Server, args.Thread = strings.TrimSpace(args.Server), strings.TrimSpace(args.Thread)
	if len(args.Server) > maxName || len(args.Thread) > maxName {
		return CodexArguments{}, false
	}
	return args, true
}
