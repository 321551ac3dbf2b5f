//! The page in a real browser. `scripts/browser` finds or installs one and runs these tests.

mod accessible;
mod hostile;
mod live;
mod pictures;
mod strangers;

use std::fs;

use signoff_testkit::TestProject;
use signoff_testkit::agent_script::{AgentScript, ScriptRule};
use signoff_testkit::browser::{Browser, BrowserWindow};
use signoff_testkit::serve::ServeProcess;

use crate::PROGRAM;
use crate::actors::{APPROVED, changes};

/// One review only; then a person is asked.
const ASKS: &str = "jobs = 2\n[gate]\nmax_cycles = 1\non_exhausted = \"ask\"\n";

/// Every implementer waits for the test; every first review finds something.
fn strict(script: AgentScript) -> AgentScript {
    let begins = ScriptRule::role("implement").write("auth-{task}.txt", "login\n").say("Reading the code.\n");
    script
        .rule(begins.wait_for("../../../../go-{task}"))
        .rule(ScriptRule::role("fix").append("auth-{task}.txt", "fixed\n").say("Fixed.\n"))
        .rule(ScriptRule::role("review").cycle(1).say(&changes("missing input validation")))
        .rule(ScriptRule::role("review").say(APPROVED))
}

/// A project with this many tasks that each lead to a question.
fn asking(tasks: usize) -> TestProject {
    let project = TestProject::with_agent(PROGRAM, strict);
    project.configure(ASKS);
    for task in 1..=tasks {
        project.run(&["add", &format!("Log in, part {task}"), "-a"]);
    }
    project
}

fn release_agent(project: &TestProject, task: u64) {
    fs::write(project.env.root().join(format!("go-{task}")), "").expect("a file");
}

fn status(project: &TestProject, task: u64) -> String {
    let shown = project.run(&["show", &task.to_string(), "--json"]).json();
    format!("{} {}", shown["task"]["status"], shown["task"]["final_verdict"])
}

/// Opens the page of a project in a browser.
fn visit(project: &TestProject, window: BrowserWindow) -> (ServeProcess, Browser) {
    let (served, browser) = (ServeProcess::start(project), Browser::start(window));
    browser.open(&served.url);
    // The driver may return before the deferred script of the page has run.
    browser.wait_until("typeof refresh === 'function'");
    (served, browser)
}

/// The URL of a page.
fn address(served: &ServeProcess, path: &str) -> String {
    let (base, _) = served.url.split_once("/?").expect("an address with a token");
    format!("{base}{path}")
}
