//! `signoff report`: one document about a task or a run, in each of its forms.

mod laws;

use signoff_core::ids::LoopId;
use signoff_core::ledger::{DecidedBy, Decision, State};
use signoff_core::machine::{Event, Failure, FinalWord};
use signoff_core::review::Severity::{Critical, Important, Minor};
use signoff_core::view::{RunRow, Status, TaskRow};
use signoff_term::report::{
    About, Account, Changes, Part, RunAccount, TaskAccount, html, junit, markdown, sarif,
};
use signoff_term::show::{Folded, Report};

use crate::rows::{ended, row};
use crate::show::approved;
use crate::story::{Story, finding, id, reviewed};

const STAT: &str = " src/auth.rs  | 12 ++++++++++--\n src/login.rs |  3 +++\n 2 files changed, 13 insertions(+), 2 deletions(-)\n";

fn of(report: Report, asked: &str, changes: Changes) -> Account {
    let id = report.task.id;
    let task = TaskAccount::of(report, asked.to_owned(), changes, false);
    Account::of(About::task(id), "2026-01-29T11:00:00Z".to_owned(), None, (Vec::new(), vec![task]))
}

/// A task that was approved, with everything that can be told of it.
pub fn told() -> Account {
    of(approved(), "Add user authentication\n\nWith a form, and OAuth.", Changes::of(STAT))
}

/// A run of which one task is through, one failed, and one was never started.
pub fn halfway() -> Account {
    let groups: &[&[(u64, &str)]] = &[&[(29, "Add login"), (30, "Add logout")], &[(31, "Add tests")]];
    let open = [(Critical, "src/a.rs:3", "the session stays open"), (Minor, "src/a.rs:9", "a typo")];
    let story = Story::of(reviewed("plan")).plan(groups).starts(29).works().approves("spec").approves("code");
    let story = story.starts(30).works().objects("spec", &open).mumbles("code");
    let verdict = FinalWord::ChangesRequested;
    let edited =
        Event::PersonEdited { verdict, by: "ann".into(), reason: "not like this".into(), head: None };
    let story = story.then(edited);
    let folded = Folded::of(&story.log);
    let rows = [
        ended(row(29, "Add login", Status::Completed), "approved", "APPROVED", "", 1),
        ended(row(30, "Add logout", Status::Failed), "failed", "CHANGES_REQUESTED", "reviewer_failed", 1),
        TaskRow { base: None, worktree: None, started_at: None, ..row(31, "Add tests", Status::Pending) },
    ];
    let tasks = rows.map(|row| {
        let changes = match row.id {
            29 => Changes::of(STAT),
            30 => Changes::unknown(
                "the branch signoff/task-30 is gone, and git does not have its commits any more",
            ),
            _ => Changes::unknown("nothing was changed: it was never started"),
        };
        let (loop_id, asked) = (id(row.id), row.title.clone());
        TaskAccount::of(folded.report(row, &loop_id, Vec::new()), asked, changes, false)
    });
    let run = RunAccount::of(run(3, "running", "working"), &folded, 3, false);
    let parts = Part::all(&folded, None);
    Account::of(About::run(3), "2026-01-29T11:00:00Z".to_owned(), Some(run), (parts, tasks.into()))
}

fn run(id: u64, status: &str, stage: &str) -> RunRow {
    RunRow {
        id,
        preset: "plan".to_owned(),
        specification: Some("docs/plan.md".to_owned()),
        status: status.to_owned(),
        stage: stage.to_owned(),
        group: None,
        groups: None,
        branch: Some(format!("signoff/run-{id}")),
        cost_usd: 0.6,
        cost_is_estimated: false,
    }
}

#[test]
fn an_approved_task_for_a_pull_request() {
    insta::assert_snapshot!(markdown::markdown(&told()), @"");
}

#[test]
fn a_run_that_stopped_halfway_for_a_pull_request() {
    insta::assert_snapshot!(markdown::markdown(&halfway()), @"");
}

#[test]
fn a_run_that_stopped_halfway_for_continuous_integration() {
    insta::assert_snapshot!(junit::junit(&halfway()), @"");
}

#[test]
fn an_approved_task_for_continuous_integration() {
    insta::assert_snapshot!(junit::junit(&told()), @"");
}

#[test]
fn an_approved_task_for_code_scanning() {
    let text = sarif::sarif(&told()).replace(env!("CARGO_PKG_VERSION"), "VERSION");
    insta::assert_snapshot!(text, @"");
}

#[test]
fn an_approved_task_as_json_without_what_show_tells() {
    let mut json: serde_json::Value = serde_json::from_str(&told().json()).unwrap();
    json["tasks"][0]["report"] = "what `show --json` prints".into();
    insta::assert_snapshot!(format!("{json:#}"), @"");
}

#[test]
fn a_page_needs_nothing_from_elsewhere_and_shows_text_as_text() {
    let mut report = approved();
    report.task.title = "<script>alert(1)</script>".into();
    let page = html::html(&of(report, "\"quoted\" & <b>bold</b>\x1b[31m", Changes::of(STAT)));
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;") && !page.contains("<script"), "{page}");
    assert!(page.contains("&quot;quoted&quot; &amp; &lt;b&gt;bold&lt;/b&gt;␛[31m"), "{page}");
    assert!(!page.contains("http://") && !page.contains("https://") && !page.contains("src="), "{page}");
    for word in
        ["missing input validation", "there is a lock", "changes requested", "2 files changed", "$0.84"]
    {
        assert!(page.contains(word), "{word}\n{page}");
    }
}

#[test]
fn every_state_of_a_finding_has_its_place() {
    let all = ["one", "two", "three", "four", "five"].map(|text| (Important, "a.rs:1", text));
    let mut story = Story::task(reviewed("task")).works().objects("general", &all);
    for (text, state) in [("one", State::Refuted), ("two", State::Deferred), ("three", State::OutOfScope)] {
        let by = DecidedBy::Person("ann".into());
        let decision = Decision { state, by, commit: None, evidence: format!("{text} is so") };
        let finding = finding("general", Important, "a.rs:1", text).id;
        story = story.then(Event::FindingDecided { finding, decision });
    }
    let decision = Decision {
        state: State::Fixed,
        by: DecidedBy::Check("test".into()),
        commit: None,
        evidence: "it passes".into(),
    };
    let story = story.then(Event::FindingDecided {
        finding: finding("general", Important, "a.rs:1", "four").id,
        decision,
    });
    let row = row(29, "Add user authentication", Status::InProgress);
    let account = of(Report::of(row, &story.log, &id(29), Vec::new()), "It", Changes::of(STAT));
    let counts = account.totals.findings;
    assert_eq!((counts.refuted, counts.deferred, counts.out_of_scope, counts.fixed), (1, 1, 1, 1));
    assert_eq!((counts.open, counts.blocking), (1, 1));
    let sarif: serde_json::Value = serde_json::from_str(&sarif::sarif(&account)).unwrap();
    let mut told: Vec<String> = sarif["runs"][0]["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|result| {
            let said = result["suppressions"][0]["justification"].as_str().unwrap_or("-");
            format!("{} {} {} {said}", result["message"]["text"], result["baselineState"], result["level"])
        })
        .collect();
    told.sort();
    insta::assert_snapshot!(told.join("\n"), @"");
    let xml = junit::junit(&account);
    let xml = roxmltree::Document::parse(&xml).unwrap();
    let counted = xml.root_element();
    let number = |name: &str| counted.attribute(name).unwrap().parse::<usize>().unwrap();
    assert_eq!(
        (number("failures"), number("skipped"), number("errors")),
        (1, 4, 0),
        "the end is skipped too"
    );
}

#[test]
fn a_task_says_plainly_how_it_stands() {
    let told: Vec<String> = crate::rows::all()
        .into_iter()
        .chain([TaskRow { run_id: None, ..row(50, "Never", Status::Pending) }])
        .map(|row| {
            let standing = signoff_term::report::of_task(&row, row.id == 31);
            format!("{} {}", standing.mark(), standing.text)
        })
        .collect();
    insta::assert_snapshot!(told.join("\n"), @"");
}

#[test]
fn a_run_without_tasks_is_told_in_every_form() {
    let story = Story::of(reviewed("plan"));
    let folded = Folded::of(&story.log);
    let failed = RunRow { groups: Some(0), ..run(3, "failed", "done") };
    let run = RunAccount::of(failed, &folded, 0, false);
    let account = Account::of(About::run(3), String::new(), Some(run), (Vec::new(), Vec::new()));
    for text in [
        markdown::markdown(&account),
        html::html(&account),
        junit::junit(&account),
        sarif::sarif(&account),
        account.json(),
    ] {
        assert!(text.contains("Failed in planning"), "{text}");
    }
}

#[test]
fn looks_and_planning_are_told_with_the_run() {
    let part = reviewed("loops");
    let story = Story::of(reviewed("loops")).serves(LoopId::planning(), part).writer_fails(Failure::TimedOut);
    let parts = Part::all(&Folded::of(&story.log), None);
    let told: Vec<_> = parts.iter().map(|part| (part.name.as_str(), part.attempts.len())).collect();
    assert_eq!(told, [("Planning", 2)], "the first attempt and the one after it");
}
