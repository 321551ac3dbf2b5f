//! Runs the project's check commands for real and checks their output and the resulting review.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::fs;
use std::process::ExitCode;

use signoff_core::checks::{CheckRun, review};
use signoff_core::contract::MAX_BYTES;
use signoff_core::review::{ReviewerKind, Verdict};
use signoff_engine::builtin::checks::{CheckCommand, MAX_OUTPUT, run, run_each};

fn checks(commands: &[&str]) -> Vec<CheckRun> {
    let directory = tempfile::tempdir().unwrap();
    let check = |command: &&str| CheckCommand { name: "test".to_owned(), command: (*command).to_owned() };
    let checks: Vec<_> = commands.iter().map(check).collect();
    run_each(&checks, directory.path()).unwrap()
}

fn output(command: &str) -> String {
    checks(&[command]).remove(0).output
}

#[test]
fn a_failing_command_is_data_and_the_next_one_runs() {
    let ran = checks(&["exit 3", "kill -9 $$", "./nosuchscript 2> /dev/null", "echo fine"]);
    let codes: Vec<_> = ran.iter().map(|ran| ran.code).collect();
    assert_eq!(codes, [Some(3), None, Some(127), Some(0)]);
    assert_eq!(ran[3].output, "fine\n");
}

#[test]
fn a_missing_program_is_an_error_and_no_failed_check() {
    let directory = tempfile::tempdir().unwrap();
    let run = |command: &str| {
        let check = CheckCommand { name: "test".to_owned(), command: command.to_owned() };
        run_each(&[check], directory.path()).map(|ran| ran[0].code).map_err(|error| error.to_string())
    };
    let missing = || Err("check `test` needs `nosuchcommand`, which is not installed".to_owned());
    assert_eq!(run("nosuchcommand ./... 2> /dev/null"), missing());
    assert_eq!(run("A=1 B=2 nosuchcommand 2> /dev/null"), missing());
    for command in ["exit 127", "sh -c 'exit 127'", "true && nosuchcommand 2> /dev/null", "./gone 2> /dev/null"] {
        assert_eq!(run(command), Ok(Some(127)), "{command}");
    }
}

#[test]
fn stdout_and_stderr_keep_their_order() {
    assert_eq!(output("echo one; echo two >&2; echo three"), "one\ntwo\nthree\n");
}

#[test]
fn stdin_is_empty() {
    assert_eq!(output("cat; echo over"), "over\n");
}

#[test]
fn paths_are_relative_to_the_directory() {
    assert_eq!(output("echo \"$(pwd -P)/src/a.c:3: bad\""), "src/a.c:3: bad\n");
}

#[test]
fn a_flood_keeps_its_start_and_its_end() {
    let text = output("echo first; yes | head -c 10000000; echo last");
    assert!(text.starts_with("first\ny\n") && text.ends_with("y\nlast\n"), "{} bytes", text.len());
    assert!(text.contains(" bytes left out]"));
    assert!(text.len() <= MAX_OUTPUT + 100, "{} bytes", text.len());
}

#[test]
fn the_report_of_many_large_outputs_is_bounded() {
    let zeros = format!("echo first; head -c {MAX_OUTPUT} /dev/zero; echo last; exit 1");
    let ran = checks(&[zeros.as_str(); 20]);
    assert!(serde_json::to_vec(&ran).unwrap().len() <= MAX_BYTES);
    for ran in ran {
        assert!(ran.output.starts_with("first\n\0") && ran.output.ends_with("\0last\n"));
    }
}

#[test]
fn a_background_process_does_not_block_the_check() {
    let directory = tempfile::tempdir().unwrap();
    let pipe = directory.path().join("pipe");
    // The background process blocks until the test reads the pipe, which happens after the check ended.
    let command = format!("mkfifo {0}; (echo gone > {0}) & echo started", pipe.display());
    assert_eq!(output(&command), "started\n");
    assert_eq!(fs::read_to_string(pipe).unwrap(), "gone\n");
}

#[test]
fn any_bytes_become_text() {
    assert_eq!(output(r"printf 'a\377b'"), "a\u{fffd}b");
}

#[test]
fn check_results_become_a_review() {
    let ran = checks(&["echo 'src/a.c:3:5: error: bad'; exit 1"]);
    let review = review(&"checks".into(), ReviewerKind::Tests, &ran);
    assert_eq!(review.verdict, Verdict::ChangesRequested);
    assert_eq!(review.findings[0].file.as_deref(), Some("src/a.c"));
}

#[test]
fn a_list_that_cannot_be_read_is_a_failure() {
    let directory = tempfile::tempdir().unwrap();
    let list = directory.path().join("checks.json");
    assert_eq!(run(&list), ExitCode::FAILURE);
    fs::write(&list, "{}").unwrap();
    assert_eq!(run(&list), ExitCode::FAILURE);
    fs::write(&list, r#"[{"name": "test", "command": "exit 1"}]"#).unwrap();
    assert_eq!(run(&list), ExitCode::SUCCESS);
}
