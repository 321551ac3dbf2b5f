//! The program is killed at every boundary between two phases: finished work is not repeated, and counters are
//! kept.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde_json::Value;
use signoff_testkit::TestProject;
use signoff_testkit::calls::AgentCall;
use signoff_testkit::processes::{self, wait_until};

use crate::iterate::{BEGIN, BRANCH, project, team};
use crate::killed::{artifacts, ended_by_itself};

/// Everything that must be equal however often the program was killed.
#[derive(Debug, PartialEq)]
struct Ending {
    status: String,
    commits: String,
    changes: String,
    artifacts: BTreeMap<String, String>,
    /// The number of times each job was completed.
    jobs: BTreeMap<[String; 4], usize>,
    /// Every finding with its state and where it was reported.
    ledger: Value,
    /// Retries, issues and status of every phase of every iteration.
    state: Value,
}

impl Ending {
    fn from_project(project: &TestProject) -> Self {
        let shown = project.run(&["show", "1", "--json"]).json();
        Self {
            status: project.run(&["status"]).stdout,
            commits: project.subjects(BRANCH),
            changes: project.git(&format!("diff main {BRANCH}")),
            artifacts: artifacts(project),
            jobs: finished(project),
            ledger: without_commits(shown["ledger"].clone()),
            state: state(project),
        }
    }
}

/// The exported state without times.
fn state(project: &TestProject) -> Value {
    let mut state = project.run(&["export", "1", "--format", "state-v4"]).json();
    state["startedAt"] = Value::Null;
    for iteration in state["iterations"].as_array_mut().into_iter().flatten() {
        iteration["startedAt"] = Value::Null;
    }
    state
}

/// Commit ids depend on times.
fn without_commits(value: Value) -> Value {
    match value {
        Value::Array(items) => items.into_iter().map(without_commits).collect(),
        Value::Object(fields) => {
            let kept = fields.into_iter().filter(|(key, _)| key != "commit");
            Value::Object(kept.map(|(key, value)| (key, without_commits(value))).collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value,
    }
}

fn finished(project: &TestProject) -> BTreeMap<[String; 4], usize> {
    let mut jobs = BTreeMap::new();
    let calls = project.calls();
    for call in calls.all().iter().filter(|call| call.end.is_some() && ended_by_itself(project, call)) {
        *jobs.entry(job(call)).or_default() += 1;
    }
    jobs
}

fn job(call: &AgentCall) -> [String; 4] {
    let start = call.start.clone();
    [start.role, start.reviewer, start.phase, start.cycle]
}

/// How often a failpoint is passed without kills, and the result.
fn undisturbed(place: &str) -> (usize, Ending) {
    let project = project(team);
    let log = project.env.root().join("passed");
    let output = project.env.run_with(&BEGIN, &[("SIGNOFF_FAILPOINTS", log.to_str().unwrap())]);
    assert_eq!(output.code, Some(0), "{output}");
    let passed = fs::read_to_string(&log).unwrap().lines().filter(|name| *name == place).count();
    (passed, Ending::from_project(&project))
}

/// `iteration 2 phase 5  3:0 5:1+2`: the position and the counters in the exported state.
fn progress(state: &Value) -> String {
    let (iteration, phase) = (&state["currentIteration"], &state["currentPhase"]);
    let iterations = state["iterations"].as_array().unwrap();
    let phases = iterations.last().map(|last| last["phases"].clone()).unwrap_or_default();
    let counted = ["3", "5", "6", "8"].map(|number| {
        let issues = phases[number]["lastIssues"].as_array().map(|issues| format!("+{}", issues.len()));
        format!("{number}:{}{}", phases[number]["retryCount"], issues.unwrap_or_default())
    });
    format!("iteration {iteration} phase {phase}  {}\n", counted.join(" "))
}

/// Kills one project each time it passes a failpoint. Resuming passes the failpoint `again` more times.
/// Returns the state after each kill.
fn killed_at_every(place: &str, again: usize) -> String {
    let (passed, undisturbed) = undisturbed(place);
    let project = project(team);
    let before = project.checkout();
    let mut states = String::new();
    for number in 0..passed {
        let trap = format!("{place}:{}", if number == 0 { 1 } else { again + 1 });
        let words: &[&str] = match number {
            0 => &BEGIN,
            odd if odd % 2 == 1 => &["work"],
            _ => &["run", "--resume"],
        };
        let output = project.env.run_with(words, &[("SIGNOFF_FAILPOINT", trap.as_str())]);
        assert_eq!(output.signal, Some(9), "kill {number} at {trap}: {output}");
        states += &match project.run(&["status", "--json"]).json()["tasks"].as_array().map(Vec::len) {
            Some(0) | None => "nothing yet\n".to_owned(),
            Some(_) => progress(&state(&project)),
        };
    }
    let output = project.run(&["work"]);
    assert_eq!(output.code, Some(0), "{output}");
    assert_eq!(Ending::from_project(&project), undisturbed, "killed at every {place}");
    wait_until("nothing of ours runs", || processes::with_root(project.env.root()).is_empty());
    let doctor = project.run(&["doctor"]);
    assert_eq!(doctor.code, Some(0), "{doctor}");
    assert_eq!(project.checkout(), before);
    states
}

#[test]
fn killed_when_a_phase_has_begun() {
    insta::assert_snapshot!(killed_at_every("phased", 0), @"
    iteration 1 phase 1  3:0+0 5:0+0 6:0 8:0+0
    iteration 1 phase 2  3:0+0 5:0+0 6:0 8:0+0
    iteration 1 phase 3  3:0+0 5:0+0 6:0 8:0+0
    iteration 2 phase 1  3:1+0 5:0+0 6:0 8:0+0
    iteration 2 phase 2  3:1+0 5:0+0 6:0 8:0+0
    iteration 2 phase 3  3:1+0 5:0+0 6:0 8:0+0
    iteration 2 phase 4  3:1+0 5:0+0 6:0 8:0+0
    iteration 2 phase 4  3:1+0 5:0+0 6:0 8:0+0
    iteration 2 phase 5  3:1+0 5:0+0 6:0 8:0+0
    iteration 2 phase 6  3:1+0 5:2+1 6:0 8:0+0
    iteration 3 phase 1  3:1+0 5:0+0 6:1 8:0+0
    iteration 3 phase 2  3:1+0 5:0+0 6:1 8:0+0
    iteration 3 phase 3  3:1+0 5:0+0 6:1 8:0+0
    iteration 3 phase 4  3:1+0 5:0+0 6:1 8:0+0
    iteration 3 phase 4  3:1+0 5:0+0 6:1 8:0+0
    iteration 3 phase 5  3:1+0 5:0+0 6:1 8:0+0
    iteration 3 phase 6  3:1+0 5:0+0 6:1 8:0+0
    iteration 3 phase 7  3:1+0 5:0+0 6:1 8:0+0
    iteration 3 phase 8  3:1+0 5:0+0 6:1 8:0+0
    iteration 3 phase 9  3:1+0 5:0+0 6:1 8:0+0
    iteration 3 phase 9  3:1+0 5:0+0 6:1 8:0+0
    ");
}

#[test]
fn killed_when_a_phase_has_ended_before_it_is_recorded() {
    insta::assert_snapshot!(killed_at_every("phase", 1), @"
    iteration 1 phase 1  3:0+0 5:0+0 6:0 8:0+0
    iteration 1 phase 1  3:0+0 5:0+0 6:0 8:0+0
    iteration 1 phase 2  3:0+0 5:0+0 6:0 8:0+0
    iteration 1 phase 3  3:0+0 5:0+0 6:0 8:0+0
    iteration 2 phase 1  3:1+0 5:0+0 6:0 8:0+0
    iteration 2 phase 2  3:1+0 5:0+0 6:0 8:0+0
    iteration 2 phase 3  3:1+0 5:0+0 6:0 8:0+0
    iteration 2 phase 4  3:1+0 5:0+0 6:0 8:0+0
    iteration 2 phase 4  3:1+0 5:0+0 6:0 8:0+0
    iteration 2 phase 5  3:1+0 5:2+1 6:0 8:0+0
    iteration 2 phase 6  3:1+0 5:2+1 6:0 8:0+0
    iteration 3 phase 1  3:1+0 5:0+0 6:1 8:0+0
    iteration 3 phase 2  3:1+0 5:0+0 6:1 8:0+0
    iteration 3 phase 3  3:1+0 5:0+0 6:1 8:0+0
    iteration 3 phase 4  3:1+0 5:0+0 6:1 8:0+0
    iteration 3 phase 4  3:1+0 5:0+0 6:1 8:0+0
    iteration 3 phase 5  3:1+0 5:0+0 6:1 8:0+0
    iteration 3 phase 6  3:1+0 5:0+0 6:1 8:0+0
    iteration 3 phase 7  3:1+0 5:0+0 6:1 8:0+0
    iteration 3 phase 8  3:1+0 5:0+0 6:1 8:0+0
    iteration 3 phase 9  3:1+0 5:0+0 6:1 8:0+0
    ");
}

/// Kills one project repeatedly, each time at the given passing of a failpoint, until it is done.
fn killed_again_and_again(place: &str, count: usize) {
    let (_, undisturbed) = undisturbed(place);
    let project = project(team);
    let (mut words, trap): (&[&str], _) = (&BEGIN, format!("{place}:{count}"));
    let mut kills = BTreeSet::new();
    for number in 1.. {
        assert!(number <= 60, "killed at {trap} it does not come on: {kills:?}");
        let output = project.env.run_with(words, &[("SIGNOFF_FAILPOINT", trap.as_str())]);
        if output.code == Some(0) {
            break;
        }
        assert_eq!(output.signal, Some(9), "{output}");
        kills.insert(progress(&state(&project)));
        words = &["work"];
    }
    assert!(kills.len() > 5, "{kills:?}");
    assert_eq!(Ending::from_project(&project), undisturbed, "killed again and again at {trap}");
}

/// Running attempts are lost and repeated.
#[test]
fn killed_while_agents_are_running() {
    killed_again_and_again("spawn", 3);
}

#[test]
#[ignore = "takes minutes: scripts/soak"]
fn killed_repeatedly_while_work_is_committed() {
    for (place, count) in [("exit", 2), ("commit", 2), ("committed", 2), ("artifact", 3)] {
        killed_again_and_again(place, count);
    }
}
