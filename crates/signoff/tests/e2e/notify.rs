//! Who is not looking is told, once, and nothing that goes wrong there changes the work.

use std::fs;
use std::path::Path;

use serde_json::Value;
use signoff_testkit::server::{Reply, Server};
use signoff_testkit::{Output, Project};

use crate::PROGRAM;
use crate::actors::{APPROVED, FEATURE, changes};
use signoff_testkit::script::Rule;

const ASKS: &str = "[gate]\nmax_cycles = 1\non_exhausted = \"ask\"\n";
const SECRET: &str = "/hook/s3cret";

/// One task that comes to a question, whose answer is `proceed` or one more fix.
fn project(notify: &str) -> Project {
    let project = Project::with_agent(PROGRAM, |script| {
        script
            .rule(Rule::role("implement").write(FEATURE, "login\n").say("Done.\n"))
            .rule(Rule::role("fix").append(FEATURE, "fixed\n").say("Fixed.\n"))
            .rule(Rule::role("review").cycle(1).say(&changes("missing input validation")))
            .rule(Rule::role("review").say(APPROVED))
    });
    project.configure(&format!("{ASKS}{notify}"));
    project.run(&["add", "Log in", "-a"]);
    project
}

fn to(server: &Server) -> String {
    format!(
        "[notify]\nquestion = [\"hook\"]\ndone = [\"hook\"]\n[notify.channels.hook]\nkind = \"webhook\"\nurl = \"{}{SECRET}\"\n",
        server.address()
    )
}

/// Nothing is waited for between tries.
fn work(project: &Project) -> Output {
    project.env.run_with(&["work"], &[("SIGNOFF_TEST_NOTIFY_MS", "1")])
}

fn fits(message: &Value) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema/notification.schema.json");
    let schema = serde_json::from_str(&fs::read_to_string(path).expect("a schema")).expect("JSON");
    jsonschema::validate(&schema, message).unwrap_or_else(|error| panic!("{error}\n{message:#}"));
}

#[test]
fn a_question_is_posted_once_and_the_end_once() {
    let server = Server::replying([Reply::status(200), Reply::status(200), Reply::status(200)]);
    let project = project(&to(&server));
    assert_eq!(work(&project).code, Some(0));
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
      "title": "Task #1 asks you: Log in",
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
      "next": "signoff answer 1 continue|proceed|stop|restart",
      "at": null
    }
    "#);
    // Nothing new happens: nothing is told.
    work(&project);
    assert_eq!(server.requests().len(), 1);
    project.run(&["answer", "1", "continue"]);
    assert_eq!(work(&project).code, Some(0));
    let [_, done] = server.requests().try_into().expect("two messages");
    fits(&done.json());
    assert_eq!((&done.json()["event"], &done.json()["final_verdict"]), (&"done".into(), &"APPROVED".into()));
}

#[test]
fn a_dead_webhook_changes_nothing_but_one_note() {
    let quiet = work(&project("[notify]\nquestion = []\n"));
    let server = Server::replying([Reply::status(404), Reply::status(404)]);
    let told = work(&project(&to(&server)));
    assert_eq!((told.code, &told.stdout), (quiet.code, &quiet.stdout));
    let note =
        format!("notify: hook: {} answered 404; look whether its address is still right\n", server.host());
    assert_eq!(told.stderr.replace(&note, ""), quiet.stderr);
    assert_eq!(told.stderr.matches("notify:").count(), 1, "{}", told.stderr);
}

#[test]
fn the_address_is_never_shown() {
    let server = Server::replying([]);
    let project = project(&to(&server));
    for words in
        [&["config"][..], &["config", "--json"], &["config", "notify.channels.hook.url"], &["doctor"]]
    {
        let shown = project.run(words).to_string();
        assert!(!shown.contains("s3cret"), "{words:?}\n{shown}");
    }
    let set = format!("notify.channels.hook.url={}{SECRET}2", server.address());
    let shown = project.run(&["configure", "--set", &set]).to_string();
    assert!(shown.contains("notify.channels.hook.url") && !shown.contains("s3cret"), "{shown}");
}

#[test]
fn a_command_can_answer() {
    let project = project(
        "[notify]\nquestion = [\"tell\"]\n[notify.channels.tell]\nkind = \"command\"\ncommand = [\"sh\", \"tell.sh\"]\n",
    );
    project.env.write("tell.sh", "signoff answer \"$SIGNOFF_QUESTION_ID\" proceed > answered.txt\n");
    project.commit("Tell");
    assert_eq!(work(&project).code, Some(0));
    // Whether the program that asked still runs then is anyone's guess.
    assert_eq!(project.read("answered.txt").lines().next(), Some("q1 answered: proceed"));
}

#[test]
fn channels_can_be_tried() {
    let server = Server::replying([Reply::status(200), Reply::status(403), Reply::status(200)]);
    let project = project(&to(&server));
    let tried = |words: &[&str]| project.run(words).to_string().replace(&server.host(), "HOST");
    insta::assert_snapshot!(tried(&["notify", "hook"]), @"
    exit 0
    --- stdout
    ✓ hook (webhook to HOST), on done, question: told
    ");
    insta::assert_snapshot!(tried(&["notify", "hook", "--event", "question"]), @"
    exit 1
    --- stdout
    ✗ hook (webhook to HOST), on done, question: HOST answered 403; look whether its address and headers are still right
    ");
    insta::assert_snapshot!(tried(&["notify", "pigeon"]), @"
    exit 2
    --- stderr
    error: there is no channel pigeon
    hint: there are bell, desktop, hook; `[notify.channels.pigeon]` makes it one
    ");
    let report = project.run(&["notify", "hook", "--json"]).json();
    assert_eq!((&report["ok"], &report["channels"][0]["events"][0]), (&true.into(), &"done".into()));
    let sent: Vec<Value> = server.requests().iter().map(|request| request.json()).collect();
    sent.iter().for_each(fits);
    assert_eq!(sent[1]["event"], "question");
}
