//! The frame of every page (HTML head, navigation, notices), and the ids of its elements.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use maud::{DOCTYPE, Markup, html};
use signoff_term::fit::truncate_line;
use signoff_term::show::LedgerLine;

use super::text;
use super::{NoticeKind, PageNotice};

/// The subject of a page. The script refreshes a page only for changes of its subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageSubject {
    Everything,
    Task(u64),
    Run(u64),
    /// A page that never changes.
    Static,
}

/// A page's content and metadata.
pub struct PageFrame<'a> {
    title: &'a str,
    project: &'a str,
    subject: PageSubject,
    notice: Option<&'a PageNotice>,
    attention_count: Option<usize>,
    body: Markup,
}

/// The navigation links.
const NAV_LINKS: [(&str, &str); 3] = [("/", "Overview"), ("/stats", "Statistics"), ("/add", "Add a task")];

/// Banners for a page that is out of date.
const DISCONNECTED: &str = "Not connected: this page may be out of date.";
const TOKEN_EXPIRED: &str = "This page is out of date: open the address that `signoff serve` prints now.";
const REFRESH_FAILED: &str = "The page could not be refreshed: it may be out of date.";

impl<'a> PageFrame<'a> {
    pub fn new(title: &'a str, project: &'a str, subject: PageSubject, body: Markup) -> Self {
        Self { title, project, subject, notice: None, attention_count: None, body }
    }

    pub fn with_notice(self, notice: Option<&'a PageNotice>) -> Self {
        Self { notice, ..self }
    }

    /// Shows the number of items that need attention in the title.
    pub fn with_attention_count(self, count: usize) -> Self {
        Self { attention_count: Some(count), ..self }
    }

    pub fn into_string(self) -> String {
        let (task, run) = match self.subject {
            PageSubject::Everything | PageSubject::Static => (None, None),
            PageSubject::Task(task) => (Some(task), None),
            PageSubject::Run(run) => (None, Some(run)),
        };
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                (self.head())
                body {
                    a.skip href="#main" { "Skip to the content" }
                    (self.header())
                    p #connection .banner role="status" hidden data-refused=(TOKEN_EXPIRED) data-failed=(REFRESH_FAILED) { (DISCONNECTED) }
                    noscript { p.banner { "Without JavaScript this page does not update: reload it." } }
                    main #main tabindex="-1" data-task=[task] data-run=[run] data-needs=[self.attention_count] {
                        @if let Some(notice) = self.notice { (notice_banner(notice)) }
                        (self.body)
                    }
                }
            }
        };
        page.into_string()
    }

    fn head(&self) -> Markup {
        let site_name = if self.project.is_empty() { "signoff" } else { self.project };
        // `(2) `: the number of items that need attention, visible in the browser tab.
        let number = self.attention_count.filter(|needs| *needs > 0);
        let attention = number.map(|needs| format!("({needs}) ")).unwrap_or_default();
        html! {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (attention) (truncate_line(self.title, 80)) " · " (truncate_line(site_name, 80)) }
                link rel="icon" href="/assets/icon.svg" type="image/svg+xml";
                link rel="stylesheet" href="/assets/style.css";
                @if self.subject != PageSubject::Static { script src="/assets/live.js" defer {} }
            }
        }
    }

    fn header(&self) -> Markup {
        html! {
            header.top {
                a.name href="/" { "signoff" }
                @if !self.project.is_empty() { span.project { (text::line(self.project)) } }
                nav aria-label="Pages" {
                    ul {
                        @for (path, name) in NAV_LINKS {
                            li { a href=(path) aria-current=[(name == self.title).then_some("page")] { (name) } }
                        }
                    }
                }
            }
        }
    }
}

/// A notice that is shown once.
pub fn notice_banner(notice: &PageNotice) -> Markup {
    // The form may be gone, so repeat what the user typed.
    let typed = notice.typed.as_ref().map(|typed| &typed.reason).filter(|reason| !reason.is_empty());
    let (class, role) = match notice.kind {
        NoticeKind::Done => ("notice good", "status"),
        NoticeKind::Refused => ("notice bad", "alert"),
    };
    html! {
        div class=(class) role=(role) {
            p { (text::line(&notice.message)) }
            @if let Some(hint) = &notice.hint { p.hint { (text::line(hint)) } }
            @if let Some(typed) = typed { p.hint { "You wrote: " (text::line(typed)) } }
        }
    }
}

/// The page for a failed request.
pub fn error(status: u16, message: &str, hint: Option<&str>) -> String {
    let title = match status {
        401 | 403 => "Not allowed",
        404 => "Not found",
        400..500 => "Refused",
        _ => "Something went wrong",
    };
    let body = html! {
        h1 { (title) }
        p.lead { (text::line(message)) }
        @if let Some(hint) = hint { p { (text::line(hint)) } }
        p { a href="/" { "To the overview" } }
    };
    PageFrame::new(title, "", PageSubject::Static, body).into_string()
}

/// The hidden form field with the page to return to.
pub fn return_field(path: &str) -> Markup {
    html! { input type="hidden" name="back" value=(path); }
}

/// The page to return to (the hidden field `back`) if it is one of our own; otherwise the overview.
pub fn return_path(path: &str) -> &str {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_own = ["/tasks/", "/runs/"].iter().any(|page| path.strip_prefix(page).is_some_and(is_number));
    if is_own { path } else { "/" }
}

/// The context of one task on a page. A page can hold several tasks, so all element ids start with its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageContext {
    pub task: u64,
    /// Unique among the tasks of a page.
    pub key: u64,
    /// Whether a server handles the links and forms of the page.
    pub is_served: bool,
}

impl PageContext {
    pub fn served(task: u64) -> Self {
        Self { task, key: task, is_served: true }
    }

    /// The id of an element of this task.
    pub fn id(self, name: &str) -> String {
        format!("t{}-{name}", self.key)
    }
}

/// Creates element ids from names rather than positions, so that they stay stable when a list shifts.
pub struct ElementIds {
    context: PageContext,
    kind: &'static str,
    given: BTreeMap<u64, u32>,
}

impl ElementIds {
    pub fn new(context: PageContext, kind: &'static str) -> Self {
        Self { context, kind, given: BTreeMap::new() }
    }

    /// The id of the next element with this name.
    pub fn next_id(&mut self, name: &str) -> String {
        let mut hasher = DefaultHasher::new();
        name.hash(&mut hasher);
        let hash = hasher.finish();
        let given = self.given.entry(hash).or_default();
        *given += 1;
        let more = if *given > 1 { format!("-{given}") } else { String::new() };
        self.context.id(&format!("{}-{hash:016x}{more}", self.kind))
    }
}

/// The element id of each finding.
pub struct Anchors<'a>(BTreeMap<&'a str, String>);

impl<'a> Anchors<'a> {
    /// Uses the ids of findings directly if they are safe in HTML; imported ones may not be.
    pub fn new(ledger: &'a [LedgerLine], context: PageContext) -> Self {
        let plain =
            |id: &str| id.starts_with("f-") && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        let mut ids = ElementIds::new(context, "finding");
        let named = ledger.iter().map(|line| {
            let id = line.finding.id.as_str();
            (id, if plain(id) { context.id(id) } else { ids.next_id(id) })
        });
        Self(named.collect())
    }

    /// The element id of a finding, with a suffix for its other elements.
    pub fn get(&self, finding: &str, suffix: &str) -> String {
        format!("{}{suffix}", self.0.get(finding).map(String::as_str).unwrap_or_default())
    }
}
