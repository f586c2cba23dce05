package risk

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// What programs do. Only these tables lower a risk; a name that is in none of them is medium.
var (
	// readers only read what they are given.
	readers = setOf("ls cat head tail wc pwd echo printf true false : test [ file stat du df tree date whoami id uname which type " +
		"basename dirname realpath readlink cut tr nl diff cmp comm uniq sort grep egrep fgrep rg fd find jq column sleep seq " +
		"md5sum sha1sum sha256sum cksum strings hexdump xxd od rev tac fold fmt paste join exit return wait break continue cd pushd popd")
	// checkers run the tests and checks of a project, as the agent does all the time.
	checkers = setOf("pytest jest vitest mocha eslint tsc ruff mypy flake8 pylint staticcheck golangci-lint gofmt goimports prettier shellcheck rspec phpunit ctest tox stylelint")
	// writers change files that they are given.
	writers = setOf("mkdir touch cp mv ln patch apply_patch tee tar unzip zip gzip gunzip bzip2 xz split install rsync export set unset read sed awk gawk mawk")
	// never are high whatever they are given: root, deleting, other people's processes, the machine, other
	// machines, code that is not shown.
	never = setOf("sudo doas su pkexec run0 rm rmdir unlink shred srm trash truncate dd wipefs mkfs fdisk parted chmod chown chgrp chattr chflags setfacl xattr " +
		"kill pkill killall skill renice systemctl service launchctl rc-service journalctl crontab at batch shutdown reboot halt poweroff init mount umount swapoff " +
		"iptables nft ufw firewall-cmd ip ifconfig route sysctl modprobe insmod useradd usermod userdel groupadd passwd chpasswd visudo chsh login " +
		"ssh scp sftp ftp nc ncat netcat socat telnet mosh ngrok eval source . trap alias unalias enable hash bind complete coproc function exec fc " +
		"security keyctl gpg gpg2 openssl ssh-keygen ssh-add ssh-agent pass op vault busybox toybox less more man most pm2 supervisorctl nginx apachectl docker-compose podman-compose nerdctl flock entr hyperfine aws gcloud az doctl heroku vercel netlify fly flyctl wrangler env-printer printenv " +
		"psql mysql mariadb sqlite3 mongo mongosh redis-cli dropdb createdb dropuser mysqladmin pg_restore " +
		"node deno ruby irb perl php lua luajit rscript osascript java jshell scala groovy tclsh wish expect gdb lldb strace ltrace ghci julia swift dotnet erl elixir iex racket guile sbcl m4 bc-exec " +
		"vim vi nvim nano emacs ed ex view script screen tmux npx bunx pnpx uvx pipx terraform tofu ansible ansible-playbook helm pulumi packer vagrant chroot unshare nsenter setcap " +
		"diskutil defaults dscl spctl csrutil tccutil reg regedit del erase format rd takeown icacls powershell pwsh cmd wmic bitsadmin certutil mshta rundll32")
	// fetchers bring something from elsewhere.
	fetchers = setOf("curl wget aria2c http https httpie")
	// prefixes run the command that follows their options.
	prefixes = setOf("env nice nohup time timeout gtimeout stdbuf command builtin setsid ionice chronic caffeinate xargs parallel watch unbuffer")
	keywords = setOf("if then elif else fi do done while until ! { } time in esac")
	shells   = setOf("sh bash zsh dash ksh fish ash rbash")
	system   = setOf("/bin /usr/bin /usr/local/bin /sbin /usr/sbin /usr/local/sbin /opt/homebrew/bin")
	pythons  = regexp.MustCompile(`^(python|pypy|ipython)[0-9.]*$`)
)

// riskyOptions make a reader or checker write, delete or run something. Set once.
var riskyOptions = map[string]string{
	"find": "-delete -exec -execdir -ok -okdir -fprint -fprint0 -fprintf -fls", "fd": "--exec --exec-batch -x -X", "rg": "--pre --hostname-bin",
	"sort": "--output -o --compress-program --files0-from", "tree": "-o", "date": "-s --set", "uniq": "", "file": "-C --compile",
	"eslint": "--rulesdir --resolve-plugins-relative-to -o --output-file", "xxd": "-r", "tsc": "--outFile", "printf": "-v", "diff": "--output", "split": "--filter",
	"tar": "--to-command --checkpoint-action -I --use-compress-program --rsh-command --rmt-command -P --absolute-names --remove-files -F --info-script --new-volume-script",
	"zip": "-T -TT --unzip-command -m --move", "unzip": "-:", "rsync": "-e --rsh --rsync-path --delete --remove-source-files", "cp": "", "mv": "", "ln": "",
	"curl": "-T --upload-file -F --form -d --data --data-binary --data-raw --data-urlencode --json -K --config -X --request -u --user -b --cookie -E --cert", "wget": "--post-file --post-data --body-file --body-data --method --use-askpass --execute -e --config --input-file -i",
	"httpie": "", "sed": "-i-outside", "gofmt": "", "http": "--form", "sh": "",
}

// mediumOptions make a reader or checker edit files of the workspace.
var mediumOptions = map[string]string{
	"gofmt": "-w", "goimports": "-w", "prettier": "--write -w", "eslint": "--fix", "ruff": "--fix", "golangci-lint": "--fix", "rg": "-z --search-zip", "stylelint": "--fix",
}

// program judges a command by the program it runs.
func (j commandJudge) program(words []shellWord) Tier {
	name, args := words[0], words[1:]
	if keywords[name.text] {
		if len(args) == 0 {
			return Low
		}
		return j.command(shellCommand{words: args})
	}
	if !isKnown(name) || slices.ContainsFunc(words, func(a shellWord) bool { return isSecret(a.text) }) {
		return High
	}
	base := strings.ToLower(path.Base(name.text))
	if stem := strings.TrimRight(strings.TrimSuffix(base, ".exe"), "0123456789.-"); stem != base && (never[stem] || shells[stem]) {
		return High // "perl5.36", "rm.exe"
	} else if stem, _, found := strings.Cut(base, "."); found && never[stem] {
		return High // "mkfs.ext4"
	}
	return j.named(base, args)
}

// isKnown tells whether it is known where a program comes from: found by its name or in a directory of the system. A
// script is code that nobody has read out.
func isKnown(name shellWord) bool {
	if name.dynamic || name.text == "" || strings.ContainsFunc(name.text, func(r rune) bool {
		return r >= 0x80 || r <= ' ' || strings.ContainsRune(`*?[]\'"`, r) && name.text != "[" && name.text != "[["
	}) {
		return false
	}
	return !strings.Contains(name.text, "/") || system[path.Dir(name.text)]
}

// named judges a program by its name and arguments.
func (j commandJudge) named(name string, args []shellWord) Tier {
	switch {
	case askable[name] && onlyAsksVersion(args):
		return Low
	case never[name]:
		return High
	case shells[name]:
		return j.shell(args)
	case prefixes[name]:
		return j.prefixed(name, args)
	case pythons.MatchString(name):
		return j.python(args)
	case name == "git":
		return j.git(args)
	case name == "sed":
		return j.sed(args)
	case name == "awk" || name == "gawk" || name == "mawk":
		return j.awk(args)
	case name == "cd" || name == "pushd":
		return j.change(args)
	case name == "popd":
		j.place.lost = true
		return Medium
	case readers[name], checkers[name]:
		return j.reader(name, args)
	case writers[name]:
		return max(Medium, j.writer(name, args))
	case fetchers[name]:
		return j.fetcher(name, args)
	}
	if t, ok := knownTools[name]; ok {
		return j.tool(t, args)
	}
	return max(Medium, unknownArguments(args), j.writer(name, args))
}

var (
	runsCode  = setOf("-c -e --eval --exec --command -exec --run --shell --script")
	dropsData = regexp.MustCompile(`(?i)\b(drop\s+(table|database|schema|index)|truncate\s+table|delete\s+from)\b`)
)

// unknownArguments judges what a program that nobody knows is given: it may run it.
func unknownArguments(args []shellWord) Tier {
	for _, a := range args {
		if runsCode[a.text] || dropsData.MatchString(a.text) {
			return High
		}
		for word := range strings.FieldsFuncSeq(strings.ToLower(a.text), func(r rune) bool { return strings.ContainsRune(" \t\n;|&()`\"'$=", r) }) {
			if word = path.Base(word); never[word] || shells[word] || pythons.MatchString(word) {
				return High
			}
		}
	}
	return Medium
}

// onlyAsksVersion tells whether the only argument is for the program's version or help.
func onlyAsksVersion(args []shellWord) bool {
	return len(args) == 1 && slices.Contains([]string{"--version", "-V", "--help"}, args[0].text)
}

var askable = setOf("node deno ruby perl php java swift dotnet openssl terraform psql sqlite3 gpg aws gcloud helm")

// pathIn is the part of an argument that may be a path: of "--out=/x" and "-o/x" what follows.
func pathIn(w shellWord) (shellWord, bool) {
	text := w.text
	if strings.HasPrefix(text, "-") {
		if _, value, ok := strings.Cut(text, "="); ok {
			return shellWord{value, w.dynamic}, value != ""
		}
		if i := strings.IndexAny(text, "/~"); i > 0 {
			return shellWord{text[i:], w.dynamic}, true
		}
		if i := strings.Index(text, ".."); i > 0 {
			return shellWord{text[i:], w.dynamic}, true
		}
		return w, w.dynamic
	}
	if _, value, ok := strings.Cut(text, "="); ok && strings.ContainsAny(value, "/~") {
		return shellWord{value, w.dynamic}, true
	}
	return w, true
}

// reader judges a program that only reads: outside the workspace it is medium, and so is what the shell
// fills in.
func (j commandJudge) reader(name string, args []shellWord) Tier {
	if hasOption(args, riskyOptions[name]) {
		return High
	}
	risk := Low
	if j.place.workspace == "" || j.place.lost || !j.place.inside(".") && !quiet[name] {
		risk = Medium
	}
	if (name == "uniq" || name == "xxd") && operands(args) > 1 { // the second is written
		return max(Medium, j.writer(name, args))
	}
	if hasOption(args, mediumOptions[name]) || name == "tsc" && !hasOption(args, "--noEmit") || name == "ruff" && !hasWord(args, "check") || checkers[name] && operands(args) > 0 && hasOption(args, "-c -p -r --config --require --plugin --rootdir --setup") {
		risk = Medium
	}
	for _, a := range args {
		if p, ok := pathIn(a); ok && !quiet[name] {
			risk = max(risk, j.place.read(p))
			if checkers[name] && !p.dynamic && !j.place.inside(p.text) { // it runs what lies there
				risk = High
			}
		}
	}
	return risk
}

// quiet readers look at none of the files that their words may name.
var quiet = setOf("echo printf true false : pwd whoami id uname which type sleep seq exit return wait break continue basename dirname")

func operands(args []shellWord) int {
	n := 0
	for _, a := range args {
		if !strings.HasPrefix(a.text, "-") {
			n++
		}
	}
	return n
}

// writer judges a program that may write to what it is given.
func (j commandJudge) writer(name string, args []shellWord) Tier {
	if hasOption(args, riskyOptions[name]) || !j.place.inside(".") {
		return High
	}
	risk := Medium
	if (name == "set" || name == "export") && (len(args) == 0 || args[0].text == "-p") { // prints every secret
		return High
	}
	for _, a := range args {
		if variable, value, ok := strings.Cut(a.text, "="); ok && isVariable(variable) {
			risk = max(risk, variableRisk(variable, value))
		}
		if name == "rsync" && strings.Contains(a.text, ":") || name == "mv" && harmlessDevices[a.text] {
			return High
		}
		if p, ok := pathIn(a); ok {
			risk = max(risk, j.place.write(p))
		}
	}
	return risk
}

func isOption(w shellWord) bool { return strings.HasPrefix(w.text, "-") }

// fetcher judges a download: to the workspace or the screen. Sending something is high.
func (j commandJudge) fetcher(name string, args []shellWord) Tier {
	if hasOption(args, riskyOptions[name]) || !j.place.inside(".") {
		return High
	}
	risk := Medium
	for _, a := range args {
		lower := strings.ToLower(a.text)
		if a.dynamic || strings.HasPrefix(lower, "file:") || strings.Contains(lower, "@/") || strings.HasPrefix(a.text, "@") {
			return High
		}
		if p, ok := pathIn(a); ok && !strings.Contains(p.text, "://") && p.text != "-" { // what is no address may be where it goes
			risk = max(risk, j.place.write(p))
		}
	}
	return risk
}

// change follows "cd": a relative path afterwards is inside only if it is from everywhere we may be.
func (j commandJudge) change(args []shellWord) Tier {
	if len(args) != 1 || args[0].dynamic || strings.HasPrefix(args[0].text, "-") || !j.place.inside(args[0].text) {
		j.place.lost = true
		return Medium
	}
	var more []string
	for _, cwd := range j.place.cwds {
		to := args[0].text
		if !path.IsAbs(to) {
			to = path.Join(cwd, to)
		}
		more = append(more, path.Clean(to))
	}
	j.place.cwds = append(slices.Clone(j.place.cwds), more...)
	if len(j.place.cwds) > maxRiskParts {
		j.place.lost = true
	}
	return Low
}

var shellOptions = setOf("--login --norc --noprofile --posix")

// shell judges "sh -c": the text as a command line. A script, and what comes in by a pipe, is high.
func (j commandJudge) shell(args []shellWord) Tier {
	for i, a := range args {
		if !isOption(a) || a.dynamic {
			return High
		}
		if shellOptions[a.text] {
			continue
		}
		if strings.HasSuffix(a.text, "c") && strings.Trim(a.text, "-lciex") == "" {
			if i+1 >= len(args) || args[i+1].dynamic {
				return High
			}
			return commandRisk(args[i+1].text, *j.place, j.depth+1)
		}
		if strings.Trim(a.text, "-liex") != "" {
			return High
		}
	}
	return High
}

// prefixed judges "env X=1 rm" and the like by the command they run.
func (j commandJudge) prefixed(name string, args []shellWord) Tier {
	risk := Low
	if name == "xargs" || name == "parallel" || name == "watch" {
		risk = Medium
	}
	for i := range args {
		text := args[i].text
		if args[i].dynamic {
			return High
		}
		if variable, value, ok := strings.Cut(text, "="); ok && isVariable(variable) {
			risk = max(risk, variableRisk(variable, value))
			continue
		}
		if isOption(args[i]) {
			if name == "env" && text != "-i" && text != "-" && text != "--" { // -S splits words, -C changes the directory
				return High
			}
			continue
		}
		if strings.Trim(text, "0123456789.smhd") == "" { // a number belongs to the option before it
			continue
		}
		rest := args[i:]
		if name == "xargs" || name == "parallel" { // what comes in may be any path
			rest = append(slices.Clone(rest), shellWord{text: "$", dynamic: true})
		}
		return max(risk, j.optionArguments(args[:i]), j.command(shellCommand{words: rest}))
	}
	return High // "env" alone prints every secret; the others alone are not read
}

// optionArguments is high when an option before the command may take it as its value: then the command
// is another word.
func (j commandJudge) optionArguments(options []shellWord) Tier {
	for i, o := range options {
		if isOption(o) && i == len(options)-1 && !strings.Contains(o.text, "=") && !plainOptions[o.text] {
			return High
		}
	}
	return Low
}

var plainOptions = setOf("-i - -- -0 -r -p -t -x -v -oL -eL -iL -n1 -P4 -P2 -P8 -I{} --null --no-run-if-empty -f -l")

// hasOption tells whether one of the options is given: in full, abbreviated, or in a cluster of letters.
func hasOption(args []shellWord, options string) bool {
	for option := range strings.FieldsSeq(options) {
		if slices.ContainsFunc(args, func(a shellWord) bool { return isGiven(a.text, option) }) {
			return true
		}
	}
	return false
}

// hasWholeOption is hasOption for programs whose options are words behind one dash.
func hasWholeOption(args []shellWord, options string) bool {
	set := setOf(options)
	return slices.ContainsFunc(args, func(a shellWord) bool {
		name, _, _ := strings.Cut(a.text, "=")
		return set[name]
	})
}

func isGiven(arg, option string) bool {
	name, _, _ := strings.Cut(arg, "=")
	switch {
	case !strings.HasPrefix(arg, "-") || arg == "-" || arg == "--":
		return false
	case name == option, strings.HasPrefix(arg, option) && len(option) > 2 && !strings.HasPrefix(option, "--"):
		return true
	case strings.HasPrefix(option, "--"):
		return len(name) > 3 && strings.HasPrefix(option, name)
	case len(option) == 2:
		return !strings.HasPrefix(arg, "--") && strings.Contains(name[1:], option[1:])
	}
	return false
}
