//! Report tokens: which tool calls each token accepts, as examples and as properties.

use proptest::prelude::*;
use serde_json::{Value, json};
use signoff_core::contract::{Contract, ReviewAnswer, ReviewRequest, parse};
use signoff_core::report_token::{AcceptedCall, ReportArguments, ReportRefusal, ReportScope};
use signoff_core::review::{FailThreshold, ReviewerKind};
use signoff_core::source::planner::{read_groups, read_tasks};

fn review_request(loop_id: Option<&str>, task: Option<&str>) -> ReviewRequest {
    ReviewRequest {
        reviewer: "general".into(),
        kind: ReviewerKind::General,
        nonce: None,
        require_nonce: false,
        fail_on: FailThreshold::Low,
        commit: Some("3f2a".into()),
        loop_id: loop_id.map(Into::into),
        task: task.map(str::to_owned),
    }
}

fn arguments(value: Value) -> ReportArguments {
    let Value::Object(arguments) = value else { panic!("arguments are an object") };
    arguments
}

/// Makes several calls with one token, and renders the result of each.
fn story(mut scope: ReportScope, calls: impl IntoIterator<Item = (&'static str, Value)>) -> String {
    let mut transcript = String::new();
    for (tool, value) in calls {
        transcript += &match scope.call(tool, &arguments(value)) {
            Ok(accepted) => {
                scope = accepted.scope;
                let reply = accepted.reply.unwrap_or_else(|refusal| format!("refused: {refusal}"));
                format!("taken: {reply}\n  {}\n", accepted.report)
            }
            Err(refusal) => format!("refused: {refusal}\n"),
        };
    }
    transcript
}

#[test]
fn an_approval_is_reported_once_and_about_its_own_loop() {
    let tool = "set_loop_review_result";
    let transcript = story(
        ReportScope::review(review_request(Some("7"), Some("7"))),
        [
            (tool, json!({ "loopId": "8", "passed": true })),
            (tool, json!({ "loopId": "7", "taskId": "8", "passed": true })),
            (tool, json!({ "loopId": "7", "passed": 1 })),
            (tool, json!({ "loopId": "7", "taskId": 7, "passed": true })),
            (tool, json!({ "loopId": "7", "passed": true, "commit": "9999" })),
            ("set_review_result", json!({ "passed": true })),
            (tool, json!({ "loopId": "7", "taskId": "7", "passed": true, "commit": "3f2a" })),
            (tool, json!({ "loopId": "7", "passed": true })),
        ],
    );
    insta::assert_snapshot!(transcript, @r#"
    refused: this token is for loop 7, not 8: call set_loop_review_result with loopId "7"
    refused: this token is for task 7, not 8: send taskId "7", or none
    refused: `passed` must be true or false, not a number. Nothing was recorded: correct it and call set_loop_review_result again
    refused: `taskId` must be a string, not a number. Nothing was recorded: correct it and call set_loop_review_result again
    refused: this token is for commit 3f2a, not 9999: send commit "3f2a", or none
    refused: this token is for set_loop_review_result, not for set_review_result: call set_loop_review_result
    taken: The result is recorded. Nothing more is to be reported: end your work now.
      {"tool":"set_loop_review_result","arguments":{"loopId":"7","taskId":"7","passed":true,"commit":"3f2a"}}
    refused: the result of this review is already recorded: do not report again
    "#);
}

#[test]
fn any_stricter_later_call_retracts_an_approval() {
    let tool = "set_review_result";
    let transcript = story(
        ReportScope::review(review_request(None, None)),
        [
            (tool, json!({ "passed": true })),
            (tool, json!({ "passed": true, "interpretedIntent": "again" })),
            (tool, json!({ "passed": false, "issues": "it loses money" })),
            (tool, json!({ "passed": false, "issues": [{ "description": "it loses money" }] })),
            (tool, json!({ "passed": true })),
        ],
    );
    insta::assert_snapshot!(transcript, @r#"
    taken: The result is recorded. Nothing more is to be reported: end your work now.
      {"tool":"set_review_result","arguments":{"passed":true}}
    refused: the result of this review is already recorded: do not report again
    taken: refused: `issues` must be an array of objects, not a string. It is recorded that this review did not pass: correct it and call set_review_result again
      {"tool":"set_review_result","calls":[{"passed":true},{"passed":false,"issues":"it loses money"}]}
    taken: This result is recorded too, and the stricter one counts. Nothing more is to be reported: end your work now.
      {"tool":"set_review_result","calls":[{"passed":true},{"passed":false,"issues":"it loses money"},{"passed":false,"issues":[{"description":"it loses money"}]}]}
    refused: the result of this review is already recorded: do not report again
    "#);
}

#[test]
fn a_later_objection_counts_even_if_it_names_another_loop_or_tool() {
    let tool = "set_loop_review_result";
    for (called, value) in [
        (tool, json!({ "loopId": "8", "passed": false })),
        (tool, json!({ "loopId": "7", "taskId": "8", "passed": false })),
        (tool, json!({ "loopId": "7", "commit": "9999", "passed": false })),
        ("set_review_result", json!({ "passed": false })),
        (tool, json!({})),
    ] {
        let before = ReportScope::review(review_request(Some("7"), Some("7")));
        assert!(before.call(called, &arguments(value.clone())).is_err(), "before a report: {value}");
        let approved = before.call(tool, &arguments(json!({ "loopId": "7", "passed": true }))).unwrap().scope;
        let AcceptedCall { scope, reply, .. } = approved.call(called, &arguments(value.clone())).unwrap();
        assert!(reply.unwrap_err().to_string().contains("this review did not pass"), "{value}");
        let ReportScope::Review { request, calls } = scope else { panic!("a review stays one") };
        let bytes: Vec<String> = calls.iter().map(|call| json!(call).to_string()).collect();
        let answer = ReviewAnswer { text: b"", tool: Some(&bytes.join("\n").into_bytes()) };
        assert!(!parse(Contract::Tool, answer, &request).is_ok_and(|review| review.verdict.approves()), "{value}");
    }
}

#[test]
fn a_checkpoint_review_may_name_the_task() {
    for value in [json!({ "loopId": "7", "passed": true }), json!({ "loopId": "7", "taskId": "7", "passed": true })] {
        let scope = ReportScope::review(review_request(Some("7"), None));
        assert!(scope.call("set_loop_review_result", &arguments(value)).is_ok());
    }
}

#[test]
fn a_review_of_the_run_names_no_loop() {
    let transcript = story(
        ReportScope::review(review_request(None, None)),
        [
            ("set_loop_review_result", json!({ "loopId": "7", "passed": true })),
            ("set_review_result", json!({ "passed": true, "intentSatisfied": true })),
        ],
    );
    insta::assert_snapshot!(transcript, @r#"
    refused: this token is for set_review_result, not for set_loop_review_result: call set_review_result
    taken: The result is recorded. Nothing more is to be reported: end your work now.
      {"tool":"set_review_result","arguments":{"passed":true,"intentSatisfied":true}}
    "#);
}

#[test]
fn a_task_that_is_written_again_replaces_the_earlier_one() {
    let tool = "write_task";
    let transcript = story(
        ReportScope::tasks(),
        [
            (tool, json!({ "id": "a", "title": "First" })),
            (tool, json!({ "id": 2, "title": " Second ", "description": "More", "depends_on": ["a"] })),
            (tool, json!({ "id": "a", "title": "First, better" })),
            (tool, json!({ "title": "No name" })),
            (tool, json!({ "id": "  ", "title": "No name" })),
            (tool, json!({ "id": "b" })),
            (tool, json!({ "id": "b", "title": " " })),
            (tool, json!({ "id": "b", "title": "B", "depends_on": "a" })),
            (tool, json!({ "id": "b", "title": "B", "depends_on": ["a", null] })),
            (tool, json!({ "id": "b", "title": "B", "description": {} })),
            ("add_plan_group", json!({ "tasks": ["a"] })),
        ],
    );
    insta::assert_snapshot!(transcript, @r#"
    taken: Task a is written; there are 1 now.
      {"tasks":[{"id":"a","title":"First","description":"","depends_on":[]}]}
    taken: Task 2 is written; there are 2 now.
      {"tasks":[{"id":"a","title":"First","description":"","depends_on":[]},{"id":"2","title":"Second","description":"More","depends_on":["a"]}]}
    taken: Task a is replaced.
      {"tasks":[{"id":"a","title":"First, better","description":"","depends_on":[]},{"id":"2","title":"Second","description":"More","depends_on":["a"]}]}
    refused: `id` is missing: a string is required. Nothing was recorded: correct it and call write_task again
    refused: `id` is empty: a task id is required. Nothing was recorded: correct it and call write_task again
    refused: `title` is missing: a string is required. Nothing was recorded: correct it and call write_task again
    refused: `title` is empty: one line is required. Nothing was recorded: correct it and call write_task again
    refused: `depends_on` must be a list of task ids, not a string. Nothing was recorded: correct it and call write_task again
    refused: `depends_on[1]` must be a string, not null. Nothing was recorded: correct it and call write_task again
    refused: `description` must be a string, not an object. Nothing was recorded: correct it and call write_task again
    refused: this token is for write_task, not for add_plan_group: call write_task
    "#);
}

#[test]
fn a_task_belongs_to_one_group() {
    let tool = "add_plan_group";
    let transcript = story(
        ReportScope::groups(["a", "2", "b"].map(str::to_owned).to_vec()),
        [
            (tool, json!({ "tasks": ["a", 2] })),
            (tool, json!({ "tasks": ["a", "2"] })),
            (tool, json!({ "tasks": ["b", "a"] })),
            (tool, json!({ "tasks": ["b", "b"] })),
            (tool, json!({ "tasks": ["b", "c"] })),
            (tool, json!({ "tasks": [] })),
            (tool, json!({ "tasks": "b" })),
            (tool, json!({})),
            (tool, json!({ "tasks": ["b"] })),
        ],
    );
    insta::assert_snapshot!(transcript, @r#"
    taken: It is group 1.
      {"groups":[["a","2"]]}
    taken: That is group 1 already.
      {"groups":[["a","2"]]}
    refused: `tasks[1]`: task a is in group 1 already, and stays there. Nothing was recorded: correct it and call add_plan_group again
    refused: `tasks[1]`: task b is named twice. Nothing was recorded: correct it and call add_plan_group again
    refused: `tasks[1]`: there is no task c; the tasks are a, 2, b. Nothing was recorded: correct it and call add_plan_group again
    refused: `tasks` is empty: at least one task id is required. Nothing was recorded: correct it and call add_plan_group again
    refused: `tasks` must be a list of task ids, not a string. Nothing was recorded: correct it and call add_plan_group again
    refused: `tasks` is missing: a list of task ids is required. Nothing was recorded: correct it and call add_plan_group again
    taken: It is group 2.
      {"groups":[["a","2"],["b"]]}
    "#);
}

/// Calls with valid, nearly valid and invalid arguments.
fn call() -> impl Strategy<Value = (&'static str, Value)> {
    let tool =
        prop::sample::select(vec!["set_loop_review_result", "set_review_result", "write_task", "add_plan_group", ""]);
    let word = prop::sample::select(vec![
        json!("7"),
        json!("8"),
        json!("a"),
        json!(true),
        json!(false),
        json!(null),
        json!(7),
        json!([]),
        json!(["a"]),
        json!(["a", "b"]),
        json!([{ "description": "wrong" }]),
        json!({}),
    ]);
    let key = prop::sample::select(vec![
        "loopId",
        "taskId",
        "passed",
        "issues",
        "intentSatisfied",
        "id",
        "title",
        "depends_on",
        "tasks",
    ]);
    let keys = prop::collection::btree_map(key, word, 0..6);
    (tool, keys.prop_map(|keys| json!(keys)))
}

fn scope() -> impl Strategy<Value = ReportScope> {
    prop::sample::select(vec![
        ReportScope::review(review_request(Some("7"), Some("7"))),
        ReportScope::review(review_request(None, None)),
        ReportScope::tasks(),
        ReportScope::groups(["7", "a", "b"].map(str::to_owned).to_vec()),
    ])
}

proptest! {
    /// For any sequence of calls: a review approves only by its first call, a tool that is not the token's is recorded
    /// only as an objection to an earlier report, and every accepted report can be parsed.
    #[test]
    fn accepted_reports_can_be_parsed(first in scope(), calls in prop::collection::vec(call(), 0..20)) {
        let (mut scope, tool) = (first.clone(), first.tool());
        for (called, value) in calls {
            let Ok(AcceptedCall { scope: next, report, reply }) = scope.call(called, &arguments(value)) else { continue };
            prop_assert!(called == tool.into_str() || reply.is_err());
            prop_assert_eq!(next.tool(), tool);
            match &next {
                ReportScope::Review { request, calls } => {
                    let all: Vec<String> = calls.iter().map(|call| json!(call).to_string()).collect();
                    let key = if calls.len() == 1 { report["arguments"].to_string() } else { report["calls"].to_string() };
                    prop_assert_eq!(key, if let [only] = &all[..] { only.clone() } else { format!("[{}]", all.join(",")) });
                    let bytes = all.join("\n");
                    let review = parse(Contract::Tool, ReviewAnswer { text: b"", tool: Some(bytes.as_bytes()) }, request);
                    let refused = calls.iter().any(|call| call.get("passed") == Some(&json!(false)));
                    let approves = review.as_ref().is_ok_and(|review| review.verdict.approves());
                    prop_assert!(!approves || (calls.len() == 1 && !refused), "{:?}", calls);
                }
                ReportScope::Tasks { written } => {
                    let bytes = serde_json::to_vec(&report).unwrap();
                    let known = |id: &String| written.iter().any(|task| task.id == *id);
                    // Cycles can be detected only when all tasks are present.
                    if written.iter().all(|task| task.depends_on.is_empty()) {
                        prop_assert_eq!(&read_tasks(&bytes).unwrap(), written);
                    } else if !written.iter().flat_map(|task| &task.depends_on).all(known) {
                        prop_assert!(read_tasks(&bytes).is_err());
                    }
                }
                ReportScope::Groups { added, .. } => {
                    let tasks: Vec<Value> =
                        added.iter().flatten().map(|id| json!({ "id": id, "title": id })).collect();
                    let tasks = read_tasks(&serde_json::to_vec(&json!({ "tasks": tasks })).unwrap()).unwrap();
                    prop_assert_eq!(&read_groups(&serde_json::to_vec(&report).unwrap(), &tasks).unwrap(), added);
                }
            }
            scope = next;
        }
    }

    /// A refusal stays one short line, even if the arguments are long.
    #[test]
    fn a_refusal_stays_short(text in "\\PC{0,2000}") {
        let scope = ReportScope::review(review_request(Some("7"), Some("7")));
        for value in [json!({ "loopId": text, "passed": true }), json!({ "loopId": "7", "taskId": text, "passed": true })] {
            let refusal = scope.call("set_loop_review_result", &arguments(value));
            if let Err(ReportRefusal::WrongLoop { .. } | ReportRefusal::WrongTask { .. }) = &refusal {
                prop_assert!(refusal.unwrap_err().to_string().chars().count() < 300);
            }
        }
    }
}
