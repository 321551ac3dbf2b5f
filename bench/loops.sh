#!/bin/sh
# Measures the time of many parallel loops against the minimum time of one, and signoff's own CPU time for each loop.
# The agents sleep, like agents whose models run elsewhere.
#
#   bench/loops.sh [SIGNOFF]      the program to measure; target/release/signoff by default
#
# Prints a table; exits with 1 if a row is over its limit.
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
signoff=${1:-$here/target/release/signoff}
[ -x "$signoff" ] || { echo "no program at $signoff: cargo build --release" >&2; exit 2; }
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
export HOME="$place/home" XDG_CONFIG_HOME="$place/home/.config"
mkdir -p "$HOME"
over=0
row() {
    printf '%-66s %8s %8s %s\n' "$1" "$2" "$3" "${4:-}"
    awk -v a="$2" -v b="$3" 'BEGIN { exit !(a > b) }' && over=1 || true
}
note() { printf '%-66s %8s %8s %s\n' "$1" "$2" - "${3:-}"; }

# An agent that sleeps for SECONDS_EACH except when planning, and whose work is rejected once.
cat >"$place/agent.sh" <<'AGENT'
#!/bin/sh
cat >/dev/null
case $SIGNOFF_ROLE in
enumerate | plan) cat "$PLAN/$SIGNOFF_ROLE.json"; exit ;;
esac
[ "$SIGNOFF_PHASE" = review ] || [ "$SIGNOFF_ROLE" = implement ] || { echo '**Verdict: APPROVED**'; exit; }
sleep "$SECONDS_EACH"
case $SIGNOFF_ROLE in
implement) echo work >"task-$SIGNOFF_TASK_ID.txt"; echo TASK_COMPLETE ;;
fix) echo fixed >>"task-$SIGNOFF_TASK_ID.txt" ;;
review)
    if [ "$SIGNOFF_CYCLE" = 1 ]; then
        printf -- '- task-%s.txt:1 not yet\n\n**Verdict: CHANGES_REQUESTED**\n' "$SIGNOFF_TASK_ID"
    else
        echo '**Verdict: APPROVED**'
    fi
    ;;
esac
AGENT
chmod +x "$place/agent.sh"

# repository NAME TASKS: creates a repository with a specification whose plan has TASKS tasks in one group.
repository() {
    mkdir "$place/$1"
    cd "$place/$1"
    git init -q -b main
    git config user.name Bench
    git config user.email bench@example.org
    cat >signoff.toml <<CONFIG
[agents.sleepy]
kind = "command"
command = ["$place/agent.sh"]
[reviewers.spec]
kind = "spec"
contract = "markdown"
[reviewers.code]
kind = "code"
contract = "markdown"
[presets.loops.gates.review]
reviewers = ["spec", "code"]
CONFIG
    echo '# Many things' >SPEC.md
    git add -A
    git commit -q -m Start
    mkdir "$place/plan-$1"
    awk -v n="$2" 'BEGIN {
        printf "{\"tasks\": ["
        for (i = 1; i <= n; i++) printf "%s{\"id\": \"t%d\", \"title\": \"Part %d\"}", (i > 1 ? ", " : ""), i, i
        print "]}"
    }' >"$place/plan-$1/enumerate.json"
    awk -v n="$2" 'BEGIN {
        printf "{\"groups\": [["
        for (i = 1; i <= n; i++) printf "%s\"t%d\"", (i > 1 ? ", " : ""), i
        print "]]}"
    }' >"$place/plan-$1/plan.json"
}

# measure NAME JOBS SECONDS: runs it, and prints the seconds from the first implementer to the last verdict, and from
# there to the last landing.
measure() {
    PLAN="$place/plan-$1" SECONDS_EACH=$3 "$signoff" --json-events run SPEC.md -j "$2" >"$place/events-$1"
    awk '
        function seconds(line) { match(line, /"at":"[^"]*T[0-9:.]*Z/); s = substr(line, RSTART, RLENGTH); sub(/.*T/, "", s); sub(/Z.*/, "", s); split(s, t, ":"); return t[1] * 3600 + t[2] * 60 + t[3] }
        /"kind":"loop.attempt_started"/ && /"role":"implement"/ && !first { first = seconds($0) }
        /"kind":"loop.review_arrived"/ && /"loop_id":"[0-9]+"/ { last = seconds($0) }
        /"kind":"loop.landing_ended"/ { landed = seconds($0) }
        END { printf "%.2f %.2f\n", last - first, landed - last }
    ' "$place/events-$1"
}

# Prints the CPU time of a command and its children, in milliseconds.
cpu() {
    # shellcheck disable=SC2016
    sh -c '"$@" >/dev/null 2>&1; times' cpu "$@" |
        awk 'NR == 2 { gsub("s", ""); split($1, u, "m"); split($2, s, "m"); printf "%d", (u[1]*60 + u[2] + s[1]*60 + s[2]) * 1000 }'
}

# Runs the agents of each loop without signoff: an implementation, a fix, and two rounds of two reviewers.
cat >"$place/agents.sh" <<'AGENTS'
for number in $(seq "$1"); do
    for call in 'implement 0' 'review 1' 'review 1' 'fix 1' 'review 2' 'review 2'; do
        set -- $call
        SIGNOFF_ROLE=$1 SIGNOFF_CYCLE=$2 SIGNOFF_PHASE=review SIGNOFF_TASK_ID=$number SECONDS_EACH=0 "$AGENT" </dev/null
    done
done
AGENTS

printf '%-66s %8s %8s\n' what measured limit

repository eight 8
set -- $(measure eight 8 1)
row '8 loops, agents of 1 s: from the first agent to the last verdict' "$1" 4.4 's (4 s is one loop alone)'
note '8 loops: landing all of them after that' "$2" s

repository many 64
export PLAN="$place/plan-many" SECONDS_EACH=2
own=$(cpu "$signoff" run SPEC.md -j 64)
mkdir "$place/bare" && cd "$place/bare"
agents=$(AGENT="$place/agent.sh" cpu sh "$place/agents.sh" 64)
cd "$place/many"
landed=$(git log --first-parent --format=%s main..signoff/run-1 | grep -c '^Merge task')
[ "$landed" = 64 ] || { echo "of 64 loops $landed have landed" >&2; exit 1; }
repository again 64
set -- $(measure again 64 2)
row '64 loops at once, agents of 2 s: over the 8 s of one loop alone' "$(awk -v t="$1" 'BEGIN { printf "%.2f", t / 8 }')" 1.25 times
note '64 loops: landing all of them after that' "$2" s
row '64 loops: CPU time of signoff and its git, for each loop' "$(((own - agents) / 64))" 80 ms
note '64 loops: CPU time of the agents themselves, for each loop' "$((agents / 64))" ms
exit "$over"
