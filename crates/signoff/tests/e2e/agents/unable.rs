//! Agents of every kind that cannot work: errors before the run, and failed attempts during it.

use signoff_testkit::TestEnv;

use super::{configured, program, shell};
use crate::test_env;

/// Each kind with a supported version and a recording of a successful run.
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
fn a_missing_or_outdated_agent_is_named_before_the_run() {
    let mut table = String::new();
    for (kind, ..) in KINDS {
        let env = test_env();
        configured(&env, &settings(kind));
        let work = "signoff work; echo exit $?; ls .signoff/worktrees 2> /dev/null";
        table += &shell(&env, &format!("signoff add T -q > /dev/null; {work}")).to_string();
        program(&env, kind, "0.1.0", "work");
        table += &shell(&env, work).to_string();
    }
    insta::assert_snapshot!(table, @"
    exit 2
    --- stdout
    exit 2
    --- stderr
    error: agent claude: program claude was not found
      --> signoff.toml:13
    hint: install it (`npm install -g @anthropic-ai/claude-code`), or set [agents.claude] command in signoff.toml
    exit 2
    --- stdout
    exit 2
    --- stderr
    error: agent claude: version 0.1.0 is too old: it must be 2.0.44 or later
      --> signoff.toml:13
    hint: update it (`npm install -g @anthropic-ai/claude-code@latest`, or with your package manager)
    exit 2
    --- stdout
    exit 2
    --- stderr
    error: agent codex: program codex was not found
      --> signoff.toml:13
    hint: install it (`npm install -g @openai/codex`), or set [agents.codex] command in signoff.toml
    exit 2
    --- stdout
    exit 2
    --- stderr
    error: agent codex: version 0.1.0 is too old: it must be 0.122.0 or later
      --> signoff.toml:13
    hint: update it (`npm install -g @openai/codex@latest`, or with your package manager)
    exit 2
    --- stdout
    exit 2
    --- stderr
    error: agent gemini: program gemini was not found
      --> signoff.toml:13
    hint: install it (`npm install -g @google/gemini-cli`), or set [agents.gemini] command in signoff.toml
    exit 2
    --- stdout
    exit 2
    --- stderr
    error: agent gemini: version 0.1.0 is too old: it must be 0.39.1 or later
      --> signoff.toml:13
    hint: update it (`npm install -g @google/gemini-cli@latest`, or with your package manager)
    exit 2
    --- stdout
    exit 2
    --- stderr
    error: agent opencode: program opencode was not found
      --> signoff.toml:13
    hint: install it (`npm install -g opencode-ai`), or set [agents.opencode] command in signoff.toml
    exit 2
    --- stdout
    exit 2
    --- stderr
    error: agent opencode: version 0.1.0 is too old: it must be 1.17.12 or later
      --> signoff.toml:13
    hint: update it (`npm install -g opencode-ai@latest`, or with your package manager)
    ");
}

/// An agent that writes successfully and replays this recording when it reviews.
fn reviews(env: &TestEnv, kind: &str, recording: &str) {
    let (_, version, working) = KINDS.into_iter().find(|(name, ..)| *name == kind).unwrap();
    program(env, kind, version, "$recording");
    let chosen = format!(
        "case $SIGNOFF_ROLE in review) recording={recording};; *) recording={working}; echo work > f.txt;; esac\n"
    );
    let script = std::fs::read_to_string(env.work().join(format!("../agents/{kind}"))).unwrap();
    env.write(&format!("../agents/{kind}"), script.replace("cat > /dev/null\n", &format!("cat > /dev/null\n{chosen}")));
    configured(env, &settings(kind));
}

/// The output for a reviewer that replays this recording; checks that all commands agree on it.
fn failed_review(kind: &str, recording: &str) -> String {
    let env = test_env();
    reviews(&env, kind, recording);
    let worked = shell(&env, "signoff add T --auto-review > /dev/null; signoff work --no-ask");
    assert_eq!(worked.code, Some(1), "{worked}");
    let lines = worked.stdout.lines().skip_while(|line| !line.contains("Review: "));
    let lines: Vec<&str> = lines.take_while(|line| !line.starts_with('✗')).map(str::trim).collect();
    let shown = shell(&env, "signoff show 1 --json").json();
    let attempts = shown["attempts"].as_array().unwrap();
    let [writer, reviewer] = attempts.as_slice() else { panic!("{shown:#}") };
    assert_eq!((&writer["outcome"], &shown["task"]["status"]), (&"complete".into(), &"failed".into()), "{worked}");
    // The task failed, and the work is kept.
    let task = &shell(&env, "signoff status --json").json()["tasks"][0];
    assert_eq!((&task["status"], &task["reason"]), (&"failed".into(), &"reviewer_failed".into()));
    let kept = shell(&env, "cat .signoff/worktrees/*/f.txt; git show signoff/task-1-t:f.txt").stdout;
    assert_eq!(kept, "work\nwork\n", "{worked}");
    // Every command shows the same hint.
    let hint = reviewer["hint"].as_str().unwrap_or("none");
    let text = shell(&env, "signoff show 1").stdout;
    for place in [&worked.stdout, &text] {
        assert_eq!(place.contains(&format!("hint: {hint}")), hint != "none", "{place}");
    }
    let status = shell(&env, "signoff status").stdout;
    assert!(status.contains("failed") && status.contains("reviewer_failed"), "{status}");
    format!("{kind} {recording}: {}\n  {}\n", reviewer["outcome"].as_str().unwrap_or_default(), lines.join("\n  "))
}

#[test]
fn a_missing_login_is_reported_in_the_agents_words() {
    let all = [("claude", "no-login"), ("codex", "no-login"), ("gemini", "no_key"), ("opencode", "401")];
    insta::assert_snapshot!(all.map(|(kind, recording)| failed_review(kind, recording)).concat(), @"
    claude no-login: agent_trouble
      [1/3] Review: INCONCLUSIVE - code: not logged in: Not logged in · Please run /login
      hint: log in with the agent itself, or give it its key; then `signoff agents --check claude`
    codex no-login: agent_trouble
      [1/3] Review: INCONCLUSIVE - code: not logged in: Missing environment variable: `OPENAI_API_KEY`.
      hint: log in with the agent itself, or give it its key; then `signoff agents --check codex`
    gemini no_key: agent_trouble
      [1/3] Review: INCONCLUSIVE - code: not logged in: When using Gemini API, you must specify the GEMINI_API_KEY environment variabl…
      hint: log in with the agent itself, or give it its key; then `signoff agents --check gemini`
    opencode 401: agent_trouble
      [1/3] Review: INCONCLUSIVE - code: not logged in: invalid api key
      hint: log in with the agent itself, or give it its key; then `signoff agents --check opencode`
    ");
}

#[test]
fn an_unknown_model_is_reported() {
    let all = [
        ("claude", "status-404"),
        ("codex", "unknown-model"),
        ("gemini", "status_404"),
        ("opencode", "404"),
        ("opencode", "wrong_model"),
    ];
    insta::assert_snapshot!(all.map(|(kind, recording)| failed_review(kind, recording)).concat(), @"
    claude status-404: agent_trouble
      [1/3] Review: INCONCLUSIVE - code: the model cannot be used: There's an issue with the selected model (claude-sonnet-4-5). It ma…
      hint: `[agents.claude] model` names the model
    codex unknown-model: agent_trouble
      [1/3] Review: INCONCLUSIVE - code: the model cannot be used: The requested model 'scripted-9' does not exist.
      hint: `[agents.codex] model` names the model
    gemini status_404: agent_trouble
      [1/3] Review: INCONCLUSIVE - code: the model cannot be used: model not found: nope
      hint: `[agents.gemini] model` names the model
    opencode 404: agent_trouble
      [1/3] Review: INCONCLUSIVE - code: the model cannot be used: model not found: nope
      hint: `[agents.opencode] model` names the model
    opencode wrong_model: agent_trouble
      [1/3] Review: INCONCLUSIVE - code: it ended with an error: Unexpected server error. Check server logs for details. (before its f…
      hint: `signoff agents --check opencode` tries it by itself
    ");
}

#[test]
fn a_reviewer_that_does_not_reach_the_report_server_has_not_approved() {
    let all = [
        ("claude", "reports-down"),
        ("codex", "reports-down"),
        ("gemini", "server_unreachable"),
        ("opencode", "reports_unreachable"),
    ];
    insta::assert_snapshot!(all.map(|(kind, recording)| failed_review(kind, recording)).concat(), @r#"
    claude reports-down: agent_trouble
      [1/3] Review: INCONCLUSIVE - code: it could not reach the server for reports: Reporting. [no MCP tool submit_review was offered]
      hint: the agent must reach 127.0.0.1; with `contract = "markdown"` it needs no server
    codex reports-down: agent_trouble
      [1/3] Review: INCONCLUSIVE - code: it could not reach the server for reports: required MCP servers failed to initialize: Client…
      hint: the agent must reach 127.0.0.1; with `contract = "markdown"` it needs no server
    gemini server_unreachable: agent_trouble
      [1/3] Review: INCONCLUSIVE - code: it could not reach the server for reports: Reporting. [no MCP tool report_finding was offered]
      hint: the agent must reach 127.0.0.1; with `contract = "markdown"` it needs no server
    opencode reports_unreachable: agent_trouble
      [1/3] Review: INCONCLUSIVE - code: it could not reach the server for reports: Reporting. [no MCP tool report_finding was offered]
      hint: the agent must reach 127.0.0.1; with `contract = "markdown"` it needs no server
    "#);
}

#[test]
fn an_unsupported_command_line_is_reported() {
    let all = [("claude", "too-old"), ("codex", "too-old"), ("gemini", "unknown_flag")];
    insta::assert_snapshot!(all.map(|(kind, recording)| failed_review(kind, recording)).concat(), @"
    claude too-old: agent_trouble
      [1/3] Review: INCONCLUSIVE - code: it does not understand its command line: exit code 1, error: option '--permission-mode <mode>…
      hint: update the agent; `signoff agents` shows the installed version of claude
    codex too-old: agent_trouble
      [1/3] Review: INCONCLUSIVE - code: it does not understand its command line: error: unexpected argument '--ignore-rules' found
      hint: update the agent; `signoff agents` shows the installed version of codex
    gemini unknown_flag: agent_trouble
      [1/3] Review: INCONCLUSIVE - code: it does not understand its command line: Unknown arguments: such-flag, suchFlag
      hint: update the agent; `signoff agents` shows the installed version of gemini
    ");
}

/// An undetected login produces a warning, not an error.
#[test]
fn an_agent_that_is_probably_not_logged_in_produces_a_warning() {
    let mut warnings = String::new();
    for (kind, version, recording) in KINDS {
        let env = test_env();
        program(&env, kind, version, recording);
        configured(&env, &settings(kind));
        let worked = shell(&env, "signoff add T -q > /dev/null; signoff work");
        let warned = worked.stderr.lines().filter(|line| line.contains("warning")).collect::<String>();
        warnings += &format!("{kind}: {warned}\n");
    }
    insta::assert_snapshot!(warnings, @"
    claude: warning: agent claude is probably not logged in; `signoff agents --check claude` checks it
    codex: warning: agent codex is probably not logged in; `signoff agents --check codex` checks it
    gemini: warning: agent gemini is probably not logged in; `signoff agents --check gemini` checks it
    opencode:
    ");
}

/// The provider's message that an agent repeats is untrusted.
#[test]
fn a_check_prints_no_secrets_and_no_control_characters() {
    let env = test_env();
    let result = r#"{"type":"result","subtype":"success","is_error":true,"api_error_status":401,"result":"bad key sk-ant-canary-0123456789 \u001b[31mred\u001b]0;title\u0007"}"#;
    let script = format!(
        "#!/bin/sh\ncase $1 in --version) printf 'none sk-ant-canary-0123456789 \\033[31m'; exit;; esac\ncat > /dev/null\n\
         echo '{result}'\nexit 1\n"
    );
    env.write("../agents/claude", script);
    configured(&env, &settings("claude"));
    let check =
        |how: &str| shell(&env, &format!("ANTHROPIC_API_KEY=sk-ant-canary-0123456789 signoff agents --check {how}"));
    for printed in [check("").stdout, check("--json").stdout] {
        assert!(printed.contains("bad key [redacted]") && printed.contains("none [redacted]"), "{printed}");
        assert!(!printed.contains("canary") && !printed.contains('\u{1b}') && !printed.contains('\u{7}'), "{printed}");
    }
}
