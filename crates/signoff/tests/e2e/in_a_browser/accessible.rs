//! Accessibility of the page: screen readers, keyboard only, small screens, dark mode.

use std::fs;

use signoff_testkit::TestProject;
use signoff_testkit::browser::{Browser, BrowserWindow, Key};
use signoff_testkit::serve::ServeProcess;

use super::{address, asking, release_agent, visit};

const PAGES: [&str; 8] =
    ["/", "/?all=1", "/tasks/1", "/tasks/1/diff", "/tasks/1/transcript/1", "/runs/1", "/stats", "/add"];

/// One task with a question, one that is done and one that waits.
fn sample_project() -> TestProject {
    let project = asking(3);
    for task in 1..=2 {
        release_agent(&project, task);
    }
    project.run(&["work", "1", "2"]);
    project.run(&["answer", "2", "continue"]);
    project.run(&["work", "2"]);
    project
}

#[expect(clippy::disallowed_methods, reason = "set by the script that runs these tests")]
fn axe() -> String {
    let path = std::env::var_os("SIGNOFF_TEST_AXE").expect("axe-core: run these tests with scripts/browser");
    fs::read_to_string(path).expect("axe-core")
}

fn assert_accessible(served: &ServeProcess, browser: &Browser, (project, window): (&TestProject, &str)) {
    let axe = axe();
    // A served report runs no scripts, and so no axe: check the exported file instead.
    let report = project.env.root().join("report.html");
    let file = report.display().to_string();
    assert_eq!(project.run(&["report", "1", "--format", "html", "--output", &file]).code, Some(0));
    let pages = PAGES.map(|path| address(served, path)).into_iter().chain([format!("file://{file}")]);
    for path in pages {
        browser.open(&path);
        browser.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })");
        let broken = browser.axe(&axe);
        assert!(broken.is_empty(), "{path} {window}:\n{}", broken.join("\n"));
        let wide = "return document.documentElement.scrollWidth - document.documentElement.clientWidth";
        assert_eq!(browser.run(wide), 0, "{path} {window} is wider than the window");
    }
}

#[test]
#[ignore = "needs a browser: scripts/browser"]
fn axe_finds_no_serious_violation() {
    let project = sample_project();
    for (window, name) in [
        (BrowserWindow::DESKTOP, "on a desk"),
        (BrowserWindow::DESKTOP.dark(), "in the dark"),
        (BrowserWindow::PHONE, "on a phone"),
        (BrowserWindow { width: 320, ..BrowserWindow::PHONE }.dark(), "on a small phone in the dark"),
    ] {
        let (served, browser) = visit(&project, window);
        assert_accessible(&served, &browser, (&project, name));
    }
}

#[test]
#[ignore = "needs a browser: scripts/browser"]
fn a_question_is_answered_with_the_keyboard_alone() {
    let project = sample_project();
    let (_served, browser) = visit(&project, BrowserWindow::DESKTOP);
    let active_text = "return document.activeElement.innerText || document.activeElement.tagName";
    let reached = (0..60).find(|_| {
        browser.press(Key::Tab);
        browser.run(active_text) == "Stop"
    });
    assert!(reached.is_some(), "Tab comes to the answers");
    let outline = "return getComputedStyle(document.activeElement).outlineStyle";
    assert_ne!(browser.run(outline), "none", "one sees where one is");
    browser.press(Key::Enter);
    browser.wait_until("document.body.textContent.includes('MAX_CYCLES_REACHED')");
    assert_eq!(super::status(&project, 1), "\"completed\" \"MAX_CYCLES_REACHED\"");
}
