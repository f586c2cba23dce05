package host

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
)

// heldBy matches Codex's error for a thread that another process has open.
var heldBy = regexp.MustCompile(`thread ([0-9a-f-]{36}) already has an active writer`)

// withHolder adds to the error that a thread is open elsewhere which program has it open, where that is known.
func withHolder(id json.RawMessage, why string, data []byte) []byte {
	found := heldBy.FindStringSubmatch(why)
	if found == nil {
		return data
	}
	pid := holder(filepath.Join(codexHome(), "thread-writer-locks", found[1]+".lock"))
	if pid == 0 {
		return data
	}
	program := programOf(pid, lookUp)
	answer, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "error": map[string]any{
		"code": codeRefused, "message": fmt.Sprintf("%s: %s, process %d", found[0], cmp.Or(program, "a program"), pid),
		"data": map[string]string{"holder": program},
	}})
	if err != nil {
		return data
	}
	return answer
}

// holder returns the number of the process that has a lock on a file; 0: none has, or it cannot be found out.
func holder(path string) int {
	about, err := os.Stat(path)
	if err != nil {
		return 0
	}
	text, err := os.ReadFile("/proc/locks")
	if err != nil { // another system than Linux
		text, _ = exec.Command("lsof", "-t", path).Output() // without lsof the holder stays unknown
		first, _, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
		pid, _ := strconv.Atoi(first)
		return pid
	}
	is, ok := about.Sys().(*syscall.Stat_t)
	if !ok {
		return 0
	}
	// A lock is a line like "3: FLOCK  ADVISORY  WRITE 5903 fe:00:11436817 0 EOF". A waiting process has one word more.
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if len(words) == 8 && words[3] == "WRITE" && strings.HasSuffix(words[5], ":"+strconv.FormatUint(is.Ino, 10)) {
			pid, _ := strconv.Atoi(words[4])
			return max(pid, 0)
		}
	}
	return 0
}

// programs are editors and terminals, by the prefix of their processes' names. Set once.
var programs = []struct{ process, name string }{
	{"code-insiders", "VS Code"}, {"code", "VS Code"}, {"codium", "VSCodium"}, {"cursor", "Cursor"}, {"windsurf", "Windsurf"},
	{"zed", "Zed"}, {"idea", "IntelliJ"}, {"pycharm", "PyCharm"}, {"goland", "GoLand"}, {"webstorm", "WebStorm"},
	{"nvim", "Neovim"}, {"vim", "Vim"}, {"emacs", "Emacs"}, {"tmux", "tmux"}, {"iterm", "iTerm"}, {"ghostty", "Ghostty"},
	{"alacritty", "Alacritty"}, {"kitty", "kitty"}, {"wezterm", "WezTerm"}, {"gnome-terminal", "Terminal"},
	{"konsole", "Konsole"}, {"terminal", "Terminal"}, {"sshd", "SSH"},
}

// maxParents bounds how many ancestors of a process are looked at.
const maxParents = 16

// A psEntry is a process as ps prints it.
type psEntry struct {
	parent  int
	tty     string // "?" or "??": none
	program string // its name, without its directory
}

// programOf returns the name of the program that started a process: an editor or terminal of the list, or "Terminal"
// for a process that has one. "": none of these.
func programOf(pid int, look func(pid int) (psEntry, bool)) string {
	terminal := ""
	for range maxParents {
		p, ok := look(pid)
		if !ok || pid <= 1 {
			break
		}
		if terminal == "" && strings.Trim(p.tty, "?-") != "" {
			terminal = "Terminal"
		}
		for _, known := range programs {
			if strings.HasPrefix(strings.ToLower(p.program), known.process) && !strings.HasPrefix(p.program, "codex") {
				return known.name
			}
		}
		pid = p.parent
	}
	return terminal
}

// lookUp returns a process by its number; false: there is none, or ps fails.
func lookUp(pid int) (psEntry, bool) {
	text, err := exec.Command("ps", "-o", "ppid=,tty=,comm=", "-p", strconv.Itoa(pid)).Output()
	words := strings.Fields(string(text))
	if err != nil || len(words) < 3 {
		return psEntry{}, false
	}
	parent, err := strconv.Atoi(words[0])
	return psEntry{parent, words[1], filepath.Base(strings.Join(words[2:], " "))}, err == nil
}
