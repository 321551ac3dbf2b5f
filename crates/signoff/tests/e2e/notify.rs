//! Notifications: each is delivered once, and a failing channel does not affect the work.

mod bell_and_desktop;
mod layers;
mod outlived;
mod redelivery;

use std::fs;
use std::path::Path;

use serde_json::Value;
use signoff_testkit::server::{CannedReply, TestServer};
use signoff_testkit::{ProgramOutput, TestProject};

use crate::PROGRAM;
use crate::actors::{APPROVED, FEATURE, changes};
use signoff_testkit::agent_script::ScriptRule;

const ASKS: &str = "[gate]\nmax_cycles = 1\non_exhausted = \"ask\"\n";
const SECRET: &str = "/hook/s3cret";

/// A task that leads to a question, which can be answered with `proceed` or one more fix.
fn project(notify: &str) -> TestProject {
    let project = TestProject::with_agent(PROGRAM, |script| {
        script
            .rule(ScriptRule::role("implement").write(FEATURE, "login\n").say("Done.\n"))
            .rule(ScriptRule::role("fix").append(FEATURE, "fixed\n").say("Fixed.\n"))
            .rule(ScriptRule::role("review").cycle(1).say(&changes("missing input validation")))
            .rule(ScriptRule::role("review").say(APPROVED))
    });
    project.configure(&format!("{ASKS}{notify}"));
    project.run(&["add", "Log in", "-a"]);
    project
}

fn to(server: &TestServer) -> String {
    format!(
        "[notify]\nquestion = [\"hook\"]\ndone = [\"hook\"]\n[notify.channels.hook]\nkind = \"webhook\"\nurl = \"{}{SECRET}\"\n",
        server.address()
    )
}

/// Works without delays between delivery attempts.
fn work(project: &TestProject) -> ProgramOutput {
    project.env.run_with(&["work"], &[("SIGNOFF_TEST_NOTIFY_MS", "1")])
}

fn fits(message: &Value) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema/notification.schema.json");
    let schema = serde_json::from_str(&fs::read_to_string(path).expect("a schema")).expect("JSON");
    jsonschema::validate(&schema, message).unwrap_or_else(|error| panic!("{error}\n{message:#}"));
}

#[test]
fn a_question_is_posted_once_and_the_end_once() {
    let server =
        TestServer::with_replies([CannedReply::status(200), CannedReply::status(200), CannedReply::status(200)]);
    let project = project(&to(&server));
    assert_eq!(work(&project).code, Some(3));
    let [asked] = server.requests().try_into().expect("one message");
    let mut message = asked.json();
    fits(&message);
    message["at"] = Value::Null;
    insta::assert_snapshot!(format!("{message:#}"), @r#"
    {
      "version": 1,
      "event": "question",
      "project": "work",
      "run_id": 1,
      "task_id": 1,
      "title": "Task #1 needs an answer: Log in",
      "text": "1 review did not lead to approval. One more fix and review, proceed with the findings open, or stop?",
      "question": {
        "id": "q1",
        "text": "1 review did not lead to approval. One more fix and review, proceed with the findings open, or stop?",
        "choices": [
          "continue",
          "proceed",
          "stop",
          "restart"
        ]
      },
      "outcome": null,
      "final_verdict": null,
      "reason": null,
      "cost_usd": 0.0,
      "branch": "signoff/task-1-log-in",
      "next": "signoff answer 1 CHOICE (continue, proceed, stop, restart)",
      "at": null
    }
    "#);
    // Nothing new happened, so nothing is sent.
    work(&project);
    assert_eq!(server.requests().len(), 1);
    project.run(&["answer", "1", "continue"]);
    assert_eq!(work(&project).code, Some(0));
    let [_, done] = server.requests().try_into().expect("two messages");
    fits(&done.json());
    assert_eq!((&done.json()["event"], &done.json()["final_verdict"]), (&"done".into(), &"APPROVED".into()));
}

#[test]
fn a_dead_webhook_causes_only_one_note() {
    let quiet = work(&project("[notify]\nquestion = []\n"));
    let server = TestServer::with_replies([CannedReply::status(404), CannedReply::status(404)]);
    let output = work(&project(&to(&server)));
    assert_eq!((output.code, &output.stdout), (quiet.code, &quiet.stdout));
    let note = format!("notify: hook: {} answered 404; check its address\n", server.host());
    assert_eq!(output.stderr.replace(&note, ""), quiet.stderr);
    assert_eq!(output.stderr.matches("notify:").count(), 1, "{}", output.stderr);
}

#[test]
fn the_address_is_never_shown() {
    let server = TestServer::with_replies([]);
    let project = project(&to(&server));
    for words in [&["config"][..], &["config", "--json"], &["config", "notify.channels.hook.url"], &["doctor"]] {
        let shown = project.run(words).to_string();
        assert!(!shown.contains("s3cret"), "{words:?}\n{shown}");
    }
    let set = format!("notify.channels.hook.url={}{SECRET}2", server.address());
    let shown = project.run(&["configure", "--set", &set]).to_string();
    assert!(shown.contains("notify.channels.hook.url") && !shown.contains("s3cret"), "{shown}");
}

#[test]
fn a_command_channel_can_answer() {
    let project = project(
        "[notify]\nquestion = [\"tell\"]\n[notify.channels.tell]\nkind = \"command\"\ncommand = [\"sh\", \"tell.sh\"]\n",
    );
    project.env.write("tell.sh", "signoff answer \"$SIGNOFF_QUESTION_ID\" proceed > answered.txt\n");
    project.commit("Tell");
    assert_eq!(work(&project).code, Some(3));
    // The program that asked may have ended by then.
    assert_eq!(project.read("answered.txt").lines().next(), Some("q1 answered: proceed"));
}

#[test]
fn channels_can_be_tested() {
    let server =
        TestServer::with_replies([CannedReply::status(200), CannedReply::status(403), CannedReply::status(200)]);
    let project = project(&to(&server));
    let tried = |words: &[&str]| project.run(words).to_string().replace(&server.host(), "HOST");
    insta::assert_snapshot!(tried(&["notify", "hook"]), @"
    exit 0
    --- stdout
    ✓ hook (webhook to HOST), on done, question: sent
    ");
    insta::assert_snapshot!(tried(&["notify", "hook", "--event", "question"]), @"
    exit 1
    --- stdout
    ✗ hook (webhook to HOST), on done, question: HOST answered 403; check its address and headers
    ");
    insta::assert_snapshot!(tried(&["notify", "pigeon"]), @"
    exit 2
    --- stderr
    error: there is no channel pigeon
    hint: known channels: bell, desktop, hook; add `[notify.channels.pigeon]` to signoff.toml
    ");
    let report = project.run(&["notify", "hook", "--json"]).json();
    assert_eq!((&report["ok"], &report["channels"][0]["events"][0]), (&true.into(), &"done".into()));
    let sent: Vec<Value> = server.requests().iter().map(|request| request.json()).collect();
    sent.iter().for_each(fits);
    assert_eq!(sent[1]["event"], "question");
}

/// The webhook hangs, and the program ends before it is delivered; the question is still open.
#[test]
fn an_undelivered_question_is_sent_again_until_it_is_delivered() {
    let server = TestServer::with_replies([CannedReply::hang(), CannedReply::status(200), CannedReply::status(200)]);
    let project = project(&to(&server));
    let worked = work(&project);
    assert!(worked.stderr.contains("notify: hook did not deliver one message in time"), "{worked}");
    assert_eq!(work(&project).code, Some(3));
    let [lost, repeated] = server.requests().try_into().expect("two messages");
    assert_eq!(
        (&repeated.json()["event"], repeated.json()["question"]["id"].clone()),
        (&"question".into(), "q1".into())
    );
    assert_eq!(lost.json()["at"], repeated.json()["at"]);
    work(&project);
    assert_eq!(server.requests().len(), 2, "it was taken");
}

#[test]
fn agents_and_checks_do_not_get_a_channels_address_and_it_is_not_stored() {
    const ADDRESS: &str = "http://127.0.0.1:1/services/T0/hook-canary-0f9e8d7c6b5a";
    const HEADER: &str = "tok-canary-1a2b3c4d5e6f7a8b";
    let project = TestProject::with_agent(PROGRAM, |script| {
        let text = format!("The address is {ADDRESS}, the key {HEADER}.\n");
        script
            .rule(ScriptRule::role("implement").shell("env > seen.txt").say(&text))
            .rule(ScriptRule::role("fix").say("Nothing to fix.\n"))
    });
    project.configure(&format!(
        "[agents.checks]\nkind = \"checks\"\n[roles]\nimplement = \"scripted\"\n[reviewers.tests]\nkind = \"tests\"\nagent = \"checks\"\n\
         [gate]\nreviewers = [\"tests\"]\nmax_cycles = 1\n[checks]\ntest = \"echo address=$TEAM_URL.; false\"\n\
         [notify.channels.hook]\nkind = \"webhook\"\nurl_env = \"TEAM_URL\"\nheaders = {{ X-Token = \"{HEADER}\" }}\n"
    ));
    let variables = [("TEAM_URL", ADDRESS)];
    project.run(&["add", "Greet", "-a"]);
    let worked = project.env.run_with(&["work"], &variables);
    let shown = project.env.run_with(&["show", "1", "--json"], &variables);
    assert!(shown.stdout.contains("address=."), "{worked}\n{shown}");
    let seen = project.git("show signoff/task-1-greet:seen.txt");
    assert!(seen.contains("SIGNOFF_ROLE=implement") && !seen.contains("canary"), "{seen}");
    // The configuration itself is committed, so it is in the worktrees.
    let kept = project.git("--no-pager grep --no-index -l -a canary -- .signoff ':!.signoff/worktrees'; true");
    assert_eq!(kept.trim(), "", "{worked}");
}

#[test]
fn an_address_with_a_password_is_refused_and_never_shown() {
    for address in
        ["http://u:s3cret@127.0.0.1:1/x", "http://u:s3cret/pw@127.0.0.1:1/x", "http://127.0.0.1:18101;s3cret/x"]
    {
        let project = TestProject::new(PROGRAM);
        let notify =
            format!("[notify]\ndone = [\"hook\"]\n[notify.channels.hook]\nkind = \"webhook\"\nurl = \"{address}\"\n");
        project.env.write("signoff.toml", notify);
        for words in [&["config"][..], &["notify"], &["doctor"]] {
            let shown = project.run(words).to_string();
            assert!(!shown.contains("s3cret"), "{words:?}\n{shown}");
        }
        let refused = project.run(&["notify"]);
        assert!(refused.stderr.contains("signoff.toml:5") && refused.code == Some(2), "{refused}");
    }
}

/// The bell on a real terminal: in line mode, on the full screen, and after a person left it.
#[test]
fn a_question_rings_the_bell_unless_quiet_is_set() {
    let rung = |words: &[&str]| {
        let project = project("");
        let terminal = project.env.terminal(words);
        terminal.finish_and_count_bells()
    };
    assert_eq!(rung(&["work", "--plain"]), 1);
    assert_eq!(rung(&["work", "--plain", "--quiet"]), 0);
}

#[test]
fn the_bell_rings_after_a_person_left_the_screen() {
    let project = project("");
    let gate = project.state().with_file_name("go-on");
    let waits = ScriptRule::role("implement").write(FEATURE, "login\n").say("Reading it.\n");
    project.set_agent(|script| {
        script
            .rule(waits.wait_for(&gate.display().to_string()))
            .rule(ScriptRule::role("review").say(&changes("missing input validation")))
    });
    let terminal = project.env.terminal(&["work"]);
    terminal.wait_for("Reading it.");
    terminal.send("q");
    terminal.wait_for("Leave the screen?");
    terminal.send("y");
    terminal.wait_until("lines", |screen| screen.contains("/1] Implementing..."));
    assert_eq!(terminal.bell_count(), 0);
    fs::write(&gate, "").expect("a written file");
    assert_eq!(terminal.finish_and_count_bells(), 1);
}

#[test]
fn the_bell_rings_when_the_screen_shows_a_question() {
    let project = project("");
    let terminal = project.env.terminal(&["work"]);
    terminal.wait_for_bell();
}
