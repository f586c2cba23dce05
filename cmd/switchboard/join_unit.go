package main

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

// Names of the service that runs `switchboard join` on a machine.
const (
	unitName  = "switchboard-machine.service" // of systemd
	agentName = "dev.switchboard.machine"     // of launchd
)

// unitVariables are the environment variables whose present values the service gets: they say where programs and their
// files are. Set once.
var unitVariables = []string{
	"PATH", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "CODEX_HOME", "CLAUDE_CONFIG_DIR", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY",
	"https_proxy", "http_proxy", "no_proxy",
}

// systemdUnit returns the text of the systemd unit. The agents that the service starts outlive it.
func systemdUnit(program string, env func(string) string) string {
	var text strings.Builder
	text.WriteString("[Unit]\nDescription=Switchboard: the agents of this machine\nAfter=network-online.target\n\n[Service]\n")
	text.WriteString("ExecStart=" + systemdWord(program) + " join\nRestart=always\nRestartSec=5\nRestartPreventExitStatus=" +
		strconv.Itoa(exitRefused) + "\nKillMode=process\n")
	for _, name := range unitVariables {
		if value := env(name); value != "" {
			text.WriteString("Environment=" + systemdWord(name+"="+value) + "\n")
		}
	}
	text.WriteString("\n[Install]\nWantedBy=default.target\n")
	return text.String()
}

// systemdWord quotes a word for a unit file.
func systemdWord(word string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "%", "%%", "$", "$$", "\n", " ").Replace(word) + `"`
}

// launchdAgent returns the text of the launchd agent that does the same on macOS.
func launchdAgent(program string, env func(string) string) string {
	word := func(text string) string {
		var out strings.Builder
		_ = xml.EscapeText(&out, []byte(text)) // writing to a builder never fails
		return "<string>" + out.String() + "</string>"
	}
	var variables strings.Builder
	for _, name := range unitVariables {
		if value := env(name); value != "" {
			variables.WriteString("<key>" + name + "</key>" + word(value))
		}
	}
	return `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0"><dict>
<key>Label</key>` + word(agentName) + `
<key>ProgramArguments</key><array>` + word(program) + `<string>join</string></array>
<key>EnvironmentVariables</key><dict>` + variables.String() + `</dict>
<key>RunAtLoad</key><true/>
<key>KeepAlive</key><true/>
<key>ThrottleInterval</key><integer>30</integer>
<key>AbandonProcessGroup</key><true/>
</dict></plist>
`
}

// unitPath returns the path of the unit file for this user.
func unitPath(env func(string) string) (string, error) {
	dir, home, err := configHome(env)
	if runtime.GOOS == "darwin" {
		return filepath.Join(home, "Library", "LaunchAgents", agentName+".plist"), err
	}
	return filepath.Join(dir, "systemd", "user", unitName), err
}

// unitCommands returns the commands that start the service of a unit file, and those that end it.
func unitCommands(path string) (start, end [][]string) {
	if runtime.GOOS == "darwin" {
		domain := "gui/" + strconv.Itoa(os.Getuid())
		return [][]string{{"launchctl", "bootstrap", domain, path}},
			[][]string{{"launchctl", "bootout", domain + "/" + agentName}}
	}
	return [][]string{
		{"systemctl", "--user", "daemon-reload"}, {"systemctl", "--user", "enable", "--now", unitName},
	}, [][]string{{"systemctl", "--user", "disable", "--now", unitName}}
}

// runAll runs commands one after another, until one fails.
func runAll(ctx context.Context, commands [][]string) error {
	for _, c := range commands {
		if out, err := exec.CommandContext(ctx, c[0], c[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", strings.Join(c, " "), err, strings.TrimSpace(string(out)))
		}
	}
	return nil
}

// installUnit installs and starts the service that runs `switchboard join`.
func installUnit(ctx context.Context, env func(string) string, say func(string)) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	path, err := unitPath(env)
	if err != nil {
		return err
	}
	text := systemdUnit(program, env)
	if runtime.GOOS == "darwin" {
		text = launchdAgent(program, env)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return err
	}
	start, end := unitCommands(path)
	if err := runAll(ctx, start); err != nil {
		_ = runAll(ctx, end) // fails if the unit was not even loaded
		return errors.Join(fmt.Errorf("the service could not be started (%w): it is not installed, and "+
			"`switchboard join` keeps the line while it runs", err), os.Remove(path))
	}
	say("it runs as a service from now on: " + path)
	if runtime.GOOS == "linux" {
		say("`loginctl enable-linger` lets it run while you are not logged in")
	}
	say("to remove it: `switchboard leave`, or " + strings.Join(end[0], " ") + " && rm " + path)
	return nil
}

// removeUnit ends the service and removes its unit file, whose path it returns; "" means that there was none.
func removeUnit(ctx context.Context, env func(string) string) (string, error) {
	path, err := unitPath(env)
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	_, end := unitCommands(path)
	if err := runAll(ctx, end); err != nil {
		return "", fmt.Errorf("the service at %s could not be ended (%w): where it does not run, remove that file, "+
			"and leave again", path, err)
	}
	return path, os.Remove(path)
}
