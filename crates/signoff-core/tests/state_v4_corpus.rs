//! State files of other programs: valid ones with their normalized form, invalid ones with their errors.

use std::fs;
use std::path::{Path, PathBuf};

use signoff_core::state_v4::{StateError, read};

fn files(kind: &str) -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/state-v4").join(kind);
    let mut files: Vec<PathBuf> =
        fs::read_dir(directory).expect("a corpus").map(|entry| entry.expect("a file").path()).collect();
    files.sort();
    files
}

fn name(path: &Path) -> String {
    path.file_name().expect("a name").to_string_lossy().into_owned()
}

#[test]
fn every_bad_file_is_refused_with_its_path_and_the_expected_value() {
    let mut table = String::new();
    for file in files("bad") {
        let message = match read(&fs::read(&file).unwrap()).expect_err(&name(&file)) {
            StateError::Invalid { line, path, message } => format!(":{line} {path}: {message}"),
            StateError::Finished => format!(": {}", StateError::Finished),
        };
        table.push_str(&format!("{}{message}\n", name(&file)));
    }
    insta::assert_snapshot!(table, @r#"
    array.json:1 the file: expected a state of version 4, not []
    blank.json:1 the file: is empty: expected a state of version 4
    current-iteration-above-max.json:6 currentIteration: is 2, more than maxIterations (1)
    current-iteration-not-listed.json:6 currentIteration: is 2, but `iterations` has length 1: expected the number of the last entry
    current-phase-half.json:7 currentPhase: expected a phase from 1 to 9, not 3.5
    current-phase-ten.json:7 currentPhase: expected a phase from 1 to 9, not 10
    current-phase-zero.json:7 currentPhase: expected a phase from 1 to 9, not 0
    duplicate-key.json:5 the file: duplicate key `mode`
    duplicate-phase.json:31 iterations[0].phases: duplicate key `3`
    duplicate-status.json:22 iterations[0].phases.3: duplicate key `status`
    earlier-phase-failed.json:7 currentPhase: is 3, and phase 2, which comes before it, is failed: expected completed or skipped
    empty.json:1 the file: is empty: expected a state of version 4
    finished.json: this iteration is finished: every phase is completed or skipped
    issues-on-test.json:42 iterations[0].phases.6.lastIssues: is unknown: expected one of status, retryCount
    issues-text.json:23 iterations[0].phases.3.lastIssues: expected a list of issues, not "none"
    iteration-number-off.json:11 iterations[0].iteration: expected 1 (iterations are numbered from 1 on, in order), not 2
    iteration-number-twice.json:54 iterations[1].iteration: expected 2 (iterations are numbered from 1 on, in order), not 1
    iterations-empty.json:9 iterations: is empty: expected at least the current iteration
    iterations-object.json:9 iterations: expected a list of iterations, not {}
    later-phase-completed.json:7 currentPhase: is 3, and phase 7, which comes after it, is completed: expected pending or skipped
    location-number.json:27 iterations[0].phases.3.lastIssues[0].location: expected text, not 12
    max-iterations-null.json:5 maxIterations: expected a whole number from 1 to 1000, not null
    max-iterations-zero.json:5 maxIterations: expected a whole number from 1 to 1000, not 0
    message-missing.json:24 iterations[0].phases.3.lastIssues[0]: `message` is missing
    mode-lite-at-9.json:4 mode: is lite, which has no phase 9: phase9 must be skipped, and currentPhase below 9
    mode-lite-with-phase9.json:4 mode: is lite, which has no phase 9: phase9 must be skipped, and currentPhase below 9
    mode-unknown.json:4 mode: expected one of full, lite, not "fast"
    not-json.json:1 the file: is not JSON: expected value
    not-utf8.json:3 the file: is not UTF-8 text: save it as UTF-8
    null.json:1 the file: expected a state of version 4, not null
    phase-9-inside.json:51 iterations[0].phases.9: is unknown: expected one of 1, 2, 3, 4, 5, 6, 7, 8
    phase-missing.json:13 iterations[0].phases: `7` is missing
    phase-text.json:14 iterations[0].phases.1: expected an object with status, not "completed"
    phase9-ahead.json:7 currentPhase: is 3, and phase 9, which comes after it, is completed: expected pending or skipped
    phase9-missing.json:1 the file: `phase9` is missing
    retry-count-negative.json:22 iterations[0].phases.3.retryCount: expected a whole number from 0 to 1000000, not -1
    retry-count-on-plain-phase.json:33 iterations[0].phases.4.retryCount: is unknown: expected one of status
    retry-count-text.json:41 iterations[0].phases.6.retryCount: expected a whole number from 0 to 1000000, not "2"
    severity-lower-case.json:25 iterations[0].phases.3.lastIssues[0].severity: expected one of HIGH, MEDIUM, LOW, not "high"
    severity-unknown.json:25 iterations[0].phases.3.lastIssues[0].severity: expected one of HIGH, MEDIUM, LOW, not "CRITICAL"
    started-at-date.json:8 startedAt: expected a time like 2026-01-23T10:00:00Z, not "2026-01-23"
    started-at-missing.json:1 the file: `startedAt` is missing
    started-at-number.json:8 startedAt: expected a time like 2026-01-23T10:00:00Z, not 1769162400
    status-missing.json:31 iterations[0].phases.4: `status` is missing
    status-unknown.json:21 iterations[0].phases.3.status: expected one of pending, in_progress, completed, failed, skipped, not "done"
    task-empty.json:3 task: is empty: expected the text of the task
    task-missing.json:1 the file: `task` is missing
    task-number.json:3 task: expected text, not 7
    trailing-comma.json:57 the file: is not JSON: trailing comma
    trailing-text.json:58 the file: is not JSON: trailing characters
    truncated.json:26 the file: breaks off: EOF while parsing a string
    unknown-key.json:57 phase10: is unknown: expected one of version, task, mode, maxIterations, currentIteration, currentPhase, startedAt, iterations, phase9
    version-1.json:2 version: version 1 is too old: only version 4 can be imported
    version-3.json:2 version: version 3 is too old: only version 4 can be imported
    version-5.json:2 version: version 5 is unknown: expected version 4
    version-missing.json:1 the file: `version` is missing
    version-text.json:2 version: expected a whole number from 0 on, not "4"
    "#);
}

#[test]
fn a_file_that_is_too_long_is_not_read() {
    let error = read(" ".repeat(1_000_001).as_bytes()).unwrap_err();
    insta::assert_snapshot!(error, @"the file: is longer than 1000000 bytes: it is not a state file");
}

#[test]
fn omitted_fields_get_their_defaults() {
    let of = |name: &str| {
        let file = files("good").into_iter().find(|file| self::name(file) == name).unwrap();
        read(&fs::read(file).unwrap()).unwrap()
    };
    let example = of("example.json");
    let mut filled = of("left-out.json");
    assert_eq!(filled.iterations[0].phases.plan_review.last_issues[0].location, "");
    filled.iterations[0].phases.plan_review.last_issues[0].location = "docs/plan.md:12".to_owned();
    assert_eq!(filled, example);
}

#[test]
fn between_two_phases_the_next_one_begins() {
    let file = files("good").into_iter().find(|file| name(file) == "between-phases.json").unwrap();
    let state = read(&fs::read(file).unwrap()).unwrap();
    assert_eq!((state.current_phase, state.iterations[0].phases.implement.status.into_str()), (4, "in_progress"));
}
