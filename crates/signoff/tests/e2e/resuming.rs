//! Agents that resume an earlier session.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use signoff_testkit::TestProject;
use signoff_testkit::processes::{self, wait_until};

use crate::PROGRAM;

const TERM: i32 = 15;

/// Imitates Claude Code: hangs at first, resumes its session if it exists, and reports an unknown session otherwise.
const CLAUDE: &str = r#"#!/bin/sh
if [ "$1" = --version ]; then echo "2.1.325 (Claude Code)"; exit; fi
root=$(cd ../../../.. && pwd)
session=11111111-2222-4333-8444-555555555555
kept="$CLAUDE_CONFIG_DIR/projects/here/$session.jsonl"
tokens='"inputTokens":100,"outputTokens":10,"costUSD":0.001'
cat > "$root/prompt"
case "$*" in
*"--resume $session"*)
    echo resumed >> "$root/asked"
    if [ ! -f "$kept" ] || [ -e "$root/gone" ]; then
        words="No conversation found with session ID: $session"
        echo "{\"type\":\"result\",\"subtype\":\"error_during_execution\",\"is_error\":true,\"session_id\":\"$session\",\"errors\":[\"$words\"]}"
        exit 1
    fi
    echo more >> "$kept" ;;
*)
    echo fresh >> "$root/asked"
    mkdir -p "${kept%/*}"
    echo begun > "$kept"
    echo "{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"$session\",\"model\":\"m\"}"
    if [ ! -e "$root/well" ]; then
        : > "$root/hangs"
        exec sleep 100
    fi ;;
esac
cp "$kept" kept.txt
echo "{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"$session\",\"model\":\"m\"}"
echo "{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\"Done.\",\"session_id\":\"$session\",\"total_cost_usd\":9.0,\"model_usage_since_last_result\":{\"m\":{$tokens}}}"
"#;

fn project(more: &str) -> TestProject {
    let project = TestProject::new(PROGRAM);
    let program = project.env.root().join("claude");
    fs::write(&program, CLAUDE).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let text = format!(
        "sandbox = false\n{more}\n[roles]\nimplement = \"claude\"\n[agents.claude]\ncommand = [{:?}]\n",
        program.display().to_string()
    );
    project.env.write("signoff.toml", text);
    project.commit("Configure");
    project.run(&["add", "Greet people"]);
    project
}

fn session_starts(project: &TestProject) -> String {
    fs::read_to_string(project.env.root().join("asked")).unwrap_or_default().replace('\n', " ")
}

/// Outcome and session of each attempt, and the attempt whose session it resumed.
fn attempts(project: &TestProject) -> String {
    let shown = project.run(&["show", "1", "--json"]).json();
    let attempts = shown["attempts"].as_array().unwrap().iter();
    let line = |attempt: &serde_json::Value| {
        let session = attempt["session"].as_str().unwrap_or("-").get(..8).unwrap_or("-").to_owned();
        let (id, outcome, resumes) = (&attempt["id"], &attempt["outcome"], &attempt["resumes"]);
        format!("{id} {outcome} {session} {resumes} {}", attempt["input_tokens"]).replace('"', "")
    };
    attempts.map(line).collect::<Vec<_>>().join("\n")
}

fn wait_until_hanging(project: &TestProject) {
    wait_until("it hangs", || project.env.root().join("hangs").exists());
}

/// The program gets SIGTERM while the agent hangs.
fn interrupted(project: &TestProject) {
    let child = project.env.start_group(&["work"]);
    wait_until_hanging(project);
    processes::signal_group(child.id(), TERM);
    assert_eq!(project.env.finish(child).code, Some(130));
}

#[test]
fn an_attempt_that_timed_out_resumes_its_session_when_retried() {
    let project = project("[limits]\nattempt = \"5s\"\n");
    assert_eq!(project.run(&["work"]).code, Some(1));
    project.run(&["retry", "1"]);
    let worked = project.run(&["work"]);
    assert_eq!(worked.code, Some(0), "{worked}");
    assert_eq!(session_starts(&project), "fresh resumed ");
    insta::assert_snapshot!(attempts(&project), @"
    a1 timed_out 11111111 null 0
    a2 complete 11111111 a1 100
    ");
    assert_eq!(project.git("show signoff/task-1-greet-people:kept.txt"), "begun\nmore\n");
    let prompt = fs::read_to_string(project.env.root().join("prompt")).unwrap();
    assert!(prompt.starts_with("You continue an earlier session."), "{prompt}");
    assert!(prompt.contains("Greet people"), "{prompt}");
}

#[test]
fn an_interrupted_attempt_resumes_its_session() {
    let project = project("");
    interrupted(&project);
    let worked = project.run(&["work"]);
    assert_eq!(worked.code, Some(0), "{worked}");
    assert_eq!(session_starts(&project), "fresh resumed ");
    insta::assert_snapshot!(attempts(&project), @"
    a1 interrupted 11111111 null 0
    a2 complete 11111111 a1 100
    ");
}

#[test]
fn an_attempt_of_a_killed_program_resumes_its_session() {
    let project = project("");
    let mut child = project.env.start_group(&["work"]);
    wait_until_hanging(&project);
    child.kill().unwrap();
    child.wait().unwrap();
    let worked = project.run(&["work"]);
    assert_eq!(worked.code, Some(0), "{worked}");
    assert_eq!(session_starts(&project), "fresh resumed ");
}

#[test]
fn a_missing_session_is_replaced_by_a_new_one_and_is_not_a_failure() {
    let project = project("");
    interrupted(&project);
    let homes = "find .signoff -type d -name projects -path '*home*' -prune -exec rm -r {} +";
    project.git(&format!("status -s > /dev/null; {homes}"));
    fs::write(project.env.root().join("well"), "").unwrap();
    let worked = project.run(&["work"]);
    assert_eq!(session_starts(&project), "fresh resumed fresh ");
    assert_eq!(worked.code, Some(0), "{worked}");
    assert!(worked.stdout.contains("The session to resume no longer exists; trying again"), "{worked}");
    insta::assert_snapshot!(attempts(&project), @"
    a1 interrupted 11111111 null 0
    a2 session_gone 11111111 a1 0
    a3 complete 11111111 null 100
    ");
}

#[test]
fn no_session_is_resumed_if_the_configuration_asks_for_fresh_ones() {
    let project = project("sessions = \"fresh\"\n");
    interrupted(&project);
    fs::write(project.env.root().join("well"), "").unwrap();
    assert_eq!(project.run(&["work"]).code, Some(0));
    assert_eq!(session_starts(&project), "fresh fresh ");
}

/// Finds something in the first review.
const REVIEWER: &str = r#"
[gate]
reviewers = ["code"]
[reviewers.code]
kind = "code"
agent = "reviewer"
contract = "xml"
[agents.reviewer]
kind = "command"
command = ["sh", "-c", "cat > /dev/null; [ $SIGNOFF_CYCLE != 1 ] && echo 'APPROVED: ok' || printf 'ISSUES:\\n- [Critical] kept.txt:1 wrong\\n'"]
"#;

#[test]
fn a_fixer_whose_session_is_missing_restarts_once() {
    let project = TestProject::new(PROGRAM);
    let program = project.env.root().join("claude");
    // A fix must change something.
    let script = CLAUDE.replace("cp \"$kept\" kept.txt", "cat \"$root/asked\" > kept.txt");
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    for file in ["well", "gone"] {
        fs::write(project.env.root().join(file), "").unwrap();
    }
    let roles = "[roles]\nimplement = \"claude\"\n";
    let text = format!(
        "sandbox = false\nsessions = \"fix\"\n{roles}[agents.claude]\ncommand = [{:?}]\n{REVIEWER}",
        program.display().to_string()
    );
    project.env.write("signoff.toml", text);
    project.commit("Configure");
    project.run(&["add", "Greet people", "-a"]);
    let work = project.run(&["work"]);
    assert_eq!(work.code, Some(0), "{work}");
    assert_eq!(session_starts(&project), "fresh resumed fresh ");
    insta::assert_snapshot!(attempts(&project), @"
    a1 complete 11111111 null 100
    a2 reviewed - null 0
    a3 session_gone 11111111 a1 0
    a4 complete 11111111 null 100
    a5 reviewed - null 0
    ");
}
