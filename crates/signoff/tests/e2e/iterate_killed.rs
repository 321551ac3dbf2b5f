//! The program is killed at every boundary between two phases: nothing that was finished is done again, and what was
//! counted stays counted.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde_json::Value;
use signoff_testkit::Project;
use signoff_testkit::calls::Call;
use signoff_testkit::processes::{self, until};

use crate::iterate::{BEGIN, BRANCH, project, team};
use crate::killed::{artifacts, ended_by_itself};

/// All that must be the same however often the program was killed.
#[derive(Debug, PartialEq)]
struct Ending {
    status: String,
    commits: String,
    changes: String,
    artifacts: BTreeMap<String, String>,
    /// How often each job was brought to its end.
    jobs: BTreeMap<[String; 4], usize>,
    /// Every finding with what became of it and where it was reported.
    ledger: Value,
    /// Retries, issues and standing of every phase of every iteration.
    state: Value,
}

impl Ending {
    fn of(project: &Project) -> Self {
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

/// The state as another program would be given it, without times.
fn state(project: &Project) -> Value {
    let mut state = project.run(&["export", "1", "--format", "state-v4"]).json();
    state["startedAt"] = Value::Null;
    for iteration in state["iterations"].as_array_mut().into_iter().flatten() {
        iteration["startedAt"] = Value::Null;
    }
    state
}

/// Commits have times in them.
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

fn finished(project: &Project) -> BTreeMap<[String; 4], usize> {
    let mut jobs = BTreeMap::new();
    let calls = project.calls();
    for call in calls.all().iter().filter(|call| call.end.is_some() && ended_by_itself(project, call)) {
        *jobs.entry(job(call)).or_default() += 1;
    }
    jobs
}

fn job(call: &Call) -> [String; 4] {
    let start = call.start.clone();
    [start.role, start.reviewer, start.phase, start.cycle]
}

/// How often a place is passed when nobody is killed, and how it ends.
fn undisturbed(place: &str) -> (usize, Ending) {
    let project = project(team);
    let log = project.env.root().join("passed");
    let output = project.env.run_with(&BEGIN, &[("SIGNOFF_FAILPOINTS", log.to_str().unwrap())]);
    assert_eq!(output.code, Some(0), "{output}");
    let passed = fs::read_to_string(&log).unwrap().lines().filter(|name| *name == place).count();
    (passed, Ending::of(&project))
}

/// `iteration 2 phase 5, 2 fixed, 1 open`: what another program would read about where it stands.
fn told(state: &Value) -> String {
    let (iteration, phase) = (&state["currentIteration"], &state["currentPhase"]);
    let iterations = state["iterations"].as_array().unwrap();
    let phases = iterations.last().map(|last| last["phases"].clone()).unwrap_or_default();
    let counted = ["3", "5", "6", "8"].map(|number| {
        let issues = phases[number]["lastIssues"].as_array().map(|issues| format!("+{}", issues.len()));
        format!("{number}:{}{}", phases[number]["retryCount"], issues.unwrap_or_default())
    });
    format!("iteration {iteration} phase {phase}  {}\n", counted.join(" "))
}

/// Kills one project at every passing of a place, one after the other. Taking it up again passes as many of them once
/// more as `again` says. Gives the state after each kill.
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
            Some(_) => told(&state(&project)),
        };
    }
    let output = project.run(&["work"]);
    assert_eq!(output.code, Some(0), "{output}");
    assert_eq!(Ending::of(&project), undisturbed, "killed at every {place}");
    until("nothing of ours runs", || processes::of(project.env.root()).is_empty());
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
fn killed_when_a_phase_has_ended_and_nobody_wrote_it_down() {
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

/// Kills one project over and over, each time as a place is passed for the how manieth time, until nothing is left to do.
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
        kills.insert(told(&state(&project)));
        words = &["work"];
    }
    assert!(kills.len() > 5, "{kills:?}");
    assert_eq!(Ending::of(&project), undisturbed, "killed again and again at {trap}");
}

/// Whoever is at work is lost: their turn comes again, and the next one's is cut short.
#[test]
fn killed_while_agents_are_at_work() {
    killed_again_and_again("spawn", 3);
}

#[test]
#[ignore = "takes minutes: scripts/soak"]
fn killed_again_and_again_while_work_is_kept() {
    for (place, count) in [("exit", 2), ("commit", 2), ("committed", 2), ("artifact", 3)] {
        killed_again_and_again(place, count);
    }
}
