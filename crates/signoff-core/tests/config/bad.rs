//! What people are told about mistakes: the file, the line, and what to write instead.

use std::fmt::Write;

use signoff_core::config::{Flag, LONGEST, Layer, read};

use crate::try_configured;

/// One mistake each.
const BAD: &[&str] = &[
    r#"jobs = 
"#,
    r#"jobs = 2

[gate
"#,
    r#"jobs = 2
preset = "task
"#,
    r#"jobs = 2
jobs = 3
"#,
    r#"[gate]
fail_on = "LOW"
[gate]
"#,
    r#"this is not toml at all
"#,
    r#"job = 2
"#,
    r#"# a comment

gates = 2
"#,
    r#"jobs = 0
"#,
    r#"jobs = -1
"#,
    r#"jobs = 1.5
"#,
    r#"jobs = "4"
"#,
    r#"jobs = 99999999999999999999
"#,
    r#"jobs = 100000
"#,
    r#"preset = 3
"#,
    r#"preset = "tsak"
"#,
    r#"preset = "waterfall"
"#,
    r#"store = "mysql://x"
"#,
    r#"landing = "squash"
"#,
    r#"review_workspace = "mine"
"#,
    r#"sandbox = "yes"
"#,
    r#"no_ask = 1
"#,
    r#"agents = 3
"#,
    r#"agents = ["claude"]
"#,
    r#"[agents]
claude = "opus"
"#,
    r#"[agents.mine]
model = "x"
"#,
    r#"[agents.mine]
kind = "claud"
"#,
    r#"[agents.mine]
kind = "command"
"#,
    r#"[agents.mine]
kind = "command"
command = []
"#,
    r#"[agents.mine]
kind = "command"
command = [" "]
"#,
    r#"[agents.mine]
kind = "command"
command = "./agent.sh --fast"
"#,
    r#"[agents.mine]
kind = "command"
command = ["a", 3]
"#,
    r#"[agents.claude]
modle = "opus"
"#,
    r#"[agents.claude]
model = ""
"#,
    r#"[agents.claude]
timeout = 30
"#,
    r#"[agents.claude]
timeout = "0s"
"#,
    r#"[agents.claude]
env = { A = 1 }
"#,
    r#"[agents.claude]
env = { "A=B" = "1" }
"#,
    r#"[agents.claude]
env = { A = "x\u0000y" }
"#,
    r#"[agents.claude]
fallback = "codex"
"#,
    r#"[agents.claude]
fallback = "codex"
[agents.codex]
fallback = "claude"
"#,
    r#"[agents."../x"]
kind = "claude"
"#,
    r#"[agents.claude]
[roles]
implment = "claude"
"#,
    r#"[agents.claude]
[roles]
implement = "cluade"
"#,
    r#"[agents.claude]
[roles]
implement = "gemini"
"#,
    r#"[roles]
implement = "gemini"
"#,
    r#"[agents.tests]
kind = "checks"
[roles]
implement = "tests"
"#,
    r#"[reviewers.careful]
contract = "xml"
"#,
    r#"[reviewers.code]
contract = "yaml"
"#,
    r#"[reviewers.code]
kind = "style"
"#,
    r#"[reviewers.code]
agent = "nobody"
"#,
    r#"[reviewers.code]
require_nonce = "yes"
"#,
    r#"[reviewers."a/b"]
kind = "code"
"#,
    r#"[gate]
fail_on = "CRITICAL"
"#,
    r#"[gate]
max_cycels = 3
"#,
    r#"[gate]
max_cycles = 0
"#,
    r#"[gate]
max_cycles = 3
max_fixes = 2
"#,
    r#"[gate]
max_cycles = -3
"#,
    r#"[gate]
reviewers = []
"#,
    r#"[gate]
reviewers = ["general", "general"]
"#,
    r#"[gate]
fail_on = "LOW"
reviewers = ["genral"]
"#,
    r#"[gate]
reviewers = ["somebody"]
"#,
    r#"[gate]
on_unclear = "next-attempt"
"#,
    r#"preset = "loops"
[gate]
on_failure = "restart"
"#,
    r#"[presets.tasks]
effort = "low"
"#,
    r#"[presets.loops]
effort = "huge"
"#,
    r#"[presets.loops]
efort = "low"
"#,
    r#"[presets.loops]
max_attempts = 0
"#,
    r#"[presets.loops.gates.revew]
fail_on = "LOW"
"#,
    r#"[presets.loops.gates.implement]
fail_on = "LOW"
"#,
    r#"[presets.loops.gates.review]
reviewers = ["code"]
"#,
    r#"[presets.phases.gates.test]
max_fixes = 2
fail_on = "LOW"
"#,
    r#"[defaults]
auto_review = "yes"
"#,
    r#"[defaults]
max_review_cycles = 0
"#,
    r#"[defaults]
cycles = 3
"#,
    r#"[task_types.implment]
model = "opus"
"#,
    r#"[task_types.implement]
timeout_minutes = 0
"#,
    r#"[task_types.implement]
timeout_minutes = 99999999
"#,
    r#"[task_types.implement]
review_timeout = "3m"
"#,
    r#"[limits]
max_cost_usd = -5.0
"#,
    r#"[limits]
max_cost_usd = 0
"#,
    r#"[limits]
max_cost_usd = inf
"#,
    r#"[limits]
max_cost_usd = nan
"#,
    r#"[limits]
max_cost_usd = 1e30
"#,
    r#"[limits]
max_cost_usd = "20"
"#,
    r#"[limits]
max_tokens = 0
"#,
    r#"[limits]
silence = "10 minutes"
"#,
    r#"[limits]
silence = "99999999999999999999h"
"#,
    r#"[limits.run]
attempt = "60m"
"#,
    r#"[checks]
test = ""
"#,
    r#"[checks]
test = ["make", "test"]
"#,
    r#"[checks]
"rm -rf" = "x"
"#,
    r#"[prompts]
reviewer = "x.md"
"#,
    r#"[prompts]
review = 3
"#,
    r#"[worktree]
copy = ["../secrets"]
"#,
    r#"[worktree]
copy = ".env"
"#,
    r#"[worktree]
directroy = "x"
"#,
    r#"[workflows.task]
phases = [{ name = "a", kind = "agent" }]
"#,
    r#"[workflows.mine]
phases = [
  { name = "a", kind = "agent" },
  { name = "b", kind = "gate", reviewers = ["nobody"] },
]
"#,
    r#"[workflows.mine]
phases = [
  { name = "a", kind = "agent", rol = "fix" },
]
"#,
    r#"workflows = "mine"
"#,
    r#"[workflows]
mine = 3
"#,
];

#[test]
fn every_mistake_is_named_with_its_line() {
    let mut out = String::new();
    for text in BAD {
        let error = try_configured(text).expect_err(text).to_string();
        let line: usize =
            error.split(':').nth(1).and_then(|line| line.parse().ok()).unwrap_or_else(|| panic!("{error}"));
        let pointed = text.lines().nth(line - 1).unwrap_or("");
        writeln!(out, "{error}\n    | {pointed}").unwrap();
    }
    insta::assert_snapshot!(out);
}

#[test]
fn a_file_that_is_too_long_is_refused_at_once() {
    let text = "a = 1 # padding\n".repeat(5_000_000 / 16);
    insta::assert_snapshot!(try_configured(&text).unwrap_err(), @"signoff.toml:1: the file has 5000000 bytes: expected at most 1000000");
    assert!(text.len() > LONGEST);
}

/// As many keys as fit: the lines of all of them are found in time.
#[test]
fn a_file_full_of_keys_is_read() {
    let mut text = "[checks]\n".to_owned();
    for number in 0.. {
        if text.len() + 20 > LONGEST {
            break;
        }
        writeln!(text, "c{number} = \"x\"").unwrap();
    }
    let settings = try_configured(&text).unwrap();
    let rows = settings.origins();
    let last = rows.iter().rfind(|row| row.key.starts_with("checks.")).unwrap();
    assert_eq!(last.origin.to_string(), format!("signoff.toml:{}", text.lines().count()));
}

#[test]
fn deep_nesting_is_an_error_like_any_other() {
    let text = format!("x = {}1{}\n", "[".repeat(10_000), "]".repeat(10_000));
    let error = try_configured(&text).unwrap_err().to_string();
    assert!(error.starts_with("signoff.toml:1: this is not TOML"), "{error}");
}

#[test]
fn a_mistake_outside_files_names_its_place() {
    let environment = |name: &str, value: &str| {
        read(&[], &[(name.to_owned(), value.to_owned())], &[]).unwrap_err().to_string()
    };
    insta::assert_snapshot!(environment("SIGNOFF_JOBS", "many"), @r#"SIGNOFF_JOBS: `jobs` is "many": expected a whole number from 1 to 1000"#);
    insta::assert_snapshot!(environment("SIGNOFF_JOBS", "0"), @"SIGNOFF_JOBS: `jobs` is 0: expected a whole number from 1 to 1000");
    insta::assert_snapshot!(environment("SIGNOFF_JOBS", "4\npreset = \"plan\""), @r#"SIGNOFF_JOBS: `jobs` is "4\npreset = \"plan\"": expected a whole number from 1 to 1000"#);
    insta::assert_snapshot!(environment("SIGNOFF_JOB", "4"), @"SIGNOFF_JOB: no such setting: did you mean `SIGNOFF_JOBS`?");
    insta::assert_snapshot!(environment("SIGNOFF_PRESET", "3"), @r#"SIGNOFF_PRESET: `preset` is "3", which is no workflow: expected one of task, slots, plan, loops, phases"#);
    insta::assert_snapshot!(environment("SIGNOFF_NO_ASK", "maybe"), @r#"SIGNOFF_NO_ASK: `no_ask` is "maybe": expected true or false"#);
    let flag = Flag { name: "--jobs", key: "jobs", value: "0".to_owned() };
    insta::assert_snapshot!(read(&[], &[], &[flag]).unwrap_err(), @"--jobs: `jobs` is 0: expected a whole number from 1 to 1000");
}

#[test]
fn the_file_that_is_wrong_is_named() {
    let person = Layer::person("config.toml", "[agents.claude]\n[roles]\nimplement = \"cluade\"\n");
    let repository = Layer::repository("signoff.toml", "jobs = 2\n");
    insta::assert_snapshot!(read(&[person, repository], &[], &[]).unwrap_err(), @"config.toml:3: `implement` names the agent `cluade`, which is not configured: did you mean `claude`?");
}
