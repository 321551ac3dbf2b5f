//! Text of agents and repositories is shown as text, never interpreted.

use signoff_testkit::TestProject;
use signoff_testkit::agent_script::ScriptRule;
use signoff_testkit::browser::BrowserWindow;

use super::{address, visit};
use crate::PROGRAM;

/// Markup and scripts that would have an effect if the page interpreted them.
const HOSTILE: &str = "<script>window.owned = 1</script><img src=x onerror=\"window.owned = 1\">\
                       <svg onload=\"window.owned = 1\"></svg></textarea></title></style><style>*{display:none}</style>\
                       \u{1b}[31mred\u{1b}[0m \u{202e}desrever\u{202c} <a href=\"javascript:window.owned = 1\">x</a>";

#[test]
#[ignore = "needs a browser: scripts/browser"]
fn agents_text_is_shown_as_text() {
    let finding = format!("- [Critical] auth.txt:1 {HOSTILE}\n\n**Verdict: CHANGES_REQUESTED**\n");
    let project = TestProject::with_agent(PROGRAM, |script| {
        script
            .rule(ScriptRule::role("implement").write("auth.txt", &format!("{HOSTILE}\n")).say(&format!("{HOSTILE}\n")))
            .rule(ScriptRule::role("review").say(&finding))
    });
    project.run(&["add", HOSTILE, "-a", "--max-cycles", "1"]);
    project.run(&["work"]);
    let (served, browser) = visit(&project, BrowserWindow::DESKTOP);
    for path in
        ["/?all=1", "/tasks/1", "/tasks/1/diff", "/tasks/1/transcript/1", "/runs/1", "/stats", "/tasks/1/report.html"]
    {
        browser.open(&address(&served, path));
        browser.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })");
        assert_eq!(browser.run("return window.owned ?? null"), serde_json::Value::Null, "{path}");
        let strange = "return [...document.querySelectorAll('main script, main img, main style, [onload], [onerror], \
                       a[href^=javascript]')].map((one) => one.outerHTML)";
        assert_eq!(browser.run(strange), serde_json::json!([]), "{path}");
        let text = browser.run("return document.body.textContent");
        let text = text.as_str().unwrap_or_default();
        assert!(!text.contains(['\u{1b}', '\u{202e}']), "{path}: {text}");
        if path != "/stats" && path != "/runs/1" {
            assert!(text.contains("<script>window.owned = 1</script>"), "{path}: {text}");
        }
    }
}

#[test]
#[ignore = "needs a browser: scripts/browser"]
fn no_page_violates_its_content_security_policy() {
    let project = super::asking(1);
    let (served, browser) = visit(&project, BrowserWindow::DESKTOP);
    for path in ["/", "/tasks/1", "/add", "/stats"] {
        browser.open(&address(&served, path));
        // Violations raise an event; requests before the listener are in the browser's list of resources.
        let loaded_urls = "return performance.getEntriesByType('resource').map((one) => one.name)\
                         .filter((name) => !name.startsWith(location.origin))";
        assert_eq!(browser.run(loaded_urls), serde_json::json!([]), "{path}");
        let tried = browser.run_until_called(
            "const done = arguments[0]; document.addEventListener('securitypolicyviolation', (event) => \
             done(event.violatedDirective)); const script = document.createElement('script'); \
             script.textContent = 'window.owned = 1'; document.body.append(script);",
            vec![],
        );
        assert!(tried.as_str().is_some_and(|text| text.starts_with("script-src")), "{path}: {tried}");
        assert_eq!(browser.run("return window.owned ?? null"), serde_json::Value::Null, "{path}");
    }
}
