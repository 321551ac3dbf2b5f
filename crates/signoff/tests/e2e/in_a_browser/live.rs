//! What happens is to be seen at once, and what is clicked happens.

use jiff::Timestamp;
use signoff_testkit::browser::Window;
use signoff_testkit::processes::until;

use super::{address, asking, let_go, status, visit};

/// The words of the row of a task, wherever it stands.
fn row(task: u64, says: &str) -> String {
    format!(
        "[...document.querySelectorAll('li.row, form.question')].some((row) => \
         row.querySelector('a[href=\"/tasks/{task}\"]') && row.textContent.includes('{says}'))"
    )
}

#[test]
#[ignore = "needs a browser: scripts/browser"]
fn an_event_is_on_the_page_within_200_ms() {
    const TASKS: u64 = 9;
    let project = asking(TASKS as usize);
    let work = project.start(&["work", "--json-events"]);
    let (_served, browser) = visit(&project, Window::DESK);
    let mut late = Vec::new();
    for task in 1..=TASKS {
        let_go(&project, task);
        let seen = browser.wait_until(&row(task, "did not lead to approval"));
        let seen = Timestamp::from_millisecond(seen.as_i64().expect("a time")).expect("a time");
        late.push((seen, task));
    }
    for task in 1..=TASKS {
        project.run(&["answer", &task.to_string(), "stop"]);
    }
    let told = project.env.finish(work).stdout;
    let mut late: Vec<i64> = late
        .into_iter()
        .map(|(seen, task)| {
            seen.duration_since(asked_at(&told, task)).as_millis().try_into().expect("a span")
        })
        .collect();
    late.sort_unstable();
    println!("events were on the page after {late:?} ms");
    assert!(late[late.len() / 2] < 200, "{late:?}");
}

/// When the last review of a task arrived, which led to the question.
fn asked_at(told: &str, task: u64) -> Timestamp {
    let facts = told.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let loop_id = task.to_string();
    let reviewed = facts
        .filter(|fact| fact["kind"] == "loop.review_arrived" && fact["loop_id"] == loop_id.as_str())
        .filter_map(|fact| fact["at"].as_str()?.parse().ok())
        .next_back();
    reviewed.unwrap_or_else(|| panic!("task {task} was reviewed:\n{told}"))
}

#[test]
#[ignore = "needs a browser: scripts/browser"]
fn answering_a_question_resumes_the_loop() {
    let project = asking(2);
    let work = project.start(&["work"]);
    let (_served, browser) = visit(&project, Window::DESK);
    let_go(&project, 1);
    browser.wait_until(&row(1, "did not lead to approval"));
    browser.click_on("Continue");
    // The other one is still at work, so it is the same program that goes on.
    browser.wait_until(&row(1, "APPROVED"));
    assert_eq!(status(&project, 1), "\"completed\" \"APPROVED\"");
    let_go(&project, 2);
    browser.wait_until(&row(2, "did not lead to approval"));
    browser.click_on("Stop");
    let end = project.env.finish(work);
    assert_eq!(end.code, Some(0), "{end}");
    assert_eq!(status(&project, 2), "\"completed\" \"MAX_CYCLES_REACHED\"");
}

#[test]
#[ignore = "needs a browser: scripts/browser"]
fn a_task_is_added_retried_edited_and_cancelled_with_the_keyboard_and_the_mouse() {
    let project = asking(1);
    let (served, browser) = visit(&project, Window::DESK);
    browser.open(&address(&served, "/add"));
    browser.type_into("textarea", "Log out\n\nEverywhere.");
    browser.run("document.querySelector('main form').requestSubmit()");
    browser.wait_for("Log out");
    assert_eq!(status(&project, 2), "\"pending\" null");
    let work = project.start(&["work", "1"]);
    let_go(&project, 1);
    assert_eq!(project.env.finish(work).code, Some(0));
    browser.open(&address(&served, "/tasks/1"));
    browser.wait_for("missing input validation");
    browser.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })");
    browser.run(
        "const form = document.querySelector('form[action$=\"/edit\"]'); \
                 form.querySelector('[name=verdict]').value = 'APPROVED'; \
                 form.querySelector('[name=reason]').value = 'It is generated'; form.requestSubmit()",
    );
    browser.wait_for("It is generated");
    assert_eq!(status(&project, 1), "\"completed\" \"APPROVED\"");
    browser.open(&address(&served, "/tasks/2"));
    browser.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })");
    browser.run("document.querySelector('form[action$=\"/cancel\"]').requestSubmit()");
    browser.wait_for("cancelled");
    assert_eq!(status(&project, 2), "\"cancelled\" null");
}

#[test]
#[ignore = "needs a browser: scripts/browser"]
fn what_is_half_typed_survives_an_update() {
    let project = asking(2);
    let work = project.start(&["work"]);
    let_go(&project, 1);
    let (served, browser) = visit(&project, Window::DESK);
    browser.wait_until(&row(1, "did not lead to approval"));
    browser.open(&address(&served, "/tasks/1"));
    browser.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })");
    browser.click("form[action*='/dispute'] [name=reason]");
    browser.type_into("form[action*='/dispute'] [name=reason]", "half a sen");
    project.run(&["answer", "1", "continue"]);
    browser.wait_until("document.getElementById('main').textContent.includes('APPROVED')");
    let there = "document.activeElement.name + ' ' + document.activeElement.value";
    let field = browser.run(&format!("return {there}"));
    // The finding is fixed and cannot be disputed any more, or what was typed is still there.
    let kept = field == "reason half a sen"
        || browser.run("return document.querySelector(\"form[action*='/dispute']\") === null") == true;
    assert!(kept, "{field}");
    let_go(&project, 2);
    until("it waits for an answer", || status(&project, 2).contains("waiting"));
    project.run(&["answer", "2", "stop"]);
    assert_eq!(project.env.finish(work).code, Some(0));
}

#[test]
#[ignore = "needs a browser: scripts/browser"]
fn a_page_whose_server_is_gone_says_so() {
    let project = asking(1);
    let (served, browser) = visit(&project, Window::DESK);
    browser.wait_until("document.getElementById('connection').hidden");
    drop(served);
    browser.wait_until("!document.getElementById('connection').hidden");
}
