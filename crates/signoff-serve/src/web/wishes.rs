//! What people do on the pages: each a form, and then back to where they were.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::desk::{NewTask, Refused, Wish};
use super::form::{Form, unclear};
use super::pages::number;
use super::part::Part;
use super::site::{Site, html};
use crate::page::{self, AddPage, Notice, NoticeKind, way_back};

type Went = Result<Response, Refused>;
type At = State<Arc<Site>>;

pub async fn answer(State(site): At, Part(question): Part<String>, form: Form) -> Went {
    let choice = form.needed("choice")?;
    fulfil(&site, Wish::Answer { question, choice }, &form).await
}

pub async fn retry(State(site): At, Part(task): Part<String>, form: Form) -> Went {
    fulfil(&site, Wish::Retry { task: number(&task)? }, &form).await
}

pub async fn cancel(State(site): At, Part(task): Part<String>, form: Form) -> Went {
    fulfil(&site, Wish::Cancel { task: number(&task)? }, &form).await
}

pub async fn edit(State(site): At, Part(task): Part<String>, form: Form) -> Went {
    let (verdict, reason) = (form.needed("verdict")?, form.text("reason").trim().to_owned());
    fulfil(&site, Wish::Edit { task: number(&task)?, verdict, reason }, &form).await
}

pub async fn dispute(State(site): At, Part(finding): Part<String>, form: Form) -> Went {
    let (task, reason) = (form.number("task")?, form.needed("reason")?);
    fulfil(&site, Wish::Dispute { finding, task, reason }, &form).await
}

/// Adds a task. What was typed is not lost if it is refused.
pub async fn add(State(site): At, form: Form) -> Went {
    let added = match new_task(&form) {
        Ok(task) => site.decide(move |desk| desk.fulfil(Wish::Add(task))).await,
        Err(refused) => Err(refused),
    };
    match added {
        Ok(done) => {
            let page = done.added.map_or("/".to_owned(), |task| format!("/tasks/{task}"));
            Ok(go(&page, &site.say(&done)))
        }
        Err(refused) => again(&site, &form, refused).await,
    }
}

fn new_task(form: &Form) -> Result<NewTask, Refused> {
    let text = form.text("text").trim().to_owned();
    if text.is_empty() {
        return Err(unclear("a task needs a text".to_owned()));
    }
    Ok(NewTask {
        text,
        kind: form.text("type").to_owned(),
        auto_review: !form.text("auto_review").is_empty(),
        max_cycles: form.number("max_cycles")?,
        depends_on: form.tasks("depends_on")?,
    })
}

async fn again(site: &Site, form: &Form, refused: Refused) -> Went {
    let project = site.look(|desk| Ok(desk.project())).await?;
    let typed = |name| form.text(name).to_owned();
    let page = AddPage {
        project,
        text: typed("text"),
        kind: typed("type"),
        auto_review: !form.text("auto_review").is_empty(),
        max_cycles: typed("max_cycles"),
        depends_on: typed("depends_on"),
    };
    let status = refused.status();
    let notice = Notice { kind: NoticeKind::Refused, message: refused.message, hint: refused.hint };
    Ok(html(status, page::add(&page, Some(&notice))))
}

async fn fulfil(site: &Site, wish: Wish, form: &Form) -> Went {
    let done = site.decide(move |desk| desk.fulfil(wish)).await?;
    Ok(go(way_back(form.text("back")), &site.say(&done)))
}

/// To a page, where something is said.
fn go(page: &str, said: &str) -> Response {
    (StatusCode::SEE_OTHER, [(header::LOCATION, format!("{page}?said={said}"))]).into_response()
}
