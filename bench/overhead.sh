#!/bin/sh
# Measures the overhead of signoff on a real agent: Claude Code, as `scripts/agents prepare` installs it, against a scripted
# model on the loopback interface. Nothing leaves this machine.
#
#   bench/overhead.sh [PROGRAM]     PROGRAM: a release build of signoff; built by default
#   PAIRS=5 bench/overhead.sh       fewer than 20 pairs of runs
#
# Prints one line per result with its limit, and "ok" or "OVER" beside it. Exits with 1 if one is over, with 2 if Claude
# Code is not available because npm or its registry is missing. Needs cargo, git, a POSIX shell, and a `date` that
# supports %N.
#
# "Own CPU time" is the user and system time of signoff and of the supervisor of each attempt, all threads, as the
# kernel counts it: the program prints its own with -v, each supervisor writes it to `result.json`. It excludes the agent,
# git, and the end of a process after its report. The time with git is measured with an agent that repeats the output of
# Claude Code and takes no time: all CPU time minus that of the agent.
#
# Paired runs: "alone" uses the command line, the environment, the prompt and the answers of signoff's implementer, in a
# fresh worktree of the same repository, with a fresh home of the same contents, started by this shell. "With signoff" is
# the whole program, `signoff work` with one task without review: its start, reading the configuration, a worktree, a
# branch, the sandbox, the agent, the commit, the records. The order alternates from pair to pair; the median of the
# differences counts.
set -eu
cd "$(dirname "$0")/.."
here=$PWD
pairs=${PAIRS:-20}
tasks=20

if [ $# -gt 0 ]; then
    signoff=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
    [ -n "${CARGO_HOME:-}" ] || . scripts/toolchain.sh
else
    . scripts/toolchain.sh
    cargo build --release --quiet --package signoff
    signoff=${CARGO_TARGET_DIR:-$here/target}/release/signoff
fi
cargo build --release --quiet --package signoff-testkit --bin scripted_model
scripted_model=${CARGO_TARGET_DIR:-$here/target}/release/scripted_model
scripts/agents prepare || { echo 'nothing is measured: there is no Claude Code (scripts/agents prepare needs npm and its registry)' >&2; exit 2; }
claude=$(scripts/agents path)/claude
case $(date +%N) in
    *[!0-9]* | '') echo 'nothing is measured: date does not know %N' >&2; exit 2 ;;
esac

place=$(mktemp -d "${TMPDIR:-/tmp}/signoff-overhead.XXXXXX")
model=
clear_away() {
    [ -z "$model" ] || kill "$model" 2>/dev/null || true
    rm -rf "$place"
}
trap clear_away EXIT
trap 'exit 1' HUP INT TERM
# Keep the user's own settings out.
export HOME="$place/home" XDG_CONFIG_HOME="$place/home/.config" GIT_CONFIG_NOSYSTEM=1
PATH=$(dirname "$claude"):$PATH
unset SIGNOFF_PRESET SIGNOFF_JOBS SIGNOFF_STORE SIGNOFF_NO_ASK
mkdir -p "$HOME"
over=0

# row WHAT RESULT LIMIT UNIT: prints a result with its limit; whole or decimal numbers.
row() {
    verdict=$(awk -v figure="$2" -v limit="$3" 'BEGIN { print (figure + 0 <= limit + 0) ? "ok" : "OVER" }')
    [ "$verdict" = ok ] || over=1
    printf '%-66s %9s %-5s at most %-4s %s\n' "$1" "$2" "$4" "$3" "$verdict"
}

# Prints a result without a limit.
note() {
    printf '%-66s %9s %s\n' "$1" "$2" "${3:-}"
}

fail() {
    echo "$*" >&2
    exit 2
}

# The model writes one file and ends.
cat >"$place/script.json" <<'SCRIPT'
{
  "rules": [{
    "name": "implement",
    "turns": [
      { "say": "I add it.", "calls": [{ "write": { "path": "{cwd}/work.txt", "content": "work\n" } }] },
      { "say": "Done." }
    ]
  }],
  "default": { "say": "Done." }
}
SCRIPT
"$scripted_model" --script "$place/script.json" >"$place/model" &
model=$!
until [ -s "$place/model" ]; do
    kill -0 "$model" || fail 'the scripted model does not start'
done
url=$(head -n 1 "$place/model")

# repository NAME PROGRAM [MORE-CONFIGURATION]: creates a repository with PROGRAM as an agent of kind claude.
repository() {
    mkdir -p "$place/repositories/$1"
    cd "$place/repositories/$1"
    git init -q -b main .
    git config user.name Ann
    git config user.email ann@example.org
    for number in 1 2 3 4 5 6 7 8 9 10; do
        echo "line $number" >"file-$number.txt"
    done
    cat >signoff.toml <<CONFIG
${3:-}
[agents.claude]
kind = "claude"
command = ["$2"]
model = "claude-sonnet-4-5"
env = { ANTHROPIC_BASE_URL = "$url", ANTHROPIC_API_KEY = "sk-ant-scripted-key" }
CONFIG
    git add -A
    git commit -q -m Start
}

# Not every system has seq.
command -v seq >/dev/null 2>&1 || seq() { awk -v last="$1" 'BEGIN { for (n = 1; n <= last; n++) print n }'; }

add() {
    "$signoff" -q add "Task $1" >/dev/null
}

now() { date +%s%N; }
milliseconds() { awk -v us="$1" 'BEGIN { print us / 1000 }'; }

# Prints the median of a file with one number per line; of two in the middle, their mean.
median() {
    sort -n "$1" | awk '{ a[NR] = $1 } END { printf "%.1f", (a[int((NR + 1) / 2)] + a[int(NR / 2) + 1]) / 2 }'
}

quartiles() {
    sort -n "$1" | awk '{ a[NR] = $1 } END { printf "%.1f to %.1f", a[int((NR + 3) / 4)], a[int((3 * NR + 1) / 4)] }'
}

# Print the CPU time of the last `signoff -v work`, in milliseconds: its own, and that of its supervisors.
own() { sed -n 's/^CPU time: \([0-9.]*\) ms$/\1/p' "$1"; }
supervisor_time() { cat .signoff/runs/"$1"/*/a*/result.json | tr ',}' '\n\n' | awk -F: '/"keeper_cpu_us"/ { sum += $2 } END { printf "%.3f", sum / 1000 }'; }
over_all() { awk -v own="$1" -v supervisor_ms="$2" -v n="$3" 'BEGIN { printf "%.1f", (own + supervisor_ms) / n }'; }

# worked RUN NUMBER: checks that the run has NUMBER attempts and all succeeded.
worked() { [ "$(cat .signoff/runs/"$1"/*/a*/result.json | grep -o '"code":0' | wc -l)" -eq "$2" ] && [ "$(ls -d .signoff/runs/"$1"/*/a* | wc -l)" -eq "$2" ]; }

printf 'signoff: %s\nclaude:  %s\nmachine: %s, %s processors; %s\nplace:   %s\n\n' "$("$signoff" --version)" \
    "$("$claude" --version </dev/null)" "$(uname -srm)" "$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo unknown)" \
    "$(git --version)" "$place"

# 1. Record how signoff starts Claude Code: a wrapper saves arguments, environment and the files of the attempt.
mkdir "$place/recorded" "$place/recorder"
cat >"$place/recorder/claude" <<RECORDER
#!/bin/sh
cd "$place/recorded"
cp -r "\${SIGNOFF_USAGE_FILE%/usage/usage.json}" attempt
printf '%s\n' "\$@" >arguments
export -p | sed '/ _=/d; / PWD=/d; / OLDPWD=/d; / SHLVL=/d' >environment
cd "\$OLDPWD"
exec "$claude" "\$@"
RECORDER
chmod +x "$place/recorder/claude"
env | sed 's/=.*//' >"$place/names"
repository recorded "$place/recorder/claude" "sandbox_write = [\"caches\", \"$place/recorded\"]"
add 1
"$signoff" work >"$place/said" 2>&1 || { cat "$place/said"; fail 'the first attempt did not end well'; }
attempt=$place/repositories/recorded/.signoff/runs/1/1/a1
cp "$attempt/stdout" "$place/recorded/stdout"
{
    printf 'unset'
    awk '/^[A-Za-z_][A-Za-z0-9_]*$/ && $0 != "PATH" && $0 != "PWD" { printf " %s", $0 }' "$place/names"
    echo
    cat "$place/recorded/environment"
} >"$place/recorded/alone"

# 2. Own CPU time with the real program: of one attempt including the program's start and end, and of many in a row.
: >"$place/once-took"
repository once "$claude"
for number in 1 2 3 4 5; do
    add "$number"
    "$signoff" -v work >/dev/null 2>"$place/said"
    worked "$number" 1 || fail 'an attempt did not end well'
    over_all "$(own "$place/said")" "$(supervisor_time "$number")" 1 >>"$place/once-took"
    echo >>"$place/once-took"
done
row 'own CPU time of one attempt, with the whole program' "$(median "$place/once-took")" 20 ms
repository row "$claude"
for number in $(seq 10); do add "$number"; done
"$signoff" -v work --jobs 1 >/dev/null 2>"$place/said"
worked 1 10 || fail 'an attempt did not end well'
row 'own CPU time of an attempt, 10 tasks in a row' "$(over_all "$(own "$place/said")" "$(supervisor_time 1)" 10)" 20 ms
note '  of which its supervisor' "$(over_all 0 "$(supervisor_time 1)" 10)" ms

# 3. All CPU time besides the agent, git included. The agent repeats the output and the changes of Claude Code.
# Prints the user and system time of a command and its children, in milliseconds. The shell's clock ticks every 10 ms.
cpu() {
    # shellcheck disable=SC2016
    sh -c '"$@" >/dev/null 2>"$PLACE/said"; times' cpu "$@" |
        awk 'NR == 2 { gsub("s", ""); split($1, u, "m"); split($2, s, "m"); printf "%d", (u[1]*60 + u[2] + s[1]*60 + s[2]) * 1000 }'
}
export PLACE="$place"
printf '#!/bin/sh\necho work >work.txt\nexec cat "%s"\n' "$place/recorded/stdout" >"$place/again"
cat >"$place/bare.sh" <<'BARE'
number=0
while [ "$number" -lt "$1" ]; do
    number=$((number + 1))
    "$PLACE/again" >"$PLACE/answer"
done
BARE
chmod +x "$place/again"
repository again "$place/again"
for number in $(seq "$tasks"); do add "$number"; done
all=$(cpu "$signoff" -v work --jobs 1)
worked 1 "$tasks" || fail 'an attempt did not end well'
itself=$(over_all "$(own "$place/said")" "$(supervisor_time 1)" "$tasks")
bare=$(cpu sh "$place/bare.sh" "$tasks")
row "own CPU time of an attempt, $tasks tasks, agent of no time" "$itself" 20 ms
note '  with git, which makes the worktree, the branch and the commit' \
    "$(awk -v all="$all" -v bare="$bare" -v n="$tasks" 'BEGIN { printf "%.1f", (all - bare) / n }')" ms
# Wall-clock time, without the variance of Claude Code.
number=$tasks
while [ "$number" -lt $((2 * tasks)) ]; do
    number=$((number + 1))
    add "$number"
    before=$(now)
    "$signoff" work >/dev/null 2>&1
    between=$(now)
    (exec "$place/again" >"$place/answer")
    after=$(now)
    milliseconds $((((between - before) - (after - between)) / 1000)) >>"$place/again-over"
done
row "all of signoff work, over an agent of no time, median of $tasks" "$(median "$place/again-over")" 50 ms
# The same with 10 MB of output: one line many times.
awk -v bytes=10000000 '
    /"type":"assistant"/ && !said { while (length($0) * n++ < bytes) print; said = 1 }
    { print }' "$place/recorded/stdout" >"$place/long"
printf '#!/bin/sh\necho work >work.txt\nexec cat "%s"\n' "$place/long" >"$place/again"
repository long "$place/again"
add 1
"$signoff" -v work >/dev/null 2>"$place/said"
worked 1 1 || fail 'an attempt did not end well'
note "own CPU time of one attempt that prints $(($(wc -c <"$place/long") / 1000000)) MB" "$(over_all "$(own "$place/said")" "$(supervisor_time 1)" 1)" ms

# 4. Pairs.
repository pairs "$claude"
original=$place/repositories/recorded
alone() {
    mkdir "$place/alone"
    cp -r "$place/recorded/attempt" "$place/alone/attempt"
    mkdir -p "$place/alone/attempt/tmp"
    git -C "$original" worktree add -q --detach "$place/alone/tree"
    sed "s|$attempt|$place/alone/attempt|g" "$place/recorded/alone" >"$place/alone/environment"
    set --
    while IFS= read -r word; do set -- "$@" "$word"; done <"$place/recorded/arguments"
    prompt=$attempt/prompt
    before=$(now)
    (
        . "$place/alone/environment"
        cd "$place/alone/tree"
        exec "$claude" "$@" <"$prompt" >"$place/alone/stdout" 2>"$place/alone/stderr"
    ) || fail 'Claude Code alone did not end well'
    after=$(now)
    [ -s "$place/alone/tree/work.txt" ] || fail 'Claude Code alone did nothing'
    rm -rf "$place/alone"
    git -C "$original" worktree prune
    took=$(((after - before) / 1000))
}
inside() {
    add "$1"
    before=$(now)
    "$signoff" --json-events work >"$place/events" 2>"$place/said" || fail "signoff did not end well: $(cat "$place/said")"
    after=$(now)
    worked "$1" 1 || fail 'an attempt did not end well'
    took=$(((after - before) / 1000))
}
# Prints the time between the records of the start and the end of an attempt, in milliseconds.
attempt_took() {
    awk '
        function seconds(line) { match(line, /T[0-9:.]*Z/); split(substr(line, RSTART + 1, RLENGTH - 2), t, ":"); return t[1] * 3600 + t[2] * 60 + t[3] }
        /"kind":"loop.attempt_started"/ { begun = seconds($0) }
        /"kind":"loop.work_ended"/ { ended = seconds($0) }
        END { printf "%.1f", (ended - begun) * 1000 }' "$place/events"
}
for pair in $(seq "$pairs"); do
    if [ $((pair % 2)) -eq 0 ]; then
        alone
        single=$took
        inside "$pair"
        whole=$took
    else
        inside "$pair"
        whole=$took
        alone
        single=$took
    fi
    milliseconds "$single" >>"$place/alone-took"
    milliseconds "$whole" >>"$place/whole-took"
    milliseconds "$((whole - single))" >>"$place/whole-over"
    awk -v a="$(attempt_took)" -v b="$(milliseconds "$single")" 'BEGIN { print a - b }' >>"$place/attempt-over"
done
note "Claude Code alone, median of $pairs" "$(median "$place/alone-took")" ms
note "signoff work with one task, median of $pairs" "$(median "$place/whole-took")" ms
row "the attempt within signoff, over Claude Code alone, $pairs pairs" "$(median "$place/attempt-over")" 50 ms
note '  the middle half of the pairs' "$(quartiles "$place/attempt-over")" ms
row "all of signoff work, over Claude Code alone, $pairs pairs" "$(median "$place/whole-over")" 50 ms
note '  the middle half of the pairs' "$(quartiles "$place/whole-over")" ms

[ "$over" -eq 0 ] || printf '\nsomething is OVER its limit\n'
exit "$over"
