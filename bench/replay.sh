#!/bin/sh
# Measures the replay of a run of a thousand tasks and a hundred thousand events.
#
#   bench/replay.sh [SIGNOFF]      the program to measure; target/release/signoff by default
#
# Prints a table; exits with 1 if a row is over its limit.
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
signoff=${1:-$here/target/release/signoff}
[ -x "$signoff" ] || { echo "no program at $signoff: cargo build --release" >&2; exit 2; }
cargo build --release --quiet --manifest-path "$here/Cargo.toml" --package signoff-store --example history
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
export HOME="$place/home" XDG_CONFIG_HOME="$place/home/.config"
mkdir -p "$HOME" "$place/work"
cd "$place/work"
git init -q -b main
mkdir .signoff
"$here/target/release/examples/history" .signoff "${TASKS:-1000}" "${FACTS:-100000}"
over=0
row() {
    printf '%-66s %8s %8s %s\n' "$1" "$2" "$3" s
    awk -v a="$2" -v b="$3" 'BEGIN { exit !(a > b) }' && over=1 || true
}
seconds() {
    begin=$(date +%s.%N)
    "$@" >"$place/out"
    end=$(date +%s.%N)
    awk -v a="$begin" -v b="$end" 'BEGIN { printf "%.2f", b - a }'
}
printf '%-66s %8s %8s\n' "what" "measured" "limit"
row "replay --speed max, in lines" "$(seconds "$signoff" replay 1 --speed max --plain)" 2
lines=$(wc -l <"$place/out")
row "replay --speed max, as JSON" "$(seconds "$signoff" replay 1 --speed max --json-events)" 2
if command -v python3 >/dev/null; then
    row "replay --speed max, on a screen of 120 columns and 40 lines" "$(python3 - "$signoff" <<'SCREEN'
import fcntl, os, pty, re, select, struct, sys, termios, time

pid, terminal = pty.fork()
if pid == 0:
    os.environ["TERM"] = "xterm-256color"
    time.sleep(0.2)  # until the terminal has its size
    os.execv(sys.argv[1], [sys.argv[1], "replay", "1", "--speed", "max"])
fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
begin, seen, piece = time.monotonic(), b"", b"."
# The first line says "replay ended" once the replay is complete. Unchanged cells are not drawn again.
end = re.compile(rb"(?:replay |H)ended")
while piece and not end.search(seen) and time.monotonic() - begin < 60:
    if select.select([terminal], [], [], 0.1)[0]:
        piece = os.read(terminal, 1 << 16)
        seen = (seen + piece)[-20000:]
print(f"{time.monotonic() - begin - 0.2:.2f}", end="")
os.write(terminal, b"q")
os.waitpid(pid, 0)
SCREEN
)" 2
fi
printf '%s lines, %s facts\n' "$lines" "$(wc -l <"$place/out")"
exit $over
