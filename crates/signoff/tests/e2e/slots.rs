//! `run beads` and `run queue`: slots that take tasks from a tracker or the queue.

mod claims;
mod failures;
mod landing;
mod tracker;

use std::fs;
use std::os::unix::fs::PermissionsExt;

use signoff_testkit::agent_script::{AgentScript, ScriptRule};
use signoff_testkit::{ProgramOutput, TestProject};

use crate::PROGRAM;

const PASS: &str = r#"Looked at all of it. {"verdict": "pass", "followUpPrompt": "All is well."}"#;
const DRIFT: &str = r#"{"verdict": "drift", "followUpPrompt": "work.txt lacks a check"}"#;

/// A tracker program. A bead is a file, which is moved when it is claimed and when it is closed: a second
/// claim fails. Every call is logged.
const BD: &str = r#"#!/bin/sh
cd "$(dirname "$0")/../beads" || exit 9
echo "$@" >> calls
case "$1" in
ready) printf '['; cat open/* 2>/dev/null | paste -sd , -; printf ']\n';;
update) [ "$3" = --status ] && exec mv "begun/$2" "open/$2"
  mv "open/$2" "begun/$2" 2>/dev/null || { echo "$2 is already claimed" >&2; exit 1; };;
show)
  cat "open/$2" 2>/dev/null && exit
  sed 's/"open"/"in_progress","assignee":"Ann"/' "begun/$2" 2>/dev/null && exit
  sed 's/"open"/"closed"/' "closed/$2";;
close) mv "begun/$2" "closed/$2" 2>/dev/null || { echo "$2 is not in progress" >&2; exit 1; };;
esac
"#;

/// A bead as the tracker prints it.
fn bead(id: &str, title: &str, priority: u8) -> String {
    format!(r#"{{"id":"{id}","title":"{title}","status":"open","priority":{priority}}}"#)
}

/// Installs this tracker program.
fn install(project: &TestProject, program: &str) {
    let path = project.env.root().join("bin/bd");
    fs::write(&path, program).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// A project with a tracker that has these beads, all with priority 2.
fn tracked(titles: &[&str], script: impl FnOnce(AgentScript) -> AgentScript) -> TestProject {
    let project = TestProject::with_agent(PROGRAM, script);
    install(&project, BD);
    for directory in ["open", "begun", "closed"] {
        fs::create_dir_all(project.env.root().join("beads").join(directory)).unwrap();
    }
    for (number, title) in (1..).zip(titles) {
        let id = format!("b-{number}");
        fs::write(project.env.root().join("beads/open").join(&id), bead(&id, title, 2) + "\n").unwrap();
    }
    project
}

/// The calls of the tracker.
fn tracker_calls(project: &TestProject) -> String {
    fs::read_to_string(project.env.root().join("beads/calls")).unwrap_or_default()
}

/// The beads in this state, in order.
fn beads(project: &TestProject, state: &str) -> Vec<String> {
    let directory = fs::read_dir(project.env.root().join("beads").join(state)).unwrap();
    let mut ids: Vec<String> =
        directory.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    ids.sort();
    ids
}

/// Every task writes its own file.
fn works() -> ScriptRule {
    ScriptRule::role("implement").write("{task}.txt", "work\n").say("Wrote {task}.txt.\n")
}

/// The output without commit ids.
fn without_commit_ids(output: &ProgramOutput) -> String {
    let is_id = |word: &str| word.len() == 40 && word.chars().all(|char| char.is_ascii_hexdigit());
    let word = |word: &str| if is_id(word.trim_end()) { "[COMMIT]\n".to_owned() } else { word.to_owned() };
    output.to_string().split_inclusive(' ').flat_map(|part| part.split_inclusive('\n')).map(word).collect()
}

fn passing_agent(script: AgentScript) -> AgentScript {
    script.rule(works()).rule(ScriptRule::role("review").say(PASS))
}

#[test]
fn the_work_on_a_bead_can_be_reviewed_again() {
    let project = tracked(&["Log in"], passing_agent);
    project.configure("preset = \"slots\"\n");
    assert_eq!(project.run(&["run", "beads", "--review"]).code, Some(0));
    let reviewed = project.run(&["review", "1"]);
    assert_eq!(reviewed.code, Some(0), "{reviewed}");
    assert!(reviewed.stdout.contains("Action: Proceed"), "{reviewed}");
    assert_eq!(tracker_calls(&project).matches("close b-1").count(), 1, "the review is no task of the tracker");
}
