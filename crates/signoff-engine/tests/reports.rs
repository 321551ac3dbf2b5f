//! Tokens, and the files that reports are kept in.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::fs;
use std::thread;

use serde_json::{Value, json};
use signoff_core::contract::Ask;
use signoff_core::grant::{Arguments, Grant, Refusal, ReportTool};
use signoff_core::review::{Bar, ReviewerKind};
use signoff_engine::process::AttemptDir;
use signoff_engine::reports::{Reports, planned, reviewed};
use tempfile::TempDir;

const TOOL: &str = "set_loop_review_result";

fn attempt() -> (TempDir, AttemptDir) {
    let directory = tempfile::tempdir().unwrap();
    let dir = AttemptDir::new(directory.path());
    (directory, dir)
}

fn reports() -> Reports {
    let reports = Reports::default();
    reports.listen_at("http://127.0.0.1:1/mcp");
    reports
}

fn review() -> Grant {
    Grant::review(Ask {
        reviewer: "general".into(),
        kind: ReviewerKind::General,
        nonce: None,
        require_nonce: false,
        fail_on: Bar::Low,
        commit: None,
        loop_id: Some("7".into()),
        task: None,
    })
}

fn arguments(value: Value) -> Arguments {
    serde_json::from_value(value).unwrap()
}

fn passed() -> Arguments {
    arguments(json!({ "loopId": "7", "passed": true }))
}

#[test]
fn without_a_server_nobody_gets_a_token() {
    let (_kept, dir) = attempt();
    assert_eq!(Reports::default().issue(review(), &dir).unwrap(), None);
    assert!(!Reports::default().is_listening());
}

#[test]
fn of_many_reports_at_once_one_is_taken_and_kept() {
    let (_kept, dir) = attempt();
    let reports = reports();
    let token = reports.issue(review(), &dir).unwrap().unwrap().token;
    let call = |number: u32| {
        let arguments =
            arguments(json!({ "loopId": "7", "passed": true, "interpretedIntent": number.to_string() }));
        reports.call(&token, TOOL, &arguments).is_ok()
    };
    let taken: Vec<u32> = thread::scope(|scope| {
        let calls: Vec<_> = (0..8).map(|number| (number, scope.spawn(move || call(number)))).collect();
        calls.into_iter().filter_map(|(number, call)| call.join().unwrap().then_some(number)).collect()
    });
    let [taken] = taken[..] else { panic!("{taken:?} were taken") };
    let kept: Value = serde_json::from_slice(&reviewed(&dir).unwrap()).unwrap();
    assert_eq!(kept["interpretedIntent"], taken.to_string());
}

#[test]
fn a_token_ends_with_its_attempt_and_no_other() {
    let ((_one, first), (_two, second)) = (attempt(), attempt());
    let reports = reports();
    let [one, two] = [&first, &second].map(|dir| reports.issue(review(), dir).unwrap().unwrap().token);
    assert_ne!(one, two);
    assert_eq!(one.len(), 64);
    assert_eq!(reports.tool(&one), Ok(ReportTool::SetLoopReviewResult));
    reports.retire(&first);
    assert_eq!(reports.tool(&one), Err(Refusal::Ended));
    assert_eq!(reports.call(&one, TOOL, &passed()), Err(Refusal::Ended));
    assert_eq!(reviewed(&first), None);
    assert!(reports.call(&two, TOOL, &passed()).is_ok());
    assert_eq!(reports.tool("0"), Err(Refusal::UnknownToken));
}

#[test]
fn what_cannot_be_kept_is_not_taken() {
    let (kept, dir) = attempt();
    let reports = reports();
    let token = reports.issue(review(), &dir).unwrap().unwrap().token;
    let path = kept.path().to_owned();
    drop(kept);
    assert!(matches!(reports.call(&token, TOOL, &passed()), Err(Refusal::NotKept { .. })));
    fs::create_dir(&path).unwrap();
    assert!(reports.call(&token, TOOL, &passed()).is_ok());
    assert!(reviewed(&dir).is_some());
    fs::remove_dir_all(path).unwrap();
}

#[test]
fn what_an_earlier_start_of_the_attempt_left_is_not_taken_for_a_report() {
    let (_kept, dir) = attempt();
    fs::write(dir.report(), r#"{"tool":"set_loop_review_result","arguments":{"loopId":"7","passed":true}}"#)
        .unwrap();
    reports().issue(review(), &dir).unwrap().unwrap();
    assert_eq!(reviewed(&dir), None);
}

#[test]
fn a_planner_adds_to_its_report() {
    let (_kept, dir) = attempt();
    let reports = reports();
    let token = reports.issue(Grant::tasks(), &dir).unwrap().unwrap().token;
    for id in ["a", "b", "a"] {
        reports.call(&token, "write_task", &arguments(json!({ "id": id, "title": id }))).unwrap();
    }
    let kept = planned(&dir).unwrap();
    let tasks = signoff_core::source::planner::read_tasks(&kept).unwrap();
    assert_eq!(tasks.iter().map(|task| task.id.as_str()).collect::<Vec<_>>(), ["a", "b"]);
}

#[test]
fn something_else_in_the_place_of_a_report_is_not_no_report() {
    let (_kept, dir) = attempt();
    fs::write(dir.report(), "scribble").unwrap();
    assert_eq!(reviewed(&dir).unwrap(), b"scribble");
}
