//! The page in a real browser. These tests run with `scripts/browser`, which finds or installs one.

mod accessible;
mod hostile;
mod live;
mod pictures;
mod strangers;

use std::fs;

use signoff_testkit::Project;
use signoff_testkit::browser::{Browser, Window};
use signoff_testkit::script::{Rule, Script};
use signoff_testkit::serve::Served;

use crate::PROGRAM;
use crate::actors::{APPROVED, changes};

/// One review is all there is; then somebody is asked.
const ASKS: &str = "jobs = 2\n[gate]\nmax_cycles = 1\non_exhausted = \"ask\"\n";

/// Every implementer waits for the test; every first review finds something.
fn strict(script: Script) -> Script {
    let begins = Rule::role("implement").write("auth-{task}.txt", "login\n").say("Reading the code.\n");
    script
        .rule(begins.wait_for("../../../../go-{task}"))
        .rule(Rule::role("fix").append("auth-{task}.txt", "fixed\n").say("Fixed.\n"))
        .rule(Rule::role("review").cycle(1).say(&changes("missing input validation")))
        .rule(Rule::role("review").say(APPROVED))
}

/// A project with so many tasks that come to a question each.
fn asking(tasks: usize) -> Project {
    let project = Project::with_agent(PROGRAM, strict);
    project.configure(ASKS);
    for task in 1..=tasks {
        project.run(&["add", &format!("Log in, part {task}"), "-a"]);
    }
    project
}

fn let_go(project: &Project, task: u64) {
    fs::write(project.env.root().join(format!("go-{task}")), "").expect("a file");
}

fn status(project: &Project, task: u64) -> String {
    let shown = project.run(&["show", &task.to_string(), "--json"]).json();
    format!("{} {}", shown["task"]["status"], shown["task"]["final_verdict"])
}

/// Somebody looks at the page of a project.
fn visit(project: &Project, window: Window) -> (Served, Browser) {
    let (served, browser) = (Served::start(project), Browser::start(window));
    browser.open(&served.url);
    (served, browser)
}

/// The address of one of its pages.
fn address(served: &Served, path: &str) -> String {
    let (base, _) = served.url.split_once("/?").expect("an address with a token");
    format!("{base}{path}")
}
