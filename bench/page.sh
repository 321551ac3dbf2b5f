#!/bin/sh
# Measures the response time of the page with a run of a thousand tasks and a hundred thousand events, also while 64 loops
# work, each with an agent that prints a hundred lines a second; and the memory of `signoff serve`.
#
#   bench/page.sh [SIGNOFF]      the program to measure; target/release/signoff by default
#
# Prints a table; exits with 1 if a row is over its limit. Needs curl and python3.
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
signoff=${1:-$here/target/release/signoff}
[ -x "$signoff" ] || { echo "no program at $signoff: cargo build --release" >&2; exit 2; }
cargo build --release --quiet --manifest-path "$here/Cargo.toml" --package signoff-store --example history
place=$(mktemp -d)
server= worker=
end() {
    for one in $worker $server; do kill "$one" 2>/dev/null || true; done
    wait
    rm -rf "$place"
}
trap end EXIT
trap 'exit 1' HUP INT TERM
export HOME="$place/home" XDG_CONFIG_HOME="$place/home/.config"
mkdir -p "$HOME" "$place/work"
cd "$place/work"
git init -q -b main
git config user.name Bench
git config user.email bench@example.org
git commit -q --allow-empty -m Start
mkdir .signoff
"$here/target/release/examples/history" .signoff "${TASKS:-1000}" "${FACTS:-100000}"
over=0
row() {
    printf '%-58s %9s %9s %s\n' "$1" "$2" "$3" "$4"
    awk -v a="$2" -v b="$3" 'BEGIN { exit !(a > b) }' && over=1 || true
}

"$signoff" serve --port 0 --json >"$place/address" &
server=$!
while [ ! -s "$place/address" ]; do sleep 0.1; done
url=$(sed 's/.*"url":"\([^"]*\)".*/\1/' "$place/address")
base=${url%%/\?*}
curl -s -o /dev/null -c "$place/cookies" "$url"

# Prints the median time of 21 visits, in milliseconds.
visit() {
    for _ in $(seq 21); do
        curl -s -o "$place/page" -b "$place/cookies" -w '%{time_total}\n' "$base$1"
    done | sort -n | awk 'NR == 11 { printf "%.1f", $1 * 1000 }'
}
memory() { awk '/VmHWM/ { printf "%.1f", $2 / 1024 }' "/proc/$server/status"; }

printf '%-58s %9s %9s\n' "what" "measured" "limit"
row "the overview" "$(visit /)" 100 ms
row "the overview with all that is done" "$(visit '/?all=1')" 250 ms
row "a file of the page" "$(visit /assets/style.css)" 10 ms
row "a task" "$(visit "/tasks/$((${TASKS:-1000} / 2))")" 200 ms
row "the numbers of all runs, once counted" "$(visit /stats)" 200 ms

# Sixty-four loops, each with an agent that prints a hundred lines a second.
cat >"$place/agent.py" <<'AGENT'
import sys, time
sys.stdin.read()
begin = time.monotonic()
for line in range(6000):
    print(f"reading src/module_{line}.rs, which is about the {line}th thing", flush=True)
    time.sleep(max(0.0, begin + (line + 1) / 100 - time.monotonic()))
AGENT
printf 'sandbox = false\n[agents.talker]\nkind = "command"\ncommand = ["python3", "%s"]\n' "$place/agent.py" >signoff.toml
for number in $(seq 64); do "$signoff" add --quiet "Loop $number" >/dev/null; done
"$signoff" work -j 64 --quiet >/dev/null 2>&1 &
worker=$!
curl -s -N -o "$place/events" -b "$place/cookies" "$base/events" &
worker="$worker $!"
sleep 2
row "the overview while 64 loops work" "$(visit /)" 100 ms
row "a task while 64 loops work" "$(visit "/tasks/$((${TASKS:-1000} / 2))")" 200 ms
row "the numbers while 64 loops work" "$(visit /stats)" 500 ms
row "the most memory that signoff serve used" "$(memory)" 100 MB
for one in $worker; do kill "$one" 2>/dev/null || true; wait "$one" 2>/dev/null || true; done
worker=

# Requests for reports must not block the overview.
readers=
for _ in $(seq 8); do
    curl -s -o /dev/null -b "$place/cookies" "$base/runs/1/report.html" &
    readers="$readers $!"
done
row "the overview while eight reports are made" "$(visit /)" 250 ms
for one in $readers; do kill "$one" 2>/dev/null || true; wait "$one" 2>/dev/null || true; done
row "the most memory then: the whole run is in each of them" "$(memory)" 250 MB
exit $over
