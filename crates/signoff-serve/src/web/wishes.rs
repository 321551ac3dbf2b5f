//! What people do on the pages: each a form, and then back to where they were.

use std::sync::Arc;

use axum::extract::{FromRequest, Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::desk::{NewTask, Refused, Why, Wish};
use super::form::{Form, unclear};
use super::pages::number;
use super::part::Part;
use super::site::{Site, html};
use crate::page::{self, AddPage, Notice, Typed, way_back};

type Went = Result<Response, Refused>;
type At = State<Arc<Site>>;

pub async fn answer(State(site): At, Part(question): Part<String>, sent: Sent) -> Went {
    let wish = sent.form.needed("choice").map(|choice| Wish::Answer { question, choice });
    fulfil(&site, wish, sent).await
}

pub async fn retry(State(site): At, Part(task): Part<String>, sent: Sent) -> Went {
    let task = number(&task)?;
    fulfil(&site, Ok(Wish::Retry { task }), sent).await
}

pub async fn cancel(State(site): At, Part(task): Part<String>, sent: Sent) -> Went {
    let task = number(&task)?;
    fulfil(&site, Ok(Wish::Cancel { task }), sent).await
}

pub async fn edit(State(site): At, Part(task): Part<String>, sent: Sent) -> Went {
    let (task, reason) = (number(&task)?, sent.form.text("reason").trim().to_owned());
    let wish = sent.form.needed("verdict").map(|verdict| Wish::Edit { task, verdict, reason });
    fulfil(&site, wish, sent).await
}

pub async fn dispute(State(site): At, Part(finding): Part<String>, sent: Sent) -> Went {
    let wish = disputed(finding, &sent.form);
    fulfil(&site, wish, sent).await
}

fn disputed(finding: String, form: &Form) -> Result<Wish, Refused> {
    Ok(Wish::Dispute { finding, task: form.number("task")?, reason: form.needed("reason")? })
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
            Ok(go(&page, &site.say(done.into())))
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
    Ok(html(status, page::add(&page, Some(&refused.into()))))
}

/// A form, and where it was sent.
pub struct Sent {
    action: String,
    form: Form,
}

impl<S: Send + Sync> FromRequest<S> for Sent {
    type Rejection = Response;

    async fn from_request(request: Request, state: &S) -> Result<Self, Response> {
        let action = request.uri().path().to_owned();
        Ok(Self { action, form: Form::from_request(request, state).await? })
    }
}

/// Does it, and goes back to where the form stands: also when it is refused, and then with what was typed.
async fn fulfil(site: &Site, wish: Result<Wish, Refused>, sent: Sent) -> Went {
    let done = match wish {
        Ok(wish) => site.decide(move |desk| desk.fulfil(wish)).await,
        Err(refused) => Err(refused),
    };
    let back = sent.form.text("back");
    let notice = match done {
        Ok(done) => Notice::from(done),
        // A program that names no page is told at once; where something is broken, pages may be too.
        Err(refused) if back.is_empty() || refused.why == Why::Broken => return Err(refused),
        Err(refused) => Notice { typed: Some(typed(&sent)), ..Notice::from(refused) },
    };
    Ok(go(way_back(back), &site.say(notice)))
}

fn typed(sent: &Sent) -> Typed {
    let text = |name| sent.form.text(name).to_owned();
    Typed { action: sent.action.clone(), verdict: text("verdict"), reason: text("reason") }
}

/// To a page, where something is said.
fn go(page: &str, said: &str) -> Response {
    (StatusCode::SEE_OTHER, [(header::LOCATION, format!("{page}?said={said}"))]).into_response()
}
