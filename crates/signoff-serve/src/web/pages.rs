//! The pages: each is looked at anew whenever it is asked for.

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};

use super::desk::{Refused, Reported};
use super::headers::POLICY_OF_FILES;
use super::part::Part;
use super::site::{Site, html, nowhere, problem};
use crate::page::{self, AddPage, Notice};

type Shown = Result<Response, Refused>;
type At = State<Arc<Site>>;

pub async fn home(State(site): At, uri: Uri) -> Shown {
    let all = asked(&uri, "all").is_some_and(|all| all == "1");
    let page = site.look(move |desk| desk.home(all)).await?;
    shown(page::home(&page, notice(&site, &uri).as_ref()))
}

pub async fn run(State(site): At, Part(run): Part<String>, uri: Uri) -> Shown {
    let run = number(&run)?;
    let page = site.look(move |desk| desk.run(run)).await?;
    shown(page::run(&page, notice(&site, &uri).as_ref()))
}

pub async fn task(State(site): At, Part(task): Part<String>, uri: Uri) -> Shown {
    let task = number(&task)?;
    let page = site.look_closely(move |desk| desk.task(task)).await?;
    shown(page::task(&page, notice(&site, &uri).as_ref()))
}

pub async fn diff(State(site): At, Part(task): Part<String>) -> Shown {
    let task = number(&task)?;
    shown(page::diff(&site.look_closely(move |desk| desk.task(task)).await?))
}

pub async fn transcript(State(site): At, Part((task, attempt)): Part<(String, String)>) -> Shown {
    let task = number(&task)?;
    let attempt = number(attempt.strip_prefix('a').unwrap_or(&attempt))?;
    shown(page::transcript(&site.look_closely(move |desk| desk.transcript(task, attempt)).await?))
}

pub async fn stats(State(site): At) -> Shown {
    shown(page::stats(&site.look_long(|desk| desk.stats()).await?))
}

pub async fn add(State(site): At, uri: Uri) -> Shown {
    let (project, auto_review) = site.look(|desk| Ok((desk.project(), desk.reviews()))).await?;
    let page = AddPage { project, auto_review, ..AddPage::default() };
    shown(page::add(&page, notice(&site, &uri).as_ref()))
}

pub async fn report_of_task(State(site): At, Part(task): Part<String>) -> Shown {
    report(&site, Reported::Task(number(&task)?)).await
}

pub async fn report_of_run(State(site): At, Part(run): Part<String>) -> Shown {
    report(&site, Reported::Run(number(&run)?)).await
}

async fn report(site: &Site, of: Reported) -> Shown {
    let text =
        site.look_long(move |desk| desk.report(of).map(|(head, tasks)| page::report_file(&head, tasks)));
    let text = text.await?;
    let policy = (header::CONTENT_SECURITY_POLICY, POLICY_OF_FILES);
    Ok(([policy], html(StatusCode::OK, text)).into_response())
}

/// What changes, as it changes.
pub async fn events(State(site): At, headers: HeaderMap) -> Response {
    let seen = headers.get("last-event-id").and_then(|id| id.to_str().ok()?.parse().ok());
    site.live.listen(seen).unwrap_or_else(|| {
        let hint = "close some of them; pages without it are whole, but do not follow what happens";
        problem(StatusCode::SERVICE_UNAVAILABLE, "too many pages are open", Some(hint))
    })
}

/// A file that pages need, by a name that is on the list.
pub async fn asset(Part(name): Part<String>, headers: HeaderMap) -> Shown {
    let asset = page::asset(&name).ok_or_else(nowhere)?;
    let mut hasher = DefaultHasher::new();
    asset.text.hash(&mut hasher);
    let tag = format!("\"{:016x}\"", hasher.finish());
    let known = headers.get(header::IF_NONE_MATCH).is_some_and(|known| known == tag.as_str());
    let kept = [(header::CACHE_CONTROL, "private, no-cache".to_owned()), (header::ETAG, tag)];
    if known {
        return Ok((StatusCode::NOT_MODIFIED, kept).into_response());
    }
    Ok((kept, [(header::CONTENT_TYPE, asset.content_type)], asset.text).into_response())
}

fn shown(text: String) -> Shown {
    Ok(html(StatusCode::OK, text))
}

/// The number of a task or a run.
pub fn number(text: &str) -> Result<u64, Refused> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| digits).ok_or_else(nowhere)
}

/// What an address says behind its question mark.
fn asked<'a>(uri: &'a Uri, name: &str) -> Option<Cow<'a, str>> {
    let mut pairs = form_urlencoded::parse(uri.query()?.as_bytes());
    pairs.find(|(known, _)| known == name).map(|(_, value)| value)
}

/// What is to be said at the head of a page.
fn notice(site: &Site, uri: &Uri) -> Option<Notice> {
    site.said(&asked(uri, "said")?)
}
