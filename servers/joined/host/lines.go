package host

import (
	"encoding/json"
	"errors"
	"net"
	"sync"

	"switchboard/servers"
	"switchboard/servers/transport"
)

// gatedLines returns the service's end of a connection through a gate to an agent whose messages are lines.
func gatedLines(agent servers.Wire, g *acpGate) net.Conn {
	near, far := net.Pipe()
	service := transport.NewLines(far, far)
	end := sync.OnceFunc(func() {
		_ = far.Close()
		_ = agent.Close()
	})
	toAgent, toService := make(chan struct{}, 1), make(chan struct{}, 1) // semaphores: the holder writes there
	write := func(writing chan struct{}, to interface{ Write([]byte) error }, line []byte) error {
		if line == nil {
			return nil
		}
		writing <- struct{}{}
		defer func() { <-writing }()
		return to.Write(line)
	}
	go func() { // ends with either end
		defer end()
		for {
			line, err := service.Read()
			if _, long := errors.AsType[*servers.LongFrame](err); long {
				continue // a request of that size is never sent
			}
			if err != nil {
				return
			}
			passes, id, refused := g.fromService(line)
			if errors.Is(refused, errFull) {
				return
			}
			err = write(toAgent, agent, passes)
			if refused != nil && id != nil {
				err = write(toService, service, refusal(id, refused))
			}
			if err != nil {
				return
			}
		}
	}()
	go func() { // ends with either end
		defer end()
		for {
			line, err := agent.Read()
			if long, is := errors.AsType[*servers.LongFrame](err); is {
				id := long.Answers()
				if id == nil {
					continue
				}
				g.response(string(id), nil, nil) // the request is no longer pending
				if write(toService, service, refusal(id, long.Cause)) != nil {
					return
				}
				continue
			}
			if err != nil {
				return
			}
			passes, answer := g.fromAgent(line)
			if write(toService, service, passes) != nil || write(toAgent, agent, answer) != nil {
				return
			}
		}
	}()
	return near
}

// refusal returns the answer to a request that does not pass.
func refusal(id json.RawMessage, why error) []byte {
	line, _ := json.Marshal(map[string]any{ // an id that was decoded can be encoded
		"jsonrpc": "2.0", "id": id, "error": map[string]any{"code": refusedCode, "message": why.Error()},
	})
	return line
}
