//! Agents that go on in a session they had.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use signoff_testkit::Project;
use signoff_testkit::processes::{self, until};

use crate::PROGRAM;

const TERM: i32 = 15;

/// Says what Claude Code says: hangs at first, goes on if it finds its session, and knows it no more otherwise.
const CLAUDE: &str = r#"#!/bin/sh
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

fn project(more: &str) -> Project {
    let project = Project::new(PROGRAM);
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

fn asked(project: &Project) -> String {
    fs::read_to_string(project.env.root().join("asked")).unwrap_or_default().replace('\n', " ")
}

/// For each attempt how it ended, its session and the attempt whose session it went on with.
fn attempts(project: &Project) -> String {
    let shown = project.run(&["show", "1", "--json"]).json();
    let attempts = shown["attempts"].as_array().unwrap().iter();
    let line = |one: &serde_json::Value| {
        let session = one["session"].as_str().unwrap_or("-").get(..8).unwrap_or("-").to_owned();
        let (id, outcome, resumes) = (&one["id"], &one["outcome"], &one["resumes"]);
        format!("{id} {outcome} {session} {resumes} {}", one["input_tokens"]).replace('"', "")
    };
    attempts.map(line).collect::<Vec<_>>().join("\n")
}

fn hung(project: &Project) {
    until("it hangs", || project.env.root().join("hangs").exists());
}

/// The program is told to end while it hangs.
fn interrupted(project: &Project) {
    let child = project.env.start_group(&["work"]);
    hung(project);
    processes::signal_group(child.id(), TERM);
    assert_eq!(project.env.finish(child).code, Some(130));
}

#[test]
fn who_timed_out_goes_on_when_it_is_tried_again() {
    let project = project("[limits]\nattempt = \"1s\"\n");
    assert_eq!(project.run(&["work"]).code, Some(1));
    project.run(&["retry", "1"]);
    let worked = project.run(&["work"]);
    assert_eq!(worked.code, Some(0), "{worked}");
    assert_eq!(asked(&project), "fresh resumed ");
    insta::assert_snapshot!(attempts(&project), @"
    a1 timed_out 11111111 null 0
    a2 complete 11111111 a1 100
    ");
    assert_eq!(project.git("show signoff/task-1-greet-people:kept.txt"), "begun\nmore\n");
    let prompt = fs::read_to_string(project.env.root().join("prompt")).unwrap();
    assert!(prompt.starts_with("You go on in a session that you had before."), "{prompt}");
    assert!(prompt.contains("Greet people"), "{prompt}");
}

#[test]
fn who_was_interrupted_goes_on() {
    let project = project("");
    interrupted(&project);
    let worked = project.run(&["work"]);
    assert_eq!(worked.code, Some(0), "{worked}");
    assert_eq!(asked(&project), "fresh resumed ");
    insta::assert_snapshot!(attempts(&project), @"
    a1 interrupted 11111111 null 0
    a2 complete 11111111 a1 100
    ");
}

#[test]
fn who_was_left_by_a_killed_program_goes_on() {
    let project = project("");
    let mut child = project.env.start_group(&["work"]);
    hung(&project);
    child.kill().unwrap();
    child.wait().unwrap();
    let worked = project.run(&["work"]);
    assert_eq!(worked.code, Some(0), "{worked}");
    assert_eq!(asked(&project), "fresh resumed ");
}

#[test]
fn a_session_that_is_gone_is_begun_anew_and_counts_as_no_failure() {
    let project = project("");
    interrupted(&project);
    let homes = "find .signoff -type d -name projects -path '*home*' -prune -exec rm -r {} +";
    project.git(&format!("status -s > /dev/null; {homes}"));
    fs::write(project.env.root().join("well"), "").unwrap();
    let worked = project.run(&["work"]);
    assert_eq!(asked(&project), "fresh resumed fresh ");
    assert_eq!(worked.code, Some(0), "{worked}");
    assert!(worked.stdout.contains("The session to go on with is gone; trying again"), "{worked}");
    insta::assert_snapshot!(attempts(&project), @"
    a1 interrupted 11111111 null 0
    a2 session_gone 11111111 a1 0
    a3 complete 11111111 null 100
    ");
}

#[test]
fn nobody_goes_on_where_all_are_to_begin_anew() {
    let project = project("sessions = \"fresh\"\n");
    interrupted(&project);
    fs::write(project.env.root().join("well"), "").unwrap();
    assert_eq!(project.run(&["work"]).code, Some(0));
    assert_eq!(asked(&project), "fresh fresh ");
}

/// Finds something the first time.
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
fn a_fixer_whose_session_is_gone_begins_anew_once() {
    let project = Project::new(PROGRAM);
    let program = project.env.root().join("claude");
    // A fix has to change something.
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
    assert_eq!(asked(&project), "fresh resumed fresh ");
    insta::assert_snapshot!(attempts(&project), @"
    a1 complete 11111111 null 100
    a2 reviewed - null 0
    a3 session_gone 11111111 a1 0
    a4 complete 11111111 null 100
    a5 reviewed - null 0
    ");
}
