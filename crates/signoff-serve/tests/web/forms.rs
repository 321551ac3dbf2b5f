//! Forms: the actions they cause, redirects and errors.

use std::collections::BTreeSet;

use signoff_serve::web::{AddTask, WebAction};

use crate::web::{WebFixture, forms};

#[test]
fn every_form_causes_an_action_and_redirects_to_a_notice() {
    let fixture = WebFixture::start();
    let mut led = Vec::new();
    for (path, form) in forms() {
        led.push(fixture.visitor.post(&path, &format!("{form}&back=/tasks/1")).header("location").to_owned());
    }
    let names: BTreeSet<String> =
        led.iter().map(|to| to.rsplit_once("?notice=").expect("something is said").1.to_owned()).collect();
    assert_eq!(names.len(), led.len());
    assert!(names.iter().all(|name| name.len() == 16 && name.bytes().all(|byte| byte.is_ascii_hexdigit())));
    let to = led[2].clone();
    led.iter_mut().for_each(|to| to.truncate(to.find("?notice=").expect("something is said")));
    insta::assert_debug_snapshot!(led, @r#"
    [
        "/tasks/7",
        "/tasks/1",
        "/tasks/1",
        "/tasks/1",
        "/tasks/1",
        "/tasks/1",
    ]
    "#);
    let actions = fixture.probe.actions.lock().expect("a lock").clone();
    let text = |text: &str| text.to_owned();
    assert_eq!(
        actions,
        [
            WebAction::Add(AddTask { text: text("Greet"), ..AddTask::default() }),
            WebAction::Answer { question: text("q1"), choice: text("retry") },
            WebAction::Retry { task: 1 },
            WebAction::Cancel { task: 1 },
            WebAction::Edit { task: 1, verdict: text("APPROVED"), reason: text("") },
            WebAction::Dispute { finding: text("f-1"), task: None, reason: text("wrong") },
        ]
    );
    let (_, name) = to.split_once('?').expect("something is said");
    let page = fixture.visitor.get(&format!("/?{name}")).body;
    assert!(page.contains("it is &lt;u&gt;done&lt;/u&gt;"), "{page}");
    for query in [name, "notice=1", "notice=", "notice=ffffffffffffffff"] {
        let page = fixture.visitor.get(&format!("/?{query}")).body;
        assert!(!page.contains("done&lt;/u&gt;"), "it is shown once, and only with the right token: {query}");
    }
}

#[test]
fn redirects_stay_on_the_site() {
    let fixture = WebFixture::start();
    for back in ["", "http://evil.example/", "//evil.example", "/tasks/1%0d%0aSet-Cookie:%20a=b", "/tasks/../x"] {
        let answer = fixture.visitor.post("/tasks/1/retry", &format!("back={back}"));
        assert!(answer.header("location").starts_with("/?notice="), "{back}: {}", answer.header("location"));
        assert_eq!(answer.header("set-cookie"), "", "{back}");
    }
}

#[test]
fn a_whole_task_is_read_from_its_form() {
    let fixture = WebFixture::start();
    let form = "text=Greet%0D%0A%0D%0AEverybody+%26+all.&type=plan&auto_review=true&max_cycles=+2&depends_on=%231,+2";
    assert_eq!(fixture.visitor.post("/tasks", form).status, 303);
    let actions = fixture.probe.actions.lock().expect("a lock").clone();
    let expected = AddTask {
        text: "Greet\n\nEverybody & all.".to_owned(),
        kind: "plan".to_owned(),
        auto_review: true,
        max_cycles: Some(2),
        depends_on: vec![1, 2],
    };
    assert_eq!(actions, [WebAction::Add(expected)]);
}

#[test]
fn invalid_forms_cause_no_action() {
    let fixture = WebFixture::start();
    for (path, form, status, message) in [
        ("/tasks", "text=+", 400, "a task needs a text"),
        ("/tasks", "text=Greet&max_cycles=many", 400, "`many` in field `max_cycles` is not a number"),
        ("/tasks", "text=Greet&depends_on=first", 400, "`first` in field `depends_on` is not a task number"),
        ("/questions/q1/answer", "", 400, "field `choice` is missing"),
        ("/questions/q1/answer", "choice=a&choice=b", 400, "field `choice` is repeated"),
        ("/tasks/1/edit", "reason=so", 400, "field `verdict` is missing"),
        ("/findings/f-1/dispute", "task=1", 400, "field `reason` is missing"),
        ("/findings/f-1/dispute", "reason=so&task=one", 400, "`one` in field `task` is not a number"),
        ("/tasks/one/retry", "", 404, "there is no such page"),
    ] {
        let answer = fixture.visitor.post(path, form);
        assert_eq!(answer.status, status, "{path} {form}");
        assert!(answer.body.contains(message), "{path} {form}: {}", answer.body);
    }
    assert_eq!(*fixture.probe.actions.lock().expect("a lock"), []);
}

#[test]
fn a_refused_form_keeps_its_text() {
    let fixture = WebFixture::start();
    let answer = fixture.visitor.post("/tasks", "text=Greet+%3Ci%3Eall%3C/i%3E&max_cycles=many");
    assert!(answer.body.contains("Greet &lt;i&gt;all&lt;/i&gt;</textarea>"), "{}", answer.body);
}

#[test]
fn a_refusal_returns_to_the_page_of_the_form() {
    let fixture = WebFixture::start();
    for (path, form, says) in [
        ("/tasks/9/cancel", "back=/", "task 9 has ended"),
        ("/tasks/1/edit", "reason=so&back=/", "field `verdict` is missing"),
        ("/findings/f-1/dispute", "reason=+&back=/", "field `reason` is missing"),
        ("/questions/q1/answer", "back=/", "field `choice` is missing"),
    ] {
        let page = fixture.visitor.submit(path, form).body;
        assert!(page.contains("<div class=\"notice bad\" role=\"alert\">") && page.contains(says), "{page}");
        assert!(page.contains("<h1>Overview</h1>"), "{page}");
    }
}

#[test]
fn a_refusal_is_a_page_with_its_reason_as_text() {
    let fixture = WebFixture::start();
    let answer = fixture.visitor.post("/tasks/9/cancel", "");
    assert_eq!(answer.status, 409);
    assert!(answer.body.contains("task 9 has ended"), "{}", answer.body);
    let answer = fixture.visitor.get("/tasks/9");
    assert_eq!(answer.status, 404);
    assert!(answer.body.contains("there is &lt;i&gt;nothing&lt;/i&gt;"), "{}", answer.body);
    assert!(answer.body.contains("lists &lt;b&gt;the&lt;/b&gt; tasks"), "{}", answer.body);
}

#[test]
fn only_forms_within_the_size_limit_are_accepted() {
    let fixture = WebFixture::start();
    let form = fixture.visitor.form_request("/tasks", "text=Greet");
    for other in ["application/json", "text/plain", "multipart/form-data; boundary=x", ""] {
        let answer = fixture.visitor.request(&form.clone().with("Content-Type", Some(other)));
        assert_eq!(answer.status, 415, "{other}");
    }
    assert_eq!(fixture.visitor.request(&form.with("Content-Type", None)).status, 415);
    let long = format!("text={}", "a".repeat(64 * 1024));
    assert_eq!(fixture.visitor.post("/tasks", &long).status, 413);
    assert_eq!(*fixture.probe.actions.lock().expect("a lock"), []);
    let fits = format!("text={}", "a".repeat(64 * 1024 - 5));
    assert_eq!(fixture.visitor.post("/tasks", &fits).status, 303);
}
