//! What stands around every page: the head, the way to the others, and what there is to say once.

use maud::{DOCTYPE, Markup, html};
use signoff_term::fit::cut;

use super::text;
use super::values::{Notice, NoticeKind};

/// What a page is about: whoever listens to changes need not fetch it for those of others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum About {
    Everything,
    Task(u64),
    Run(u64),
    /// Nothing that changes while somebody looks.
    Still,
}

/// A page before it is framed.
pub struct Framed<'a> {
    pub title: &'a str,
    pub project: &'a str,
    pub about: About,
    pub notice: Option<&'a Notice>,
    /// How many things need somebody, where the page says so.
    pub needs: Option<usize>,
    pub body: Markup,
}

/// The other pages.
const WAYS: [(&str, &str); 3] = [("/", "Overview"), ("/stats", "Statistics"), ("/add", "Add a task")];

/// What is said of a page that is not as it is on the server.
const LOST: &str = "Not connected. What you see may be old.";
const REFUSED: &str = "What you see is old: open the address that `signoff serve` prints now.";
const FAILED: &str = "This could not be fetched anew. What you see may be old.";

impl Framed<'_> {
    pub fn into_string(self) -> String {
        let (task, run) = match self.about {
            About::Everything | About::Still => (None, None),
            About::Task(task) => (Some(task), None),
            About::Run(run) => (None, Some(run)),
        };
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                (self.head())
                body {
                    a.skip href="#main" { "Skip to the content" }
                    (self.header())
                    p #connection .banner role="status" hidden data-refused=(REFUSED) data-failed=(FAILED) { (LOST) }
                    noscript { p.banner { "Without script this page does not follow what happens: reload it." } }
                    main #main tabindex="-1" data-task=[task] data-run=[run] data-needs=[self.needs] {
                        @if let Some(notice) = self.notice { (told(notice)) }
                        (self.body)
                    }
                }
            }
        };
        page.into_string()
    }

    fn head(&self) -> Markup {
        let of = if self.project.is_empty() { "signoff" } else { self.project };
        html! {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (self.number()) (cut(self.title, 80)) " · " (cut(of, 80)) }
                link rel="icon" href="/assets/icon.svg" type="image/svg+xml";
                link rel="stylesheet" href="/assets/style.css";
                @if self.about != About::Still { script src="/assets/live.js" defer {} }
            }
        }
    }

    /// `(2) `, so that a tab among others says whether to look at it.
    fn number(&self) -> String {
        self.needs.filter(|needs| *needs > 0).map(|needs| format!("({needs}) ")).unwrap_or_default()
    }

    fn header(&self) -> Markup {
        html! {
            header.top {
                a.name href="/" { "signoff" }
                @if !self.project.is_empty() { span.project { (text::line(self.project)) } }
                nav aria-label="Pages" {
                    ul {
                        @for (way, name) in WAYS {
                            li { a href=(way) aria-current=[(name == self.title).then_some("page")] { (name) } }
                        }
                    }
                }
            }
        }
    }
}

/// Something to be said once.
pub fn told(notice: &Notice) -> Markup {
    // The form may not be there any more.
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

/// A request that was not fulfilled.
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
    Framed { title, project: "", about: About::Still, notice: None, needs: None, body }.into_string()
}

/// The hidden field of a form that says where to come back to.
pub fn back(way: &str) -> Markup {
    html! { input type="hidden" name="back" value=(way); }
}

/// Where a form wants to come back to (its hidden field `back`), if that is a page of ours; else the overview.
pub fn way_back(asked: &str) -> &str {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let ours = ["/tasks/", "/runs/"].iter().any(|page| asked.strip_prefix(page).is_some_and(is_number));
    if ours { asked } else { "/" }
}
