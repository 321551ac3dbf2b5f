//! The GET handlers: pages, reports, assets and the event stream.

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};

use super::app_state::{AppState, REPORT_CSP, RequestClass, error_response, html, page_not_found};
use super::backend::{Backend, ReportSubject, RequestError};
use super::extract::PathParams;
use crate::page::{self, AddPage, PageNotice};

type PageResult = Result<Response, RequestError>;
type PageState = State<Arc<AppState>>;

pub async fn home(State(state): PageState, uri: Uri) -> PageResult {
    let all = query_value(&uri, "all").is_some_and(|all| all == "1");
    let page = state.call(RequestClass::Read, move |backend| backend.home(all)).await?;
    ok_page(page::home(&page, notice(&state, &uri).as_ref()))
}

pub async fn run(State(state): PageState, PathParams(run): PathParams<String>, uri: Uri) -> PageResult {
    let run = parse_id(&run)?;
    let page = state.call(RequestClass::Read, move |backend| backend.run(run)).await?;
    ok_page(page::run(&page, notice(&state, &uri).as_ref()))
}

pub async fn task(State(state): PageState, PathParams(task): PathParams<String>, uri: Uri) -> PageResult {
    let task = parse_id(&task)?;
    let page = state.call(RequestClass::ReadWithGit, move |backend| backend.task(task)).await?;
    ok_page(page::task(&page, notice(&state, &uri).as_ref()))
}

pub async fn diff(State(state): PageState, PathParams(task): PathParams<String>) -> PageResult {
    let task = parse_id(&task)?;
    ok_page(page::diff(&state.call(RequestClass::ReadWithGit, move |backend| backend.task(task)).await?))
}

pub async fn transcript(
    State(state): PageState,
    PathParams((task, attempt)): PathParams<(String, String)>,
) -> PageResult {
    let task = parse_id(&task)?;
    let attempt = parse_id(attempt.strip_prefix('a').unwrap_or(&attempt))?;
    ok_page(page::transcript(
        &state.call(RequestClass::ReadWithGit, move |backend| backend.transcript(task, attempt)).await?,
    ))
}

pub async fn stats(State(state): PageState) -> PageResult {
    let read = |backend: &dyn Backend| Ok((backend.project(), backend.stats()?));
    let (project, report) = state.call(RequestClass::ReadSlowly, read).await?;
    ok_page(page::stats(&project, &report))
}

pub async fn add(State(state): PageState, uri: Uri) -> PageResult {
    let (project, auto_review) =
        state.call(RequestClass::Read, |backend| Ok((backend.project(), backend.auto_review_default()))).await?;
    let page = AddPage { project, auto_review, ..AddPage::default() };
    ok_page(page::add(&page, notice(&state, &uri).as_ref()))
}

pub async fn task_report(State(state): PageState, PathParams(task): PathParams<String>) -> PageResult {
    report(&state, ReportSubject::Task(parse_id(&task)?)).await
}

pub async fn run_report(State(state): PageState, PathParams(run): PathParams<String>) -> PageResult {
    report(&state, ReportSubject::Run(parse_id(&run)?)).await
}

async fn report(state: &AppState, subject: ReportSubject) -> PageResult {
    let read =
        move |backend: &dyn Backend| backend.report(subject).map(|(head, tasks)| page::report_file(&head, tasks));
    let text = state.call(RequestClass::ReadSlowly, read).await?;
    let policy = (header::CONTENT_SECURITY_POLICY, REPORT_CSP);
    Ok(([policy], html(StatusCode::OK, text)).into_response())
}

/// The stream of change events.
pub async fn events(State(state): PageState, headers: HeaderMap) -> Response {
    let seen = headers.get("last-event-id").and_then(|id| id.to_str().ok()?.parse().ok());
    state.live_updates.listen(seen).unwrap_or_else(|| {
        let hint = "close some of them; pages still work without live updates, but must be reloaded";
        error_response(StatusCode::SERVICE_UNAVAILABLE, "too many pages are open", Some(hint))
    })
}

/// A built-in file that pages use.
pub async fn asset(PathParams(name): PathParams<String>, headers: HeaderMap) -> PageResult {
    let asset = page::asset(&name).ok_or_else(page_not_found)?;
    let mut hasher = DefaultHasher::new();
    asset.text.hash(&mut hasher);
    let tag = format!("\"{:016x}\"", hasher.finish());
    let is_cached = headers.get(header::IF_NONE_MATCH).is_some_and(|cached| cached == tag.as_str());
    let headers = [(header::CACHE_CONTROL, "private, no-cache".to_owned()), (header::ETAG, tag)];
    if is_cached {
        return Ok((StatusCode::NOT_MODIFIED, headers).into_response());
    }
    Ok((headers, [(header::CONTENT_TYPE, asset.content_type)], asset.text).into_response())
}

fn ok_page(text: String) -> PageResult {
    Ok(html(StatusCode::OK, text))
}

/// Parses the number of a task or run.
pub fn parse_id(text: &str) -> Result<u64, RequestError> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| digits).ok_or_else(page_not_found)
}

/// The value of a query parameter.
fn query_value<'a>(uri: &'a Uri, name: &str) -> Option<Cow<'a, str>> {
    let mut pairs = form_urlencoded::parse(uri.query()?.as_bytes());
    pairs.find(|(key, _)| key == name).map(|(_, value)| value)
}

/// The notice to show at the top of the page, if the URL names one.
fn notice(state: &AppState, uri: &Uri) -> Option<PageNotice> {
    state.take_notice(&query_value(uri, "notice")?)
}
