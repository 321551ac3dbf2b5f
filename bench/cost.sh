#!/bin/sh
# Measures the cost of signoff itself, with agents that take no time: processes, disk syncs, CPU, memory, latency.
#
#   bench/cost.sh [PROGRAM]           PROGRAM: a release build of signoff; built by default
#   TMPDIR=/dev/shm bench/cost.sh     for a slow or shared disk
#
# Prints one line per result with its limit, and "ok" or "OVER" beside it; exits with 1 if one is over. Needs cargo, git
# and a POSIX shell. With strace it also counts system calls. Memory is read from /proc, and times below a second need a
# `date` that supports %N; the output names measurements that are not possible.
#
# "The same from a shell" is a shell script in place of signoff, with the same agents, prompts and files: for each task
#     git worktree add -b BRANCH            a separate worktree
#     agent implement; git add -A; git commit
#     git diff BASE; agent review           the reviewer's input
#     agent fix; git add -A; git commit
#     git diff BASE; agent review
# It records nothing, does not survive a crash, undoes nothing and parses no answer.
set -eu
cd "$(dirname "$0")/.."
here=$PWD
tasks=20
many=1000
crowd=10000

if [ $# -gt 0 ]; then
    signoff=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
else
    . scripts/toolchain.sh
    cargo build --release --quiet --package signoff
    signoff=${CARGO_TARGET_DIR:-$here/target}/release/signoff
fi
[ -n "${CARGO_HOME:-}" ] || . scripts/toolchain.sh
cargo build --release --quiet --package signoff-store --example fill
fill=${CARGO_TARGET_DIR:-$here/target}/release/examples/fill

place=$(mktemp -d "${TMPDIR:-/tmp}/signoff-cost.XXXXXX")
trap 'rm -rf "$place"' EXIT
trap 'exit 1' HUP INT TERM
# Keep the user's own settings out.
export HOME="$place/home" XDG_CONFIG_HOME="$place/home/.config" GIT_CONFIG_NOSYSTEM=1
unset SIGNOFF_PRESET SIGNOFF_JOBS SIGNOFF_STORE SIGNOFF_NO_ASK
mkdir -p "$HOME"
over=0

# row WHAT RESULT LIMIT UNIT: prints a result with its limit; whole or decimal numbers.
row() {
    verdict=$(awk -v figure="$2" -v limit="$3" 'BEGIN { print (figure + 0 <= limit + 0) ? "ok" : "OVER" }')
    [ "$verdict" = ok ] || over=1
    printf '%-58s %9s %-10s at most %-6s %s\n' "$1" "$2" "$4" "$3" "$verdict"
}

# Prints a result without a limit, or a measurement that is not possible.
note() {
    printf '%-58s %9s %s\n' "$1" "$2" "${3:-}"
}

# repository NAME [MORE-CONFIGURATION]: creates a repository with an agent.
repository() {
    mkdir "$place/$1"
    cd "$place/$1"
    git init -q -b main .
    git config user.name Ann
    git config user.email ann@example.org
    for number in 1 2 3 4 5 6 7 8 9 10; do
        echo "line $number" >"file-$number.txt"
    done
    printf '%s\n[agents.bench]\nkind = "command"\ncommand = ["%s"]\n' "${2:-}" "$here/bench/agent.sh" >signoff.toml
    git add -A
    git commit -q -m Start
}

add() {
    for number in $(seq "$1"); do
        "$signoff" -q add "Task $number" --auto-review --max-cycles 3 >/dev/null
    done
}

# Not every system has seq.
command -v seq >/dev/null 2>&1 || seq() { awk -v last="$1" 'BEGIN { for (n = 1; n <= last; n++) print n }'; }

# Prints the user and system time of a command and its children, in milliseconds. The shell's clock ticks every 10 ms.
cpu() {
    # shellcheck disable=SC2016
    sh -c '"$@" >/dev/null 2>&1; times' cpu "$@" |
        awk 'NR == 2 { gsub("s", ""); split($1, u, "m"); split($2, s, "m"); printf "%d", (u[1]*60 + u[2] + s[1]*60 + s[2]) * 1000 }'
}

case $(date +%N) in
    *[!0-9]* | '') clock= ;;
    *) clock=yes ;;
esac

# Prints the wall-clock time of a command, in milliseconds: the median of 21 runs.
wall() {
    for _ in $(seq 21); do
        before=$(date +%s%N)
        "$@" >/dev/null 2>&1
        after=$(date +%s%N)
        echo $(((after - before) / 1000))
    done | sort -n | awk 'NR == 11 { printf "%.1f", $1 / 1000 }'
}

# Prints the peak memory of a command without its children, in kilobytes.
memory() {
    "$@" >/dev/null 2>&1 &
    pid=$!
    most=0
    while now=$(sed -n 's/^VmHWM:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$pid/status" 2>/dev/null) && [ -n "$now" ]; do
        most=$now
    done
    wait "$pid" || true
    echo "$most"
}

printf 'signoff: %s\nmachine: %s, %s processors; %s\nplace:   %s\n\n' "$("$signoff" --version)" "$(uname -srm)" \
    "$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo unknown)" "$(git --version)" "$place"

# 1. One task: implement, review, fix, review, including the program's start.
repository once
add 1
counted=$("$signoff" -v work 2>&1 >/dev/null | sed -n 's/^\([0-9]*\) git processes, \([0-9]*\) commits of the store, \([0-9]*\) agents.*/\1 \2 \3/p')
# shellcheck disable=SC2086
set -- $counted
row 'git processes of one cycle, by own count' "$1" 25 ''
row 'commits of the store in one cycle, by own count' "$2" 10 ''
note 'agents started in it' "$3"
if command -v strace >/dev/null 2>&1 && strace -o /dev/null true 2>/dev/null; then
    repository traced
    add 1
    strace -f -e trace=execve,fsync,fdatasync -o "$place/trace" "$signoff" work >/dev/null
    started='execve("[^"]*/git".* = 0$'
    row 'git processes, as the kernel sees them' "$(grep -c "$started" "$place/trace")" 25 ''
    row 'syncs of the disk, as the kernel sees them' "$(grep -cE ' (fsync|fdatasync)\(' "$place/trace")" 10 ''
else
    note 'as the kernel sees them' '-' 'not counted: strace is not there or may not trace'
fi

# 2. CPU time of many tasks, one after the other, against the same from a shell: five alternating runs, so that both see
# the same load of the machine, and the median of each.
cat >"$place/loop.sh" <<'LOOP'
set -eu
agent=$1
tasks=$2
prompts=$3
base=$(git rev-parse HEAD)
top=$PWD
run() {
    SIGNOFF_ROLE=$1 SIGNOFF_CYCLE=$2 SIGNOFF_REVIEWER=${3:-} "$agent" <"$prompts/$4" >"../answer"
}
number=0
while [ "$number" -lt "$tasks" ]; do
    number=$((number + 1))
    git worktree add -q -b "loop-$number" "../loop-$number"
    cd "../loop-$number"
    run implement 0 '' a1
    git add -A
    git commit -q -m "Task $number"
    git diff "$base" >../diff
    run review 1 general a2
    run fix 1 '' a3
    git add -A
    git commit -q -m 'Address review feedback'
    git diff "$base" >../diff
    run review 2 general a4
    cd "$top"
done
LOOP
cat >"$place/bare.sh" <<'BARE'
set -eu
number=0
while [ "$number" -lt "$2" ]; do
    number=$((number + 1))
    SIGNOFF_ROLE=implement SIGNOFF_CYCLE=0 "$1" <"$3/a1" >../answer
    SIGNOFF_ROLE=review SIGNOFF_CYCLE=1 SIGNOFF_REVIEWER=general "$1" <"$3/a2" >../answer
    SIGNOFF_ROLE=fix SIGNOFF_CYCLE=1 "$1" <"$3/a3" >../answer
    SIGNOFF_ROLE=review SIGNOFF_CYCLE=2 SIGNOFF_REVIEWER=general "$1" <"$3/a4" >../answer
done
BARE
mkdir "$place/prompts"
for turn in 1 2 3 4 5; do
    mkdir "$place/turn"
    repository turn/queue
    add "$tasks"
    cpu "$signoff" work --jobs 1 >>"$place/own"
    # The shell loops use the same prompts as signoff.
    for attempt in a1 a2 a3 a4; do
        cp ".signoff/runs/1/1/$attempt/prompt" "$place/prompts/$attempt"
    done
    for loop in loop bare; do
        cpu sh "$place/$loop.sh" "$here/bench/agent.sh" "$tasks" "$place/prompts" >>"$place/$loop"
        echo >>"$place/$loop"
    done
    echo >>"$place/own"
    cd "$place"
    mv turn "turn-$turn"
done
median() { sort -n "$1" | sed -n 3p; }
own=$(median "$place/own")
shell=$(median "$place/loop")
bare=$(median "$place/bare")
ratio() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.2f", (b > 0) ? a / b : 0 }'; }
note "CPU time of $tasks tasks: signoff" "$own" ms
note "CPU time of $tasks tasks: the same from a shell" "$shell" ms
row 'CPU time, over the same from a shell' "$(ratio "$own" "$shell")" 2 times
note 'CPU time, over the bare agents without any git' "$(ratio "$own" "$bare")" times

# 3. Two reviewers in parallel, of one and of two seconds: the time of the round beyond the slower one.
if [ -n "$clock" ]; then
    repository round '[gate]
reviewers = ["code", "spec"]
[reviewers.code]
[reviewers.spec]'
    add 1
    SLEEP_code=1 SLEEP_spec=2 "$signoff" --json-events work >"$place/events"
    # The events in order: the work is complete; each reviewer's time by its supervisor's clock; the last answer arrived.
    round=$(awk '
        function seconds(line) { match(line, /T[0-9:.]*Z/); split(substr(line, RSTART + 1, RLENGTH - 2), t, ":"); return t[1] * 3600 + t[2] * 60 + t[3] }
        /"kind":"loop.work_ended"/ && !begun { begun = seconds($0) }
        /"kind":"loop.used"/ && begun && arrived < 2 { match($0, /"duration_ms":[0-9]*/); d = substr($0, RSTART + 14, RLENGTH - 14) + 0; if (d > slower) slower = d }
        /"kind":"loop.review_arrived"/ && arrived < 2 { arrived++; ended = seconds($0) }
        END { printf "%.0f %.0f", slower, (ended - begun) * 1000 - slower }' "$place/events")
    # shellcheck disable=SC2086
    set -- $round
    note 'the slower of two reviewers at once took' "$1" ms
    row 'a review round beyond its slower reviewer' "$2" 50 ms
else
    note 'a review round beyond its slower reviewer' '-' 'not measured: date does not know %N'
fi

# 4. Interactive commands, with one task and with many.
cd "$place/once"
if [ -n "$clock" ]; then
    row 'signoff status, cold' "$(wall "$signoff" status)" 10 ms
    note 'a program that does nothing, for comparison' "$(wall true)" ms
    note 'signoff add' "$(wall "$signoff" add 'One more')" ms
    repository crowd
    "$signoff" -q add First >/dev/null
    "$fill" .signoff "$crowd"
    row "signoff status, cold, with $crowd tasks" "$(wall "$signoff" status)" 50 ms
    note "signoff add, with $crowd tasks" "$(wall "$signoff" add 'One more')" ms
else
    note 'signoff status, cold' '-' 'not measured: date does not know %N'
fi

# 5. Memory, and the cost of one of many tasks.
repository many
"$signoff" -q add First --auto-review --max-cycles 3 >/dev/null
if [ -r /proc/self/status ]; then
    row 'memory of work, one task' "$(memory "$signoff" work 1 | awk '{ printf "%.1f", $1 / 1000 }')" 20 MB
    "$fill" .signoff "$many"
    row "memory of work, with $many tasks in the queue" "$(memory "$signoff" work 2 3 4 | awk '{ printf "%.1f", $1 / 1000 }')" 20 MB
    # The longest possible answers: words, and findings; signoff rejects this number of findings.
    awk 'BEGIN {
        for (n = 1; n <= 110000; n++) printf "I looked at function %d, and as far as I can see it does what it is meant to do.\n", n
        print "\n**Verdict: CHANGES_REQUESTED**"
    }' >"$place/words.txt"
    awk 'BEGIN {
        for (n = 1; n <= 145000; n++) printf "- src/file%d.rs:%d the value %d is not checked before use\n", n % 97, n % 900 + 1, n
        print "\n**Verdict: CHANGES_REQUESTED**"
    }' >"$place/findings.txt"
    for kind in words findings; do
        repository "$kind"
        add 1
        figure=$(ANSWER="$place/$kind.txt" memory "$signoff" work | awk '{ printf "%.1f", $1 / 1000 }')
        case $kind in
            words) row 'memory of work, a review of 9 MB of words' "$figure" 65 MB ;;
            findings) note 'memory of work, a review of 9 MB of findings' "$figure" MB ;;
        esac
    done
else
    "$fill" .signoff "$many"
    note 'memory of work' '-' 'not measured: there is no /proc'
fi
cd "$place/many"
note "CPU time of a task, $tasks tasks in a row" "$((own / tasks))" ms
front=$(seq 5 24)
# shellcheck disable=SC2086
note "the same, at the front of a queue of $many" "$(($(cpu "$signoff" work --jobs 1 $front) / 20))" ms

[ "$over" -eq 0 ] || printf '\nsomething is OVER its limit\n'
exit "$over"
