//! Agents of every kind that cannot do their work: what is said before a run, and what becomes of it otherwise.

use signoff_testkit::TestEnv;

use super::{configured, program, shell};
use crate::test_env;

/// Each kind with a version that is recent enough, and a recording in which it works well.
const KINDS: [(&str, &str, &str); 4] = [
    ("claude", "2.1.325 (Claude Code)", "work"),
    ("codex", "codex-cli 0.166.0", "work"),
    ("gemini", "0.61.0", "tools"),
    ("opencode", "1.18.33", "tools"),
];

/// Settings with one agent, whose reviewer reports with a tool.
fn settings(kind: &str) -> String {
    format!(
        "[roles]\nimplement = \"{kind}\"\n\n[gate]\nreviewers = [\"code\"]\non_reviewer_failure = [\"stop\"]\n\n\
         [reviewers.code]\nkind = \"code\"\ncontract = \"tool\"\n\n[agents.{kind}]\nkind = \"{kind}\"\n"
    )
}

#[test]
fn who_is_missing_or_too_old_is_named_before_the_run() {
    let mut told = String::new();
    for (kind, ..) in KINDS {
        let env = test_env();
        configured(&env, &settings(kind));
        let work = "signoff work; echo exit $?; ls .signoff/worktrees 2> /dev/null";
        told += &shell(&env, &format!("signoff add T -q > /dev/null; {work}")).to_string();
        program(&env, kind, "0.1.0", "work");
        told += &shell(&env, work).to_string();
    }
    insta::assert_snapshot!(told, @"");
}

/// An agent that writes as it should, and says this when it is to review.
fn reviews(env: &TestEnv, kind: &str, said: &str) {
    let (_, version, well) = KINDS.into_iter().find(|(name, ..)| *name == kind).unwrap();
    program(env, kind, version, "$said");
    let chosen = format!("case $SIGNOFF_ROLE in review) said={said};; *) said={well}; echo work > f.txt;; esac\n");
    let script = std::fs::read_to_string(env.work().join(format!("../agents/{kind}"))).unwrap();
    env.write(&format!("../agents/{kind}"), script.replace("cat > /dev/null\n", &format!("cat > /dev/null\n{chosen}")));
    configured(env, &settings(kind));
}

/// What is told of a reviewer that says this, wherever people and programs look.
fn told(kind: &str, said: &str) -> String {
    let env = test_env();
    reviews(&env, kind, said);
    let worked = shell(&env, "signoff add T --auto-review > /dev/null; signoff work --no-ask");
    assert_eq!(worked.code, Some(1), "{worked}");
    let lines = worked.stdout.lines().skip_while(|line| !line.contains("Review: "));
    let lines: Vec<&str> = lines.take_while(|line| !line.starts_with('✗')).map(str::trim).collect();
    let shown = shell(&env, "signoff show 1 --json").json();
    let attempts = shown["attempts"].as_array().unwrap();
    let [writer, reviewer] = attempts.as_slice() else { panic!("{shown:#}") };
    assert_eq!((&writer["outcome"], &shown["task"]["status"]), (&"complete".into(), &"failed".into()), "{worked}");
    // Nothing passes, and what was done is there.
    let task = &shell(&env, "signoff status --json").json()["tasks"][0];
    assert_eq!((&task["status"], &task["reason"]), (&"failed".into(), &"reviewer_failed".into()));
    let kept = shell(&env, "cat .signoff/worktrees/*/f.txt; git show signoff/task-1-t:f.txt").stdout;
    assert_eq!(kept, "work\nwork\n", "{worked}");
    // The next step is told the same everywhere.
    let hint = reviewer["hint"].as_str().unwrap_or("none");
    let text = shell(&env, "signoff show 1").stdout;
    for place in [&worked.stdout, &text] {
        assert_eq!(place.contains(&format!("hint: {hint}")), hint != "none", "{place}");
    }
    format!("{kind} {said}: {}\n  {}\n", reviewer["outcome"].as_str().unwrap_or_default(), lines.join("\n  "))
}

#[test]
fn who_is_not_logged_in_says_so_itself() {
    let all = [("claude", "no-login"), ("codex", "no-login"), ("gemini", "no_key"), ("opencode", "401")];
    insta::assert_snapshot!(all.map(|(kind, said)| told(kind, said)).concat(), @"");
}

#[test]
fn a_model_that_is_not_there() {
    let all = [("claude", "status-404"), ("codex", "unknown-model"), ("gemini", "status_404"), ("opencode", "404"), ("opencode", "wrong_model")];
    insta::assert_snapshot!(all.map(|(kind, said)| told(kind, said)).concat(), @"");
}

#[test]
fn who_does_not_reach_the_server_has_not_approved() {
    let all = [
        ("claude", "reports-down"),
        ("codex", "reports-down"),
        ("gemini", "server_unreachable"),
        ("opencode", "reports_unreachable"),
    ];
    insta::assert_snapshot!(all.map(|(kind, said)| told(kind, said)).concat(), @"");
}

#[test]
fn what_does_not_understand_its_command_line() {
    let all = [("claude", "too-old"), ("codex", "too-old"), ("gemini", "unknown_flag")];
    insta::assert_snapshot!(all.map(|(kind, said)| told(kind, said)).concat(), @"");
}

/// Nobody is stopped by a login that cannot be seen, but everybody is told.
#[test]
fn who_seems_not_to_be_logged_in_is_warned_of() {
    let mut said = String::new();
    for (kind, version, well) in KINDS {
        let env = test_env();
        program(&env, kind, version, well);
        configured(&env, &settings(kind));
        let worked = shell(&env, "signoff add T -q > /dev/null; signoff work");
        let warned = worked.stderr.lines().filter(|line| line.contains("warning")).collect::<String>();
        said += &format!("{kind}: {warned}\n");
    }
    insta::assert_snapshot!(said, @"");
}

/// What an agent says of its provider may hold anything.
#[test]
fn a_trial_tells_no_secret_and_does_not_steer_the_terminal() {
    let env = test_env();
    let result = r#"{"type":"result","subtype":"success","is_error":true,"api_error_status":401,"result":"bad key sk-ant-canary-0123456789 \u001b[31mred\u001b]0;title\u0007"}"#;
    let script = format!(
        "#!/bin/sh\ncase $1 in --version) printf 'none sk-ant-canary-0123456789 \\033[31m'; exit;; esac\ncat > /dev/null\n\
         echo '{result}'\nexit 1\n"
    );
    env.write("../agents/claude", script);
    configured(&env, &settings("claude"));
    let check = |how: &str| {
        shell(&env, &format!("ANTHROPIC_API_KEY=sk-ant-canary-0123456789 signoff agents --check {how}"))
    };
    for told in [check("").stdout, check("--json").stdout] {
        assert!(told.contains("bad key [redacted]"), "{told}");
        assert!(!told.contains("canary") && !told.contains('\u{1b}') && !told.contains('\u{7}'), "{told}");
    }
}
