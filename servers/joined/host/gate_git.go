package host

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"switchboard/servers"
	"switchboard/servers/trees"
)

// maxGits is how many commands of git run at once for one connection. More are refused.
const maxGits = 4

// gitArgs allows the few commands of git by which worktrees are made and removed: where the owner lets agents change
// files, and in the directories that they allow.
func gitArgs(g *gate, c *call, name string) error {
	var args []string
	cwd := c.params.text("cwd")
	if json.Unmarshal(c.params[name], &args) != nil || trees.Check(cwd, args) != nil {
		return errMethod
	}
	if !trees.Writes(args) {
		return nil
	}
	if g.policy.Ceiling == Ceilings[0] {
		return errReads
	}
	return g.policy.mayHold(trees.Place(args))
}

// mayHold returns why a worktree may not be at a place; nil: it may. The directory of the worktrees need not exist yet;
// then the one that it will be in decides.
func (p Policy) mayHold(place string) error {
	if place == "" {
		return nil
	}
	all := filepath.Dir(place)
	for _, at := range []string{place, all} {
		if _, err := os.Lstat(at); !errors.Is(err, fs.ErrNotExist) {
			return p.mayBeIn(at)
		}
	}
	return p.mayBeIn(filepath.Dir(all))
}

// answersGit has a command of git that was judged run and answered beside the reader. Where too many run, it writes the
// refusal itself: a service that reads nothing is not read from either.
func (g *gate) answersGit(ctx context.Context, m message, service *sender, answering *sync.WaitGroup) error {
	g.take(string(m.id))
	select {
	case g.gits <- struct{}{}:
		answering.Go(func() {
			defer func() { <-g.gits }()
			_ = service.Write(runGit(ctx, m)) // the reader sees the loss
		})
		return nil
	default:
		return service.Write(refusal(m.id, errGits))
	}
}

// runGit runs a command of git that was judged, and returns the answer.
func runGit(ctx context.Context, m message) []byte {
	var request struct {
		Params trees.Request `json:"params"`
	}
	_ = json.Unmarshal(m.passes, &request) // it was judged
	git := trees.Here(servers.ChildEnv(os.Environ(), nil))
	ran, err := git(ctx, request.Params.Cwd, request.Params.Args)
	if err != nil {
		return refusal(m.id, err)
	}
	return result(m.id, ran)
}
