//! Failed tasks and reached cost caps are delivered to a webhook once, also after the run is over.

use serde_json::json;

use super::*;

fn hook(server: &TestServer, event: &str) -> String {
    let address = server.address();
    format!("[notify]\n{event} = [\"hook\"]\n[notify.channels.hook]\nkind = \"webhook\"\nurl = \"{address}{SECRET}\"\n")
}

/// A task whose one agent always fails.
fn failing(server: &TestServer) -> TestProject {
    let project = TestProject::with_agent(PROGRAM, |script| script.rule(ScriptRule::role("implement").exit(1)));
    project.configure(&hook(server, "stuck"));
    project.run(&["add", "Log in", "-a"]);
    project
}

fn summary(request: &signoff_testkit::server::RecordedRequest) -> String {
    let message = request.json();
    fits(&message);
    let text = |key: &str| message[key].as_str().unwrap_or("-").to_owned();
    ["event", "title", "text", "next"].map(text).join("\n")
}

#[test]
fn a_task_that_failed_is_posted() {
    let server = TestServer::with_replies([CannedReply::status(200)]);
    let project = failing(&server);
    work(&project);
    let [request] = server.requests().try_into().expect("one message");
    insta::assert_snapshot!(summary(&request), @"
    stuck
    Task #1 failed: Log in
    The implementer failed.
    signoff show 1, then signoff retry 1
    ");
    work(&project);
    assert_eq!(server.requests().len(), 1, "it was taken");
}

/// The run is over, and nothing is left to do.
#[test]
fn a_failure_that_was_not_delivered_is_sent_once_by_the_next_program() {
    let server = TestServer::with_replies([
        CannedReply::status(404),
        CannedReply::status(404),
        CannedReply::status(200),
        CannedReply::status(200),
    ]);
    let project = failing(&server);
    let worked = work(&project);
    assert!(worked.stderr.contains("answered 404"), "{worked}");
    let again = work(&project);
    assert!(again.stderr.contains("answered 404"), "still dead: {again}");
    let [lost, _] = server.requests().try_into().expect("two messages");
    work(&project);
    let [.., taken] = server.requests().try_into().unwrap_or_else(|all| -> [_; 3] { panic!("{all:?}") });
    assert_eq!(summary(&lost), summary(&taken));
    assert_eq!(lost.json()["at"], taken.json()["at"]);
    work(&project);
    assert_eq!(server.requests().len(), 3, "it was taken");
}

#[test]
fn a_failure_that_a_person_has_handled_is_not_sent_again() {
    let server = TestServer::with_replies([CannedReply::status(404), CannedReply::status(200)]);
    let project = failing(&server);
    work(&project);
    project.run(&["cancel", "1"]);
    project.set_agent(|script| {
        script
            .rule(ScriptRule::role("implement").write(FEATURE, "login\n").say("Done.\n"))
            .rule(ScriptRule::role("review").say(APPROVED))
    });
    project.run(&["retry", "1"]);
    assert_eq!(work(&project).code, Some(0));
    work(&project);
    assert_eq!(server.requests().len(), 1, "nothing is stuck any more");
}

#[test]
fn a_reached_cap_is_posted_with_its_scope_and_a_command() {
    let server =
        TestServer::with_replies([CannedReply::status(200), CannedReply::status(200), CannedReply::status(200)]);
    let project = TestProject::with_agent(PROGRAM, |script| {
        let cost = json!({"cost_usd": 2.5});
        script.rule(ScriptRule::role("implement").write("{task}.txt", "done\n").usage(cost))
    });
    project.configure(&format!("jobs = 1\n[limits.run]\nmax_cost_usd = 6.0\n{}", hook(&server, "budget")));
    for title in ["One", "Two", "Three"] {
        project.run(&["add", title]);
    }
    work(&project);
    let [request] = server.requests().try_into().expect("one message");
    insta::assert_snapshot!(summary(&request), @"
    budget
    Task #3 is paused: Three
    In the whole run $5.00 of $6.00 is spent: another attempt may go over it.
    signoff configure --set limits.run.max_cost_usd=DOLLARS; signoff work
    ");
    // The suggested command works with an amount.
    let raised = project.run(&["configure", "--set", "limits.run.max_cost_usd=20"]);
    assert_eq!(raised.code, Some(0), "{raised}");
    assert_eq!(work(&project).code, Some(0));
    let left = project.run(&["status", "--json"]).json();
    assert!(!left.to_string().contains("paused"), "{left}");
}
