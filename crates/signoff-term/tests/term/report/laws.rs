//! Property tests of reports with hostile text from agents.

use proptest::prelude::*;
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use serde_json::{Value, json};
use signoff_core::review::Review;
use signoff_core::review::Severity::Critical;
use signoff_core::review::Verdict::ChangesRequested;
use signoff_core::view::TaskStatus;
use signoff_term::report::markdown::{LIMIT, markdown, page as escape};
use signoff_term::report::{Changes, ReportDocument, junit, sarif};

use super::{STAT, approved_document, mixed_run, task_document};
use crate::fits::{fits, schema};
use crate::rows::{ended, row};
use crate::story::{Story, id, review, reviewed, task_report};

/// Hostile text: syntax of Markdown, GitHub, HTML and XML, and arbitrary characters.
fn hostile() -> impl Strategy<Value = String> {
    let odd = [
        "<script>alert(1)</script>",
        "</details>",
        "![x](http://evil/x.png)",
        "@ann",
        "#12",
        "GH-12",
        "o/r#3",
        "https://github.com/o/r/issues/1",
        "www.evil.com",
        "# Heading",
        "---",
        "===",
        "```",
        "~~~",
        "|",
        "]]>",
        "&amp;",
        "<!--",
        "-->",
        "<img src=x onerror=y>",
        "\n",
        "\n\n",
        "    code",
        "- item",
        "1. one",
        "1)",
        "> quote",
        "[a]: http://b",
        "[^1]",
        "$x$",
        "**b**",
        "__u__",
        "`c`",
        "\\",
        "\u{0}",
        "\u{1b}[31m",
        "\u{202e}",
        "\u{ffff}",
        "\u{fffe}",
        "\r",
        "\t",
        "é漢😀",
        " ",
        "a",
        "\u{200b}",
        ":tada:",
        "mailto:a@b.c",
        "/merge",
        "\n/close",
        "<b",
        "{x}",
        "+",
        "*",
        "_",
        "!",
    ];
    let part = prop_oneof![proptest::sample::select(odd.to_vec()).prop_map(str::to_owned), any::<String>()];
    proptest::collection::vec(part, 0..12).prop_map(|parts| parts.concat())
}

/// A report in which every text is this one.
fn report_with_text(text: &str) -> ReportDocument {
    let found = Review {
        summary: text.to_owned(),
        ..review("general", ChangesRequested, &[(Critical, "", text), (Critical, "b.rs:1", "second")])
    };
    let mut found = found;
    for finding in &mut found.findings {
        finding.kind = text.to_owned();
        finding.requirement = Some(text.to_owned());
        finding.suggestion = Some(text.to_owned());
        finding.file = Some(text.to_owned()).filter(|text| !text.is_empty());
    }
    let story = Story::task(reviewed("task")).works().answers("general", found);
    let story = story
        .works()
        .reviewer_fails("general", signoff_core::machine::AttemptFailure::NotStarted { message: text.into() });
    let row = ended(row(29, text, TaskStatus::Failed), "failed", "", "reviewer_failed", 1);
    let mut report = task_report(row, story.log.clone(), &id(29), Vec::new());
    report.attempts.iter_mut().for_each(|attempt| attempt.agent = text.to_owned());
    task_document(report, text, Changes::parse_stat(STAT).with_note(text))
}

fn parsed(text: &str) -> Vec<Event<'_>> {
    Parser::new_ext(text, Options::all()).collect()
}

/// The rendered text without zero-width spaces. The disabled options only change quotes and dots.
fn rendered_text(text: &str) -> String {
    let text = text.replace('\u{200b}', "").replace(['“', '”'], "\"").replace(['‘', '’'], "'");
    text.replace('…', "...").replace("—", "---").replace('–', "--").trim().to_owned()
}

/// The text of a line, which must consist of text and code only.
fn shown(line: &str) -> Result<String, TestCaseError> {
    text_of(parsed(line).into_iter())
}

fn text_of<'a>(events: impl Iterator<Item = Event<'a>>) -> Result<String, TestCaseError> {
    let mut shown = String::new();
    for event in events {
        let is_start = matches!(event, Event::Start(Tag::Paragraph | Tag::TableRow | Tag::TableCell));
        let is_plain = is_start || matches!(event, Event::End(_) | Event::Text(_) | Event::Code(_));
        prop_assert!(is_plain, "{event:?}");
        if let Event::Text(text) | Event::Code(text) = event {
            shown.push_str(&text);
        }
    }
    Ok(shown)
}

/// The page without its code, in which links and mentions do not work.
fn outside_code(page: &str) -> String {
    let mut left = page.to_owned();
    let mut is_block = false;
    for (event, range) in Parser::new_ext(page, Options::all()).into_offset_iter() {
        let begins = matches!(event, Event::Start(Tag::CodeBlock(_)));
        is_block = begins || (is_block && !matches!(event, Event::End(TagEnd::CodeBlock)));
        if matches!(event, Event::Code(_)) || (is_block && matches!(event, Event::Text(_))) {
            let blank: String =
                page[range.clone()].bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' }).collect();
            left.replace_range(range, &blank);
        }
    }
    left
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn a_line_of_an_agent_is_shown_as_it_is(text in hostile()) {
        let plain = signoff_core::merge::render::plain_text::one_line(&text);
        let line = escape::line(&text, usize::MAX);
        prop_assert_eq!(rendered_text(&shown(&line)?), rendered_text(&plain));
        // The source has the same text, at most between backticks.
        prop_assert!(line.contains(plain.trim()), "{line:?} has not {plain:?}");
        let table = format!("| a |\n|---|\n| {} |\n", escape::cell(&text, usize::MAX));
        let cell = parsed(&table).into_iter().skip_while(|event| !matches!(event, Event::End(TagEnd::TableHead)));
        prop_assert_eq!(rendered_text(&text_of(cell)?), rendered_text(&plain), "{}", table);
    }

    #[test]
    fn paragraphs_of_an_agent_are_shown_as_they_are(text in hostile()) {
        let visible = signoff_core::merge::render::plain_text::visible(&text);
        let shown = escape::paragraphs(&text, usize::MAX, "");
        let kept = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let kept_source = kept(&shown);
        prop_assert!(kept_source.contains(&kept(&visible)), "{shown:?} has not {visible:?}");
    }

    #[test]
    fn there_are_no_mentions_and_no_links(text in hostile()) {
        let markdown = outside_code(&markdown(&report_with_text(&text)));
        let chars: Vec<char> = markdown.chars().collect();
        for pair in chars.windows(2) {
            prop_assert!(!(pair[0] == '@' && pair[1].is_alphanumeric()), "{markdown}");
            prop_assert!(!(pair[0] == '#' && pair[1].is_ascii_digit()), "{markdown}");
        }
        // GitLab runs a line that starts with a slash as a command.
        prop_assert!(!markdown.lines().any(|line| line.trim_start().starts_with('/')), "{markdown}");
        prop_assert!(!markdown.contains("://") && !markdown.to_lowercase().contains("www."), "{markdown}");
    }

    #[test]
    fn all_html_and_all_headings_are_ours(text in hostile()) {
        let markdown = markdown(&report_with_text(&text));
        let mut headings = 0;
        for event in parsed(&markdown) {
            if let Event::Html(html) | Event::InlineHtml(html) = &event {
                prop_assert!(is_ours(html), "{html:?} in {markdown}");
            }
            if let Event::Start(tag) = &event {
                let (is_image, is_link) = (matches!(tag, Tag::Image { .. }), matches!(tag, Tag::Link { .. }));
                let is_other = matches!(tag, Tag::FootnoteDefinition(_) | Tag::BlockQuote(_));
                prop_assert!(!is_image && !is_link && !is_other, "{event:?} in {markdown}");
                headings += usize::from(matches!(tag, Tag::Heading { .. }));
            }
        }
        prop_assert_eq!(headings, 1, "{}", markdown);
        let ours = outside_code(&markdown);
        prop_assert_eq!(ours.matches("<details>").count(), ours.matches("</details>").count());
    }

    #[test]
    fn xml_can_always_be_read_and_says_the_same(text in hostile()) {
        let xml = junit::junit(&report_with_text(&text));
        let read = roxmltree::Document::parse(&xml);
        prop_assert!(read.is_ok(), "{:?} in {xml}", read.err());
        let read = read.unwrap();
        prop_assert!(read.descendants().any(|node| node.has_tag_name("error")));
        prop_assert!(!xml.chars().any(|c| c.is_control() && c != '\n' && c != '\t'), "{xml:?}");
        let counted = |of: roxmltree::Node, name: &str| of.descendants().filter(|node| node.has_tag_name(name)).count();
        for suite in read.descendants().filter(|node| node.has_tag_name("testsuite")) {
            for (attribute, name) in [("tests", "testcase"), ("failures", "failure"), ("errors", "error"), ("skipped", "skipped")] {
                prop_assert_eq!(suite.attribute(attribute).map(str::to_owned), Some(counted(suite, name).to_string()));
            }
        }
    }

    #[test]
    fn json_and_sarif_can_always_be_read(text in hostile()) {
        let document = report_with_text(&text);
        let read: Value = serde_json::from_str(&document.json()).unwrap();
        prop_assert_eq!(&read, &json!(document));
        prop_assert_eq!(fits(&read, &schema("report")), Ok(()));
        let sarif: Value = serde_json::from_str(&sarif::sarif(&document)).unwrap();
        prop_assert_eq!(is_sarif(&sarif), Ok(()));
    }
}

proptest! {
    // Each case is large.
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn the_body_of_a_pull_request_is_never_too_long(text in hostile(), times in 1usize..1_500) {
        let markdown = markdown(&report_with_text(&text.repeat(times)));
        prop_assert!(markdown.len() <= LIMIT, "{}", markdown.len());
        prop_assert!(markdown.ends_with("<sub>Written by signoff.</sub>\n"));
    }
}

fn is_ours(html: &str) -> bool {
    html.split_inclusive('\n').all(|line| {
        let line = line.trim();
        let summary = line.strip_prefix("<details><summary>").and_then(|rest| rest.strip_suffix("</summary>"));
        summary.is_some_and(|text| !text.contains(['<', '>'])) || ["</details>", "<sub>", "</sub>", ""].contains(&line)
    })
}

/// Checks the rules of SARIF 2.1.0 that its schema cannot express, and the required keys.
fn is_sarif(sarif: &Value) -> Result<(), String> {
    let must = |holds: bool, what: &str| if holds { Ok(()) } else { Err(format!("{what}: {sarif:#}")) };
    must(sarif["version"] == "2.1.0", "version")?;
    for run in sarif["runs"].as_array().ok_or("no runs")? {
        let driver = &run["tool"]["driver"];
        must(driver["name"].is_string(), "a tool has a name")?;
        let rules: Vec<&Value> = driver["rules"].as_array().ok_or("no rules")?.iter().map(|rule| &rule["id"]).collect();
        must(run["automationDetails"]["id"].as_str().is_some_and(|id| id.ends_with('/')), "a category")?;
        must(run["invocations"][0]["executionSuccessful"].is_boolean(), "an invocation says how it went")?;
        for result in run["results"].as_array().ok_or("no results")? {
            must(rules.contains(&&result["ruleId"]), "a rule is described")?;
            must(result["message"]["text"].as_str().is_some_and(|text| !text.is_empty()), "a message has text")?;
            // Services list every result of any kind, so fixed findings must not be results.
            must(result["kind"].is_null(), "every result fails")?;
            must(["error", "warning", "note"].iter().any(|level| result["level"] == *level), "a level")?;
            must(["new", "unchanged"].iter().any(|state| result["baselineState"] == *state), "a state")?;
            must(result["properties"]["state"] != "fixed", "what was fixed is left out")?;
            // GitHub rejects the whole file if one result has no location.
            let places = result["locations"].as_array().filter(|places| !places.is_empty());
            for place in places.ok_or_else(|| format!("every result has a place: {result:#}"))? {
                let uri = place["physicalLocation"]["artifactLocation"]["uri"].as_str().unwrap_or_default();
                must(!uri.is_empty() && uri.bytes().all(|byte| byte.is_ascii_graphic()), "a place is a URI")?;
            }
        }
    }
    Ok(())
}

#[test]
fn sample_reports_are_valid_too() {
    for document in [approved_document(), mixed_run()] {
        assert_eq!(fits(&json!(document), &schema("report")), Ok(()));
        assert_eq!(is_sarif(&serde_json::from_str(&sarif::sarif(&document)).unwrap()), Ok(()));
        roxmltree::Document::parse(&junit::junit(&document)).unwrap();
    }
}

#[test]
fn omitted_items_are_counted() {
    let findings: Vec<String> =
        (0..2_000).map(|number| format!("finding number {number} {}", "x".repeat(90))).collect();
    let found: Vec<_> = findings.iter().map(|text| (Critical, "a.rs:1", text.as_str())).collect();
    let story = Story::task(reviewed("task")).works().objects("general", &found);
    let report = task_report(row(29, "Much", TaskStatus::InProgress), story.log.clone(), &id(29), Vec::new());
    let markdown = markdown(&task_document(report, "Much", Changes::parse_stat(STAT)));
    assert!(markdown.len() <= LIMIT && markdown.len() > LIMIT - 2_000, "{}", markdown.len());
    let left: Vec<&str> = markdown.lines().filter(|line| line.starts_with("**Left out**")).collect();
    let shown = markdown.lines().filter(|line| line.starts_with("| finding number")).count();
    let missing = 2_000 - shown;
    assert!(left[0].contains(&format!("rows of the table of findings ({missing})")), "{left:?}");
    assert!(
        left[0].contains("findings in full (2000)") && left[0].contains("`signoff report 29 --format json`"),
        "{left:?}"
    );
}
