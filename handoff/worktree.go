package handoff

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
)

// A Worktree is a working tree of git that Switchboard made for one session, on a branch of its own.
type Worktree struct {
	Name      string `json:"name"`
	Branch    string `json:"branch"`
	Directory string `json:"directory"` // of the session, in the tree
	// Root is the directory of the tree, and Of the one beside it from whose repository it was made.
	Root string `json:"-"`
	Of   string `json:"-"`
}

// A Planter makes threads in worktrees. A [Fleet] may be a Planter.
type Planter interface {
	// CreateIn is [Fleet.Create], but the thread begins in a worktree of this name if always is set or the project of
	// the target is one whose sessions do. The same name is the same worktree: a repetition makes no second one. If the
	// thread is not made, the worktree is removed again.
	CreateIn(ctx context.Context, t Target, name string, always bool) (Attached, error)
}

// Names of worktrees: a worktree of /src/api is in /src/api-worktrees/NAME, on the branch switchboard/NAME.
const (
	WorktreeDirs   = "-worktrees"   // follows the directory of the repository
	WorktreeBranch = "switchboard/" // precedes the name
)

// worktreeName matches the names that [WorktreeName] returns.
var worktreeName = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*-[0-9a-f]{8}$`)

// Bounds of the words in the name of a worktree.
const (
	maxWorktreeWords = 4
	maxWorktreeText  = 32 // bytes
)

// IsWorktreeName reports whether a text has the form of a worktree's name: letters a-z, digits and single dashes, at
// most 41 bytes.
func IsWorktreeName(name string) bool {
	return len(name) <= maxWorktreeText+9 && worktreeName.MatchString(name)
}

// WorktreeName returns the name of the worktree for a piece of work: its first words, for people, and eight digits of
// a hash of its id, which tell it from all others. The same id and words give the same name.
func WorktreeName(words, id string) string {
	var kept []string
	size := 0
	for word := range strings.FieldsFuncSeq(strings.ToLower(Clip(words, 1<<10)), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9')
	}) {
		if size += len(word) + 1; len(kept) == maxWorktreeWords || size > maxWorktreeText {
			break
		}
		kept = append(kept, word)
	}
	if len(kept) == 0 {
		kept = []string{"work"}
	}
	sum := sha256.Sum256([]byte(id))
	return strings.Join(kept, "-") + "-" + hex.EncodeToString(sum[:4])
}

// WorktreeAt returns the worktree that a directory is in, by its path alone; nil: it is in none that Switchboard made.
func WorktreeAt(dir string) *Worktree {
	for at := 0; ; {
		i := strings.Index(dir[at:], WorktreeDirs+"/")
		if i < 0 {
			return nil
		}
		of := dir[:at+i]
		at += i + len(WorktreeDirs) + 1
		name, _, _ := strings.Cut(dir[at:], "/")
		if IsWorktreeName(name) && strings.HasPrefix(of, "/") && !strings.HasSuffix(of, "/") {
			return &Worktree{
				Name: name, Branch: WorktreeBranch + name, Directory: dir, Root: of + WorktreeDirs + "/" + name, Of: of,
			}
		}
	}
}

// Home returns the directory of the repository that stands for the session's: the same one, outside of the tree.
func (w Worktree) Home() string { return w.Of + strings.TrimPrefix(w.Directory, w.Root) }
