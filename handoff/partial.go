package handoff

import (
	"encoding/json"
	"strings"
)

// readTarget reads where work will go from the beginning of a function call's arguments. The schema's
// properties come in the order server, thread_id, prompt, so it is known once the thread is complete or
// the prompt begins. It is a guess: what counts is the whole request.
func readTarget(partial string) (codexArguments, bool) {
	var args codexArguments
	d := json.NewDecoder(strings.NewReader(partial))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return codexArguments{}, false
	}
	for {
		key, err := d.Token()
		if err != nil {
			return codexArguments{}, false
		}
		if key == "prompt" {
			break
		}
		value, err := d.Token()
		if err != nil {
			return codexArguments{}, false
		}
		text, isText := value.(string)
		switch {
		case key == "server" && isText:
			args.Server = text
		case key == "thread_id" && (isText || value == nil):
			args.Thread = text
		default:
			return codexArguments{}, false
		}
		if args.Server != "" && args.Thread != "" {
			break
		}
	}
	args.Server, args.Thread = strings.TrimSpace(args.Server), strings.TrimSpace(args.Thread)
	if len(args.Server) > maxName || len(args.Thread) > maxName {
		return codexArguments{}, false
	}
	return args, true
}
