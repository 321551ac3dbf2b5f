#!/bin/sh
# Measures the cost of the screen while 64 loops run: every agent prints a hundred lines a second.
#
#   bench/tui.sh [SIGNOFF]         the program to measure; target/release/signoff by default
#   SECONDS_EACH=20 bench/tui.sh   how long the agents print; 20 by default
#
# It uses a pseudo-terminal of 200 columns and 60 lines (python3's pty). The CPU time is that of the signoff process alone,
# over the middle of the time in which all agents print; the frames are those of the whole time.
# Prints a table; exits with 1 if a row is over its limit.
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
signoff=${1:-$here/target/release/signoff}
[ -x "$signoff" ] || { echo "no program at $signoff: cargo build --release" >&2; exit 2; }
command -v python3 >/dev/null || { echo "python3 is needed for a pseudo-terminal" >&2; exit 2; }
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
export HOME="$place/home" XDG_CONFIG_HOME="$place/home/.config" TERM=xterm-256color
export SECONDS_EACH="${SECONDS_EACH:-20}" LOOPS="${LOOPS:-64}"
mkdir -p "$HOME" "$place/work"

# An agent that prints a hundred lines a second, by the clock. It is one process, to keep its own load low.
cat >"$place/agent.py" <<'AGENT'
import os, sys, time
sys.stdin.read()
begin, seconds = time.monotonic(), float(os.environ["SECONDS_EACH"])
for line in range(int(seconds * 100)):
    print(f"{os.environ.get('SIGNOFF_TASK_ID')}: reading src/module_{line}.rs, which is about the {line}th thing", flush=True)
    time.sleep(max(0.0, begin + (line + 1) / 100 - time.monotonic()))
open(f"task-{os.environ.get('SIGNOFF_TASK_ID')}.txt", "w").write("work\n")
AGENT

cd "$place/work"
git init -q -b main
git config user.name Bench
git config user.email bench@example.org
cat >signoff.toml <<CONFIG
jobs = $LOOPS
[agents.talker]
kind = "command"
command = ["python3", "$place/agent.py"]
CONFIG
git add -A
git commit -qm "A project"
task=1
while [ "$task" -le "$LOOPS" ]; do
    "$signoff" add "Task $task of many" -q >/dev/null
    task=$((task + 1))
done

cat >"$place/watch.py" <<'WATCH'
import fcntl, os, pty, re, select, struct, sys, termios, time

signoff, loops, seconds = sys.argv[1], os.environ["LOOPS"], float(os.environ["SECONDS_EACH"])
pid, terminal = pty.fork()
if pid == 0:
    time.sleep(0.2)  # until the terminal has its size
    os.execv(signoff, [signoff, "work", "-v", "-j", loops])
fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 60, 200, 0, 0))
ticks = os.sysconf("SC_CLK_TCK")


def used():
    with open(f"/proc/{pid}/stat") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / ticks


def most():
    with open(f"/proc/{pid}/status") as status:
        return int(re.search(r"VmHWM:\s+(\d+)", status.read())[1]) / 1024


begin, marks, peak, output, drawn = time.monotonic(), [], 0.0, b"", 0
while True:
    ready, _, _ = select.select([terminal], [], [], 0.1)
    if ready:
        try:
            piece = os.read(terminal, 1 << 16)
        except OSError:
            break
        if not piece:
            break
        drawn, output = drawn + len(piece), (output + piece)[-20000:]
    passed = time.monotonic() - begin
    try:
        if passed > seconds * 0.4 and not marks or passed > seconds * 0.8 and len(marks) == 1:
            marks.append((passed, used()))
        peak = max(peak, most())
    except (OSError, TypeError):
        pass
_, status = os.waitpid(pid, 0)
frames = re.findall(rb"(\d+) frames in ([\d.]+) s", output)
if os.waitstatus_to_exitcode(status) != 0 or not frames or len(marks) < 2:
    sys.stderr.write(output.decode(errors="replace"))
    sys.exit("signoff did not work it")
share = 100 * (marks[1][1] - marks[0][1]) / (marks[1][0] - marks[0][0])
rate = float(frames[-1][0]) / float(frames[-1][1])
over = 0


def row(what, measured, limit, unit, fine):
    global over
    over |= not fine
    print(f"{what:<66} {measured:8.1f} {limit:>8} {unit}")


print(f"{'what':<66} {'measured':>8} {'limit':>8}")
row(f"frames a second, {loops} loops with 100 lines a second each", rate, ">= 20", "", rate >= 20)
row("share of one processor", share, "<= 25", "%", share <= 25)
row("memory at most", peak, "< 100", "MB", peak < 100)
print(f"{drawn / 1e6:.1f} MB drawn")
sys.exit(over)
WATCH
python3 "$place/watch.py" "$signoff"
