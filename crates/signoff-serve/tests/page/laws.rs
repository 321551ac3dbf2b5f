//! Properties of every page, whatever its content.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use proptest::prelude::*;
use signoff_core::view::TaskStatus;
use signoff_core::view::inbox::{Action, NextStep};
use signoff_serve::page::{self, HomePage, NoticeKind, PageNotice, TaskPage, TypedFields};
use signoff_term::show::LedgerLine;

use crate::page::dom::{all, faults, parse, skeleton, words};
use crate::page::sample;

/// Renders every page, with one text in every field that agents, users or the repository fill.
fn pages(text: &str) -> Vec<(&'static str, String)> {
    let task = task(text);
    let (mut home, mut run) = (sample::home(), sample::run_page());
    home.project = text.to_owned();
    for row in home.tasks.iter_mut().chain(&mut run.tasks) {
        row.title = text.to_owned();
        row.branch = Some(text.to_owned());
        row.phase = Some(text.to_owned());
    }
    home.runs.iter_mut().for_each(|run| run.specification = Some(text.to_owned()));
    run.run.specification = Some(text.to_owned());
    for question in home.questions.iter_mut().chain(&mut run.questions) {
        question.text = text.to_owned();
        question.choices.iter_mut().for_each(|choice| *choice = text.to_owned() + "x");
    }
    let mut stats = sample::stats();
    stats.reviewers.iter_mut().for_each(|reviewer| reviewer.reviewer = text.to_owned());
    stats.roles.iter_mut().for_each(|role| role.role = text.to_owned());
    let mut transcript = sample::transcript();
    transcript.transcript.tail = format!("x{text}");
    transcript.title = format!("x{text}");
    let mut add = sample::add();
    (add.text, add.depends_on, add.max_cycles) = (text.to_owned(), text.to_owned(), text.to_owned());
    let typed = TypedFields { action: "/tasks/29/edit".to_owned(), verdict: text.to_owned(), reason: text.to_owned() };
    let (kind, hint) = (NoticeKind::Refused, Some(text.to_owned()));
    let notice = PageNotice { kind, message: text.to_owned(), hint, typed: Some(typed) };
    vec![
        ("home", page::home(&home, Some(&notice))),
        ("run", page::run(&run, Some(&notice))),
        ("task", page::task(&task, Some(&notice))),
        ("diff", page::diff(&task)),
        ("transcript", page::transcript(&transcript)),
        ("stats", page::stats("shop", &stats)),
        ("add", page::add(&add, Some(&notice))),
        ("error", page::error_page(404, text, Some(text))),
        ("report", page::report_file(&sample::report_head(), vec![task.clone(), task])),
    ]
}

fn task(text: &str) -> TaskPage {
    let mut page = sample::task();
    let report = &mut page.report;
    report.task.title = format!("x{text}");
    report.task.branch = Some(text.to_owned());
    report.ledger.iter_mut().for_each(|line| fill(line, text));
    for cycle in &mut report.cycles {
        cycle.phase = text.to_owned();
        for review in &mut cycle.reviews {
            review.reviewer = text.to_owned();
            review.summary = format!("x{text}");
            review.interpreted_intent = Some(text.to_owned());
            review.checked = vec![text.to_owned()];
            review.reason = Some(text.to_owned());
            review.findings.iter_mut().for_each(|found| found.description = text.to_owned());
        }
    }
    for attempt in &mut report.attempts {
        (attempt.agent, attempt.detail) = (text.to_owned(), Some(text.to_owned()));
        attempt.notes = vec![text.to_owned()];
    }
    report.decisions.iter_mut().for_each(|decision| decision.reason = Some(text.to_owned()));
    report.artifacts = vec![text.to_owned()];
    report.voided = Some(text.to_owned());
    page.spec = format!("x{text}");
    page.next = NextStep::Do(Action::GitMerge { branch: Some(format!("x{text}")) });
    let line = text.replace(['\n', '\r'], " ");
    let patch = page.diff.as_ref().map(|diff| diff.patch.replace("let hash = Hash::of(password);", &line));
    page.diff.iter_mut().zip(patch).for_each(|(diff, patch)| diff.patch = patch);
    page.transcripts.iter_mut().for_each(|transcript| transcript.tail = format!("x{text}"));
    page
}

fn fill(line: &mut LedgerLine, text: &str) {
    line.finding.description = text.to_owned();
    line.finding.kind = format!("x{text}");
    line.finding.suggestion = Some(format!("x{text}"));
    line.finding.sources = vec![text.to_owned()];
    line.decisions.iter_mut().for_each(|settled| settled.evidence = format!("x{text}"));
}

/// Generates text that tries to be interpreted as markup.
fn hostile() -> impl Strategy<Value = String> {
    let bits = [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "\" onmouseover=\"x",
        "' style='x",
        "</textarea>",
        "</title><h1>",
        "-->",
        "]]>",
        "</svg>",
        "</style>",
        "&lt;b&gt;",
        "&#60;",
        "\u{1b}[31m",
        "\u{9b}2J",
        "\u{202e}evil",
        "\u{2066}",
        "\0",
        "javascript:alert(1)",
        "\r\n",
        "%0d",
        "a",
        " ",
        "ä漢",
    ];
    let bit = prop_oneof![prop::sample::select(bits.to_vec()).prop_map(str::to_owned), "\\PC{0,4}"];
    prop::collection::vec(bit, 1..6).prop_map(|bits| format!("z{}z", bits.concat()))
}

/// The elements of the pages with harmless text.
static PLAIN: LazyLock<Vec<Vec<String>>> =
    LazyLock::new(|| pages("z").iter().map(|(_, html)| skeleton(&parse(html))).collect());

/// Returns whether a character controls a terminal or changes the text direction.
fn is_control(c: char) -> bool {
    let control = matches!(c, '\0'..='\x08' | '\x0b'..='\x1f' | '\x7f'..='\u{9f}');
    control || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn hostile_text_adds_no_elements(text in hostile()) {
        for ((name, html), plain) in pages(&text).into_iter().zip(&*PLAIN) {
            let page = parse(&html);
            prop_assert_eq!(&skeleton(&page), plain, "{} has other elements", name);
            // A form field repeats the typed text unchanged.
            let shown: String = page.root_element().text().collect();
            prop_assert!(name == "add" || !shown.contains(is_control), "{}: {:?}", name, shown.chars().find(|c| is_control(*c)));
        }
    }

    #[test]
    fn any_patch_renders_without_faults(patch in "(diff --git a/x b/x\n|@@ -1,2 \\+1,3 @@\n|--- a/x\n|\\+\\+\\+ b/y\n|[-+ \\\\]{0,2}[a-z\"]{0,5}\n|\"\\\\30){0,12}") {
        let mut task = sample::task();
        task.diff.iter_mut().for_each(|diff| diff.patch.clone_from(&patch));
        prop_assert_eq!(faults(&parse(&page::diff(&task))), Vec::<String>::new());
    }

    #[test]
    fn any_finding_id_renders_without_faults(ids in prop::collection::hash_set("(f-[0-9a-f]{1,2}|[ -~]{0,6}|\\PC{0,3})", 4)) {
        let mut task = sample::task();
        let ids: Vec<String> = ids.into_iter().collect();
        task.report.ledger.iter_mut().zip(ids).for_each(|(line, id)| line.finding.id = id);
        prop_assert_eq!(faults(&parse(&page::task(&task, None))), Vec::<String>::new());
    }

    #[test]
    fn forms_redirect_only_to_own_pages(asked in "(/|//|https?:|tasks/|runs/|[0-9]{1,3}|[a-z.@\\\\]){0,5}") {
        let path = page::return_path(&asked);
        let number = |page: &str| path.strip_prefix(page).is_some_and(|id| id.parse::<u64>().is_ok());
        prop_assert!(path == "/" || number("/tasks/") || number("/runs/"), "{}", path);
    }
}

#[test]
fn every_page_follows_its_policy_and_is_accessible() {
    for (name, html) in pages("z") {
        let page = parse(&html);
        assert_eq!(faults(&page), Vec::<String>::new(), "{name}");
        assert_eq!(all(&page, "html[lang=en]").len(), 1, "{name}");
        assert_eq!(all(&page, "main").len(), 1, "{name}");
        assert!(!words(all(&page, "title")[0]).is_empty(), "{name}");
        assert_eq!(all(&page, "style").len(), usize::from(name == "report"), "{name}");
        assert!(page.errors.is_empty(), "{name}: {:?}", page.errors);
    }
}

#[test]
fn live_parts_have_ids() {
    for (name, html) in pages("z") {
        let page = parse(&html);
        assert!(all(&page, "[data-live]:not([id])").is_empty(), "{name}");
        assert!(all(&page, "[data-live] [data-live]").is_empty(), "{name}");
        assert!(all(&page, "[data-live] details:not([id])").is_empty(), "{name}");
    }
}

#[test]
fn every_link_into_the_diff_has_a_target() {
    let sizes = [[30_000, 3, 3], [3, 30_000, 3], [3, 3, 30_000], [19_999, 3, 1], [30_000, 30_000, 30_000]];
    for sizes in sizes {
        let file = |(path, lines): (&str, usize)| {
            let head = format!("diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n");
            format!("{head}@@ -0,0 +1,{lines} @@\n{}", "+line\n".repeat(lines))
        };
        let patch: String = ["src/auth.rs", "other", "src/mail.rs"].into_iter().zip(sizes).map(file).collect();
        let mut task = sample::task();
        task.diff.iter_mut().for_each(|diff| diff.patch.clone_from(&patch));
        let (page, diff) = (parse(&page::task(&task, None)), parse(&page::diff(&task)));
        let links = all(&page, "a[href*='/diff#']");
        assert_eq!(links.len(), 3, "{sizes:?}");
        for link in links {
            let (_, id) = link.value().attr("href").and_then(|way| way.split_once('#')).expect("a place");
            assert_eq!(all(&diff, &format!("[id='{id}']")).len(), 1, "{sizes:?}: {id}");
        }
    }
}

#[test]
fn a_report_is_self_contained() {
    let html = page::report_file(&sample::report_head(), vec![sample::task(), sample::task()]);
    let page = parse(&html);
    assert!(all(&page, "script, form, link, [src], a:not([href^='#'])").is_empty());
    assert!(!html.contains("url("));
    assert!(!html.contains("Running cargo test"), "what agents said is not for others");
}

#[test]
fn a_page_with_a_thousand_tasks_stays_small() {
    let home = sample::home_with_tasks(1000);
    let html = page::home(&home, None);
    assert!(html.len() < 200_000, "{} bytes", html.len());
    let page = parse(&html);
    assert_eq!(all(&page, "#done .row").len(), 200);
    assert_eq!(words(all(&page, "#done p a")[0]), "Show 679 more");
    let every = parse(&page::home(&HomePage { all: true, ..home }, None));
    assert_eq!(all(&every, "#done .row").len(), 879);
}

#[test]
fn no_task_is_lost_on_the_overview() {
    for driven in [BTreeSet::new(), BTreeSet::from([3])] {
        let rows = (1..).zip(TaskStatus::ALL).map(|(id, status)| sample::row(id, "Some task", *status));
        let home = HomePage { tasks: rows.collect(), questions: Vec::new(), driven, ..sample::home() };
        let page = parse(&page::home(&home, None));
        for task in &home.tasks {
            let listed = all(&page, &format!(".row > a[href='/tasks/{}']", task.id)).len();
            assert_eq!(listed, 1, "{}", task.status.into_str());
        }
    }
}

#[test]
fn referenced_assets_exist() {
    for (name, html) in pages("z").into_iter().filter(|(name, _)| *name != "report") {
        let page = parse(&html);
        let named = all(&page, "link[href], script[src]");
        let named = named.iter().filter_map(|element| element.value().attr("href").or(element.value().attr("src")));
        for path in named {
            let asset = path.strip_prefix("/assets/").and_then(page::asset);
            assert!(asset.is_some_and(|asset| !asset.text.is_empty()), "{name}: {path}");
        }
    }
}

/// Returns the ids of all `details` elements.
fn details_ids(html: &str) -> BTreeSet<String> {
    let page = parse(html);
    all(&page, "details[id]").iter().filter_map(|element| element.value().id().map(str::to_owned)).collect()
}

#[test]
fn ids_of_details_stay_the_same_when_lists_grow() {
    let mut task = sample::task();
    task.report.ledger.iter_mut().for_each(|line| line.finding.id = format!("from elsewhere {}", line.finding.id));
    task.report.ledger.iter_mut().for_each(|line| line.finding.description = "long ".repeat(600));
    task.spec = "long ".repeat(600);
    let before = details_ids(&page::task(&task, None));
    assert!(before.iter().filter(|id| id.ends_with("-all")).count() > 4, "{before:?}");
    // Add one more entry at the start of each list.
    task.report.ledger.insert(0, sample::ledger().remove(0));
    task.transcripts.insert(0, page::TranscriptTail { attempt: "a99".into(), ..task.transcripts[0].clone() });
    let more = "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-x\n+y\n";
    task.diff.iter_mut().for_each(|diff| diff.patch.insert_str(0, more));
    let after = details_ids(&page::task(&task, None));
    assert_eq!(before.difference(&after).collect::<Vec<_>>(), Vec::<&String>::new());
    assert!(after.len() >= before.len() + 3, "{after:?}");
}

#[test]
fn chart_legends_do_not_overlap() {
    for (html, entries) in [(page::task(&sample::task(), None), 3), (page::stats("shop", &sample::stats()), 5)] {
        let page = parse(&html);
        let number = |element: &scraper::ElementRef| element.value().attr("x").and_then(|x| x.parse::<f64>().ok());
        let mut seen = 0;
        for word in all(&page, "rect + text.key") {
            let end = number(&word).expect("a place") + 6.7 * words(word).chars().count() as f64;
            let next = word.next_siblings().find_map(scraper::ElementRef::wrap);
            assert!(next.as_ref().and_then(number).unwrap_or(360.0) > end, "{}", words(word));
            seen += 1;
        }
        assert_eq!(seen, entries);
    }
}

#[test]
fn wide_tables_scroll_on_their_own() {
    for (name, html) in pages("z") {
        let page = parse(&html);
        let tables = all(&page, "table.figures").len();
        assert_eq!(all(&page, ".scroll[tabindex='0'] > table.figures").len(), tables, "{name}");
    }
}
