//! Live updates of the page, and actions by click and key.

use jiff::Timestamp;
use signoff_term::fit::format_duration;
use signoff_testkit::TestProject;
use signoff_testkit::agent_script::ScriptRule;
use signoff_testkit::browser::{Browser, BrowserWindow, Key};
use signoff_testkit::processes::wait_until;
use signoff_testkit::serve::ServeProcess;

use super::{ASKS, address, asking, release_agent, status, visit};
use crate::PROGRAM;

/// Signals that stop and continue a process.
const STOP: i32 = 19;
const CONT: i32 = 18;

/// A JavaScript condition: a row of this task contains these words.
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
    let (_served, browser) = visit(&project, BrowserWindow::DESKTOP);
    let mut late = Vec::new();
    for task in 1..=TASKS {
        release_agent(&project, task);
        let seen = browser.wait_until(&row(task, "did not lead to approval"));
        let seen = Timestamp::from_millisecond(seen.as_i64().expect("a time")).expect("a time");
        late.push((seen, task));
    }
    for task in 1..=TASKS {
        project.run(&["answer", &task.to_string(), "stop"]);
    }
    let events = project.env.finish(work).stdout;
    let mut late: Vec<i64> = late
        .into_iter()
        .map(|(seen, task)| seen.duration_since(asked_at(&events, task)).as_millis().try_into().expect("a span"))
        .collect();
    late.sort_unstable();
    println!("events were on the page after {late:?} ms");
    assert!(late[late.len() / 2] < 200, "{late:?}");
    assert!(late[late.len() - 2] < 200, "all but one: {late:?}");
}

/// The time of the task's last review, which led to the question.
fn asked_at(events: &str, task: u64) -> Timestamp {
    let facts = events.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let loop_id = task.to_string();
    let reviewed = facts
        .filter(|fact| fact["kind"] == "loop.review_arrived" && fact["loop_id"] == loop_id.as_str())
        .filter_map(|fact| fact["at"].as_str()?.parse().ok())
        .next_back();
    reviewed.unwrap_or_else(|| panic!("task {task} was reviewed:\n{events}"))
}

#[test]
#[ignore = "needs a browser: scripts/browser"]
fn answering_a_question_resumes_the_loop() {
    let project = asking(2);
    let work = project.start(&["work"]);
    let (_served, browser) = visit(&project, BrowserWindow::DESKTOP);
    release_agent(&project, 1);
    browser.wait_until(&row(1, "did not lead to approval"));
    browser.click_on("Continue");
    // The other task is still running, so the same program continues.
    browser.wait_until(&row(1, "APPROVED"));
    assert_eq!(status(&project, 1), "\"completed\" \"APPROVED\"");
    release_agent(&project, 2);
    browser.wait_until(&row(2, "did not lead to approval"));
    browser.click_on("Stop");
    let end = project.env.finish(work);
    assert_eq!(end.code, Some(3), "{end}");
    // The program may have ended before the click: then the server records the answer.
    wait_until("the task is stopped", || status(&project, 2) == "\"completed\" \"MAX_CYCLES_REACHED\"");
}

#[test]
#[ignore = "needs a browser: scripts/browser"]
fn a_task_is_added_retried_edited_and_cancelled_with_the_keyboard_and_the_mouse() {
    let project = asking(2);
    (1..=2).for_each(|task| release_agent(&project, task));
    project.run(&["work"]);
    let (served, browser) = visit(&project, BrowserWindow::DESKTOP);
    browser.open(&address(&served, "/add"));
    browser.type_into("textarea", "Log out\n\nEverywhere.");
    browser.click_on("Add the task");
    browser.wait_for("Added task #3: Log out");
    assert_eq!(status(&project, 3), "\"pending\" null");
    browser.click_on("Cancel…");
    browser.click_on("Cancel task 3");
    browser.wait_for("Task #3 cancelled");
    assert_eq!(status(&project, 3), "\"cancelled\" null");
    browser.open(&address(&served, "/tasks/1"));
    browser.click_on("Stop");
    browser.wait_for("MAX_CYCLES_REACHED");
    browser.click_on("Retry task 1");
    browser.wait_for("Task #1 continues");
    project.run(&["work", "1"]);
    assert_eq!(status(&project, 1), "\"completed\" \"APPROVED\"");
    browser.open(&address(&served, "/tasks/2"));
    browser.click_on("Set the verdict…");
    browser.type_into("#edit-reason", "It is generated");
    browser.press(Key::Enter);
    browser.wait_for("It is generated");
    assert_eq!(status(&project, 2), "\"completed\" \"APPROVED\"");
}

/// Two findings that stay open until a person decides.
fn two_findings() -> TestProject {
    let found = "- [Critical] auth.txt:1 missing input validation\n- [Critical] mail.txt:7 the mail is sent twice\n\n\
                 **Verdict: CHANGES_REQUESTED**\n";
    let project = TestProject::with_agent(PROGRAM, |script| {
        script
            .rule(ScriptRule::role("implement").write("auth.txt", "login\n").say("It is there.\n"))
            .rule(ScriptRule::role("review").say(found))
    });
    project.configure(ASKS);
    project.run(&["add", "Log in", "-a"]);
    project.run(&["work"]);
    project
}

#[test]
#[ignore = "needs a browser: scripts/browser"]
fn half_typed_text_survives_an_update() {
    let project = two_findings();
    let (served, browser) = visit(&project, BrowserWindow::DESKTOP);
    browser.open(&address(&served, "/tasks/1"));
    let ledger = project.run(&["show", "1", "--json"]).json()["ledger"].clone();
    let id = |index: usize| ledger[index]["id"].as_str().expect("an id").to_owned();
    let (typed, other) = (id(0), id(1));
    let field = format!("#t1-{typed}-reason");
    browser.click(&format!("#t1-{typed}-dispute > summary"));
    browser.type_into(&field, "half a sen");
    // The other finding is in the same part of the page, which is replaced.
    browser.run(&format!("window.before = document.querySelector('{field}')"));
    project.run(&["dispute", &other, "--reason", "it is not"]);
    browser.wait_until(&format!("document.getElementById('t1-{other}').textContent.includes('it is not')"));
    assert_eq!(browser.run(&format!("return window.before === document.querySelector('{field}')")), false);
    assert_eq!(browser.run(&format!("return document.querySelector('{field}').value")), "half a sen");
    assert_eq!(browser.run(&format!("return document.activeElement === document.querySelector('{field}')")), true);
    browser.type_into(&field, "tence");
    assert_eq!(browser.run("return document.activeElement.value"), "half a sentence");
}

#[test]
#[ignore = "needs a browser: scripts/browser"]
fn the_page_responds_with_eight_tabs_open() {
    let project = asking(1);
    release_agent(&project, 1);
    project.run(&["work"]);
    let (served, browser) = visit(&project, BrowserWindow::DESKTOP);
    for tab in 2..=8 {
        browser.open_in_tab(&address(&served, if tab % 2 == 0 { "/tasks/1" } else { "/" }));
        browser.wait_until("document.getElementById('connection').hidden && events.readyState === EventSource.OPEN");
    }
    browser.click_on("Stop");
    browser.wait_for("MAX_CYCLES_REACHED");
    // A tab that becomes visible again shows what happened in the meantime.
    browser.switch_to_first_tab();
    browser.wait_for("MAX_CYCLES_REACHED");
}

#[test]
#[ignore = "needs a browser: scripts/browser"]
fn a_page_that_cannot_be_fetched_says_so() {
    let project = asking(1);
    let (_served, browser) = visit(&project, BrowserWindow::DESKTOP);
    for (status, says) in [(500, "could not be refreshed"), (401, "open the address that `signoff serve` prints now")] {
        browser.run(&format!(
            "window.real ??= fetch; window.fetch = async () => new Response('', {{ status: {status} }}); refresh()"
        ));
        browser.wait_for(says);
    }
    browser.run("window.fetch = window.real; refresh()");
    browser.wait_until("document.getElementById('connection').hidden");
}

#[test]
#[ignore = "needs a browser: scripts/browser"]
fn relative_times_advance_as_the_server_formats_them() {
    let project = asking(1);
    let work = project.start(&["work"]);
    let (_served, browser) = visit(&project, BrowserWindow::DESKTOP);
    browser.wait_until("document.querySelector('#running time[data-ms]')");
    browser.run("window.before = document.querySelector('#running time').textContent");
    browser.wait_until("document.querySelector('#running time').textContent !== window.before");
    for time in [0, 999, 1000, 59_999, 60_000, 3_599_999, 3_600_000, 90_061_000] {
        assert_eq!(browser.run(&format!("return formatDuration({time})")), format_duration(time), "{time}");
    }
    release_agent(&project, 1);
    browser.wait_until(&row(1, "did not lead to approval"));
    browser.click_on("Stop");
    assert_eq!(project.env.finish(work).code, Some(3));
}

#[test]
#[ignore = "needs a browser: scripts/browser"]
fn a_page_whose_server_is_gone_says_so() {
    let project = asking(1);
    let (served, browser) = visit(&project, BrowserWindow::DESKTOP);
    browser.wait_until("document.getElementById('connection').hidden");
    drop(served);
    browser.wait_until("!document.getElementById('connection').hidden");
}

#[test]
#[ignore = "needs a browser: scripts/browser"]
fn a_click_during_an_update_is_not_lost() {
    let project = TestProject::with_agent(PROGRAM, |script| {
        script.rule(ScriptRule::role("implement").say("TASK_STUCK: there is no such table\n"))
    });
    project.run(&["add", "Log in"]);
    project.run(&["work"]);
    let before = status(&project, 1);
    let (_served, browser) = visit(&project, BrowserWindow::DESKTOP);
    let retry = "form[action='/tasks/1/retry'] button";
    browser.run(&format!("window.button = document.querySelector({retry:?})"));
    browser.click_while(retry, || {
        // The new content is elsewhere on the page, and a second passes.
        project.run(&["add", "Log out"]);
        browser.wait_for("Log out");
        project.run(&["cancel", "2"]);
        browser.wait_until(&row(2, "cancelled"));
        assert_eq!(browser.run(&format!("return window.button === document.querySelector({retry:?})")), true);
    });
    browser.wait_for("Task #1 continues");
    assert_ne!(status(&project, 1), before);
}

#[test]
#[ignore = "needs a browser: scripts/browser"]
fn a_passing_second_replaces_no_elements() {
    let project = two_findings();
    project.run(&["answer", "1", "stop"]);
    let (_served, browser) = visit(&project, BrowserWindow::DESKTOP);
    let same = browser.run(
        "window.row = document.querySelector('li.row'); window.ago = row.querySelector('time[title]'); \
         const part = row.closest('[data-live]'), before = contentOf(part); \
         ago.textContent = 'long ago'; return before === contentOf(part)",
    );
    assert_eq!(same, true);
    // Its text is updated all the same.
    browser.run("refresh()");
    browser.wait_until("ago.isConnected && /[0-9]+. ago/.test(ago.textContent)");
    assert_eq!(browser.run("return row === document.querySelector('li.row')"), true);
}

#[test]
#[ignore = "needs a browser: scripts/browser"]
fn a_page_whose_server_hangs_says_so() {
    let project = asking(1);
    let served = ServeProcess::start_with(&project, &[("SIGNOFF_TEST_HEARTBEAT_MS", "100")]);
    let browser = Browser::start(BrowserWindow::DESKTOP);
    browser.open(&served.url);
    browser.wait_until("document.getElementById('main').dataset.every === '100'");
    assert_eq!(browser.run("return document.getElementById('connection').hidden"), true);
    served.signal(STOP);
    browser.wait_until("!document.getElementById('connection').hidden");
    served.signal(CONT);
    browser.wait_until("document.getElementById('connection').hidden");
}

#[test]
#[ignore = "needs a browser: scripts/browser"]
fn eight_windows_side_by_side_all_update() {
    let project = asking(1);
    let (served, browser) = visit(&project, BrowserWindow::DESKTOP);
    for window in 2..=8 {
        browser.open_in_window(&address(&served, if window % 2 == 0 { "/tasks/1" } else { "/" }));
        browser.wait_until("document.readyState === 'complete' && !document.hidden");
    }
    project.run(&["cancel", "1"]);
    browser.in_each_window(|| {
        browser.wait_for("cancelled");
    });
}

#[test]
#[ignore = "needs a browser: scripts/browser"]
fn a_finding_is_disputed_where_it_is_read() {
    let project = two_findings();
    let (served, browser) = visit(&project, BrowserWindow::DESKTOP);
    browser.open(&address(&served, "/tasks/1"));
    let ledger = project.run(&["show", "1", "--json"]).json()["ledger"].clone();
    let id = ledger[0]["id"].as_str().expect("an id").to_owned();
    browser.click(&format!("#t1-{id}-dispute > summary"));
    browser.type_into(&format!("#t1-{id}-reason"), "nobody types that");
    browser.click(&format!("#t1-{id}-dispute button"));
    browser.wait_for(&format!("Finding {id} is refuted"));
    assert_eq!(browser.url().split('?').next(), Some(address(&served, "/tasks/1").as_str()));
    browser.wait_for("nobody types that");
    let ledger = project.run(&["show", "1", "--json"]).json()["ledger"].clone();
    let line = ledger.as_array().into_iter().flatten().find(|line| line["id"] == id.as_str()).cloned();
    assert_eq!(line.expect("the finding")["state"], "refuted");
}
