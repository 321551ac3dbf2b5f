//! The screenshots of the documentation. `scripts/browser pictures` takes them again.

use std::fs;
use std::path::Path;

use signoff_testkit::TestProject;
use signoff_testkit::agent_script::ScriptRule;
use signoff_testkit::browser::BrowserWindow;

use super::{address, visit};
use crate::PROGRAM;

/// A project whose tasks are in all kinds of states.
fn shop() -> TestProject {
    let finding = "- [Critical] cart.rs:2 the sum is not rounded to whole cents\n\
                   - [Important] cart.rs:1 a negative count is taken\n\n**Verdict: CHANGES_REQUESTED**\n";
    let code = "fn total(price: f64, count: i64) -> f64 {\n    price * count as f64\n}\n";
    let project = TestProject::with_agent(PROGRAM, |script| {
        script
            .rule(ScriptRule::role("implement").write("cart.rs", code).say("The sum is there.\n"))
            .rule(ScriptRule::role("fix").append("cart.rs", "// rounded to whole cents\n").say("It is rounded.\n"))
            .rule(ScriptRule::role("review").task("1").cycle(1).say(finding))
            .rule(ScriptRule::role("review").task("2").say(finding))
            .rule(ScriptRule::role("review").say("**Verdict: APPROVED**\n"))
    });
    project.configure("jobs = 1\n[gate]\nmax_cycles = 2\non_exhausted = \"ask\"\n");
    for title in ["Sum up the cart", "Take vouchers", "Show the sum", "Free shipping above 50"] {
        project.run(&["add", title, "-a"]);
    }
    project.run(&["work", "1", "2", "3"]);
    project
}

#[expect(clippy::disallowed_methods, reason = "set by the person who runs the test")]
fn are_requested() -> bool {
    std::env::var_os("UPDATE_PICTURES").is_some()
}

#[test]
#[ignore = "needs a browser: scripts/browser"]
fn pictures_of_the_page() {
    let project = shop();
    let images = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/src/images");
    for (name, path, window) in [
        ("page-overview", "/", BrowserWindow { height: 760, ..BrowserWindow::DESKTOP }),
        ("page-task", "/tasks/1", BrowserWindow { height: 1100, ..BrowserWindow::DESKTOP }),
        ("page-dark", "/tasks/1/diff", BrowserWindow { height: 760, ..BrowserWindow::DESKTOP }.dark()),
        ("page-phone", "/", BrowserWindow::PHONE),
    ] {
        let (served, browser) = visit(&project, window);
        browser.open(&address(&served, path));
        let picture = browser.screenshot();
        assert!(picture.starts_with(b"\x89PNG") && picture.len() > 5000, "{name}: {} bytes", picture.len());
        let file = images.join(format!("{name}.png"));
        if are_requested() {
            fs::create_dir_all(&images).expect("a directory");
            fs::write(&file, picture).expect("a written file");
        }
        assert!(file.is_file(), "{}: `scripts/browser pictures` takes it", file.display());
    }
}
