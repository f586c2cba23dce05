package risk

// Flags that several rows share.
const (
	gitLog = `-p -u -w -b -s -q -i -M -C -W -# -n:num -U:num -S:free -G:free --patch --no-patch --stat= --shortstat
		--numstat --summary --name-only --name-status --cached --staged --check --exit-code --quiet --oneline
		--graph --decorate= --all --branches --tags --color= --no-color --word-diff= --no-ext-diff --no-textconv
		--no-renames --follow --reverse --merges --no-merges --first-parent --since:free --until:free --after:free
		--before:free --author:free --grep:free --format= --pretty= --date= --abbrev-commit --max-count:num
		--diff-filter= --ignore-all-space --function-context --merge-base --count --left-right`
	grepFlags = `-n -i -v -c -l -L -o -w -x -E -F -P -q -s -h -H -a -I -# -m:num -A:num -B:num -C:num --color=
		--line-number --ignore-case`
	goFlags = `-v -race -short -json -failfast -cover -benchmem -trimpath -c -x -a -n -m -e -u -t -d -deps -test
		-versions -all -src -run:free -skip:free -bench:free -benchtime:free -count:num -timeout:free -parallel:num
		-p:num -cpu:free -shuffle:free -fuzz:free -fuzztime:free -tags:free -list:free -f:free -mod:name -vet:name
		-covermode:name -coverpkg:free -coverprofile:in -o:in`
	nodeFlags = `-D -S -E -s --save --save-dev --save-exact --dev --exact --silent --frozen-lockfile --no-audit
		--no-fund --ignore-scripts --legacy-peer-deps --prefer-offline --no-save --if-present`
	pipFlags    = "-q -U -v -r:in -e:in --quiet --upgrade --requirement:in --editable:in --no-deps --no-cache-dir"
	pytestFlags = `-q -v -x -s -l -k:free -m:free -n:name --lf --ff --sw --tb= --maxfail= --co --collect-only
		--durations= --cov= --no-header --verbose --quiet --exitfirst --last-failed --color=`
	cargoFlags = `-q -v -p:name --package:name --release --all --workspace --all-features --all-targets
		--no-default-features --features:name --lib --bins --tests --bin:name --test:name --locked --offline
		--frozen --no-run --no-deps --dev --check --quiet --verbose`
	curlFlags = `-s -S -f -L -I -v -i -O -o:out -m:num --silent --show-error --fail --location --head --compressed
		--output:out --retry:num --max-time:num --connect-timeout:num`
)

// table has the commands that are not high. Each row has the tier, the program with its subcommand, the flags, and the
// kinds of the operands. If several rows accept a command, the lowest tier counts. Set once.
//
// "a|b" is a or b. A flag that takes a value has the kind of the value after a colon. A flag with "=" at its end has a
// value that may be left out. "-#" is any number. "*" means that the command has no flags, only operands. Letters may
// be clustered unless the row has a word after one dash.
//
// The kind "read" is a path to read; "in" a path to write, or whose file is run; "out" a path to write, or /dev/null.
// "text" is anything; as the value of a flag it is allowed only before the operands, since some systems take no flags
// after these. "free" is anything anywhere. The other kinds are in [patterns]. A kind with "?" may come once or not at
// all, one with "*" any number of times.
var table = []row{
	// Reading the workspace.
	{Low, "pwd|whoami|nproc|true|false|:", "", ""},
	{Low, "uname", "-a -s -r -m -n", ""},
	{Low, "id", "-u -g -n", ""},
	{Low, "df", "-h -k -T -i", ""},
	{Low, "date", "-u -I -R", "stamp?"},
	{Low, "echo", "*", "text*"},
	{Low, "printf", "", "format text*"},
	{Low, "which", "-a", "name*"},
	{Low, "command -v", "", "name"},
	{Low, "sleep", "", "num"},
	{Low, "test|[", "-f:read -d:read -e:read -s:read -r:read -x:read", "close?"},
	{Low, "ls", "-l -a -A -h -1 -R -t -r -S -d -F -p -i -s -G --color= --all --human-readable --recursive", "read*"},
	{Low, "cat|tac|rev", "-n -b -s -A -E -T -v -e -t", "read*"},
	{Low, "nl", "-b:text -w:num -s:text -n:text", "read*"},
	{Low, "head|tail", "-n:num -c:num -q -v -# --lines:num --bytes:num", "read*"},
	{Low, "wc", "-l -w -c -m -L --lines --words --bytes --chars", "read*"},
	{Low, "cut", "-d:text -f:text -c:text -b:text -s", "read*"},
	{Low, "tr", "-d -s -c", "text text?"},
	{Low, "sort", "-r -n -u -f -h -V -b -g -s -k:text -t:text --reverse --unique --numeric-sort", "read*"},
	{Low, "uniq", "-c -d -u -i -f:num -s:num", "read?"}, // a second operand would be written
	{Low, "comm|cmp", "-s -l -b -#", "read read"},
	{Low, "diff", "-u -q -w -b -B -i -y -U:num --brief --color= --unified=", "read read"},
	{Low, "column|fold|paste|expand", "-t -s:text -d:text -w:num", "read*"},
	{Low, "basename|dirname", "", "text text?"},
	{Low, "realpath|readlink", "-f -e -m", "read*"},
	{Low, "stat", "-c:text -L -t", "read*"},
	{Low, "file", "-b -i -L --brief --mime-type", "read*"},
	{Low, "du", "-s -h -a -c -k -m -d:num --max-depth:num", "read*"},
	{Low, "tree", "-L:num -I:text -P:text -a -d -h -s -f -i -C --dirsfirst --noreport --gitignore", "read*"},
	{Low, "md5sum|sha1sum|sha256sum|sha512sum|shasum|cksum", "-a:num -b", "read*"},
	{Low, "strings|hexdump|od", "-n:num -C -c -x -a -A:text -t:text -N:num", "read*"},
	{Low, "xxd", "-l:num -s:num -g:num -c:num -p -b -u", "read?"}, // a second operand would be written
	{Low, "grep|egrep|fgrep", grepFlags, "text read*"},
	{Low, "rg", `-n -i -S -w -l -c -o -v -F -x -U -N -H -I -P -s -t:name -T:name -g:glob -A:num -B:num -C:num -m:num
		--type:name --glob:glob --color:name --context:num --max-count:num --max-depth:num --sort:name --no-heading
		--heading --line-number --ignore-case --smart-case --files-with-matches --count --fixed-strings
		--word-regexp --column --trim --json --vimgrep --multiline`, "text read*"}, // it leaves out what is hidden
	{Low, "rg --files", "-g:glob --glob:glob -t:name --type:name --sort:name", "read*"},
	{Low, "find", `-name:free -iname:free -path:free -ipath:free -type:name -maxdepth:num -mindepth:num -size:free
		-mtime:num -mmin:num -newer:read -not -o -a -print -print0 -empty -prune`, "read*"},
	{Low, "fd|fdfind", "-e:name -t:name -d:num -i -s -g --type:name --extension:name --max-depth:num", "text? read*"},
	{Low, "jq", "-r -c -S -e -s --raw-output --compact-output", "query read*"},
	{Low, "sed", "-n -E -r", "print read*"},
	{Low, "sed", "-n -E -r", "replace read*"},
	{Low, "awk|gawk|mawk", "-F:text", "fields read*"},
	{Low, "gofmt|goimports", "-l -d -s -e", "read*"},
	{Low, "go version", "", ""},
	{Low, "go|git|node|npm|python|python3|make|gcc|docker|jq|rg --version", "", ""},
	{Low, "node|npm -v", "", ""},
	{Low, "python|python3 -V", "", ""},
	{Low, "npm ls|list", "-a --all --depth:num --json", "package*"},
	{Low, "pip|pip3 list|show|freeze|check", "", "package*"},

	// Reading with Git.
	{Low, "git status", "-s -b -v -u= --short --branch --porcelain= --untracked-files= --ignored", "read*"},
	{Low, "git diff|show|log|rev-list|whatchanged", gitLog, "rev*"},
	{Low, "git branch", `-a -r -v --list --all --remotes --show-current --sort:name --format:free --merged
		--no-merged --no-color`, ""},
	{Low, "git tag", "-n --sort:name", ""},
	{Low, "git tag -l|--list", "-n --sort:name", "text?"},
	{Low, "git remote", "-v", ""},
	{Low, "git remote get-url", "", "remote"},
	{Low, "git stash|worktree list", "--porcelain", ""},
	{Low, "git reflog", "-n:num -#", ""},
	{Low, "git blame", "-w -e -s -L:span --date=", "rev*"},
	{Low, "git rev-parse", `-q --abbrev-ref --short= --show-toplevel --show-prefix --git-dir --verify
		--is-inside-work-tree --symbolic-full-name`, "rev*"},
	{Low, "git ls-files", `-m -o -c -d -s --others --modified --cached --deleted --stage --exclude-standard
		--error-unmatch`, "read*"},
	{Low, "git ls-tree", "-r -l -d -t --name-only", "rev*"},
	{Low, "git describe", "--tags --always --dirty= --abbrev= --long --all --exact-match", "rev*"},
	{Low, "git merge-base", "--is-ancestor --fork-point --all", "rev*"},
	{Low, "git shortlog", "-s -n -e", "rev*"},
	{Low, "git grep", "-n -i -l -c -w -o -h -E -F -P -I -A:num -B:num -C:num", "text rev*"},
	{Low, "git cat-file", "-p -t -s -e", "rev*"},
	{Low, "git show-ref|for-each-ref", "--heads --tags --format:free --sort:name --count:num", "rev*"},
	{Low, "git check-ignore", "-v -q", "read*"},
	{Low, "git config --get user.name|user.email|init.defaultBranch", "", ""},

	// Acting with Git.
	{Medium, "git add", "-A -u -v -n -N --all --update --dry-run", "in*"},
	{Medium, "git commit", "-m:free --message:free -a -q -v -s --all --quiet --signoff --allow-empty", "in*"},
	{Medium, "git fetch", "-q -v --all --tags", ""},
	{Medium, "git fetch", "-q -v --tags --depth:num", "remote name?"},
	{Medium, "git pull", "-q -v --rebase --no-rebase --ff-only --ff --no-edit --autostash", ""},
	{Medium, "git pull", "-q -v --rebase --no-rebase --ff-only --ff --no-edit --autostash", "remote name?"},
	{Medium, "git switch", "-q", "name"},
	{Medium, "git push", "-q -v -n --dry-run --progress", ""},
	{Medium, "git push", "-u -q -v -n --set-upstream --dry-run --progress", "remote name?"},
	{Medium, "git ls-remote", "--heads --tags", "remote"},
	{Medium, "git clone", "-q -b:name --branch:name --depth:num --single-branch", "url in?"},

	// Builds, tests, checks and installs.
	{Medium, "go build|test|vet|list|fmt", goFlags, "in*"},
	{Medium, "go get|install|list", goFlags, "module*"},
	{Medium, "go mod download|tidy|verify|vendor|graph|why", "-v -x -m -json", "module*"},
	{Medium, "go doc", "-all -u -short -src", "name* name?"},
	{Medium, "gofmt|goimports", "-w -s -l -d", "in*"},
	{Medium, "staticcheck|shellcheck", "-checks:free -tests= -x", "in*"},
	{Medium, "golangci-lint run", "--fix --timeout:free -v", "in*"},
	{Medium, "npm|pnpm|yarn|bun", nodeFlags, "task in*"},
	{Medium, "yarn", "", ""}, // installs
	{Medium, "npm|pnpm|yarn|bun t", nodeFlags, "in*"},
	{Medium, "npm|pnpm|yarn|bun run|run-script", nodeFlags, "task in*"},
	{Medium, "npm|pnpm|yarn|bun install|i|ci|add", nodeFlags, "package*"},
	{Medium, "npm|pnpm|yarn view|info|outdated|why", "--json", "package*"},
	{Medium, "jest|vitest|mocha", "-t:free -i --run --silent --verbose --runInBand --coverage", "in*"},
	{Medium, "eslint|prettier|stylelint", "-w -l --fix --write --check --quiet --cache --ext:free --max-warnings:num",
		"in*"},
	{Medium, "tsc", "-p:in -b --noEmit --project:in --build --pretty --skipLibCheck --incremental", ""},
	{Medium, "pip|pip3 install|download", pipFlags, "package*"},
	{Medium, "python|python3 -m pip install|download|list|show|freeze|check", pipFlags, "package*"},
	{Medium, "uv pip install", pipFlags, "package*"},
	{Medium, "uv sync|lock|add", "-q --frozen --dev --all-extras", "package*"},
	{Medium, "poetry install|add|lock|build", "-q --dev", "package*"},
	{Medium, "pytest", pytestFlags, "in*"},
	{Medium, "python|python3 -m pytest", pytestFlags, "in*"},
	{Medium, "python|python3 -m unittest", "-v -q -f -k:free", "in*"},
	{Medium, "python|python3 -m venv|compileall|mypy|flake8|black|ruff", "-q", "in*"},
	{Medium, "mypy|flake8|pylint|black|isort", "-q -v --check --diff --strict", "in*"},
	{Medium, "ruff check|format", "-q --fix --check --diff", "in*"},
	{Medium, "cargo build|b|test|t|check|c|clippy|fmt|doc|bench|fetch|tree|update", cargoFlags, "item*"},
	{Medium, "cargo add", cargoFlags, "package*"},
	{Medium, "make|just", "-j= -s -k -n -B", "task*"},
	{Medium, "mvn|gradle", "-q -B -o --info --offline --no-daemon", "task*"},
	{Medium, "dotnet build|test|restore", "-c:name --no-restore --no-build", "in*"},
	{Medium, "swift build|test", "-c:name", ""},
	{Medium, "cmake --build", "-j= --target:task --config:name", "in"},
	{Medium, "ctest|tox", "-V -q -j= -R:free -e:name --output-on-failure", ""},
	{Medium, "rspec|phpunit", "-q", "in*"},
	{Medium, "docker|podman ps|images|version", "-a -q", ""},
	{Medium, "docker|podman build", "-t:free --tag:free -f:in --target:name -q --no-cache --pull", "in"},
	{Medium, "brew|apt|apt-get|dnf|yum|apk|gem install|add|update", "-y -q --no-cache --no-install-recommends",
		"package*"},
	{Medium, "bundle|composer install|update", "-q -n --no-interaction", ""},

	// The public network.
	{Medium, "curl", curlFlags, "url*"},
	{Medium, "wget", "-q -c -O:out -P:in -T:num -t:num --quiet --no-verbose --output-document:out --timeout:num",
		"url*"},
	{Medium, "gh pr|issue|run|release list|view|status|diff|checks", `-L:num -s:name --limit:num --state:name
		--json:free --log`, "name*"},

	// Editing plain files, and searching files that the searches above leave out.
	{Medium, "mkdir", "-p -v --parents", "in*"},
	{Medium, "touch", "-a -c -m", "in*"},
	{Medium, "cp|mv", "-v -n -i", "in in"},
	{Medium, "tee", "-a", "in*"},
	{Medium, "sed", "-n -E -r -i --in-place", "blank? replace in*"},
	{Medium, "sed", "-n -E -r -i --in-place", "blank? print in*"},
	{Medium, "grep|egrep|fgrep", grepFlags + " -r -R --recursive --include:free --exclude:free --exclude-dir:free",
		"text read*"},
}
