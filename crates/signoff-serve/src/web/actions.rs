//! The POST handlers: each performs an action and redirects back to the page of its form.

use std::sync::Arc;

use axum::extract::{FromRequest, Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::app_state::{AppState, RequestClass, html};
use super::backend::{AddTask, RequestError, RequestErrorKind, WebAction};
use super::extract::{FormFields, PathParams, invalid};
use super::pages::parse_id;
use crate::page::{self, AddPage, PageNotice, TypedFields, return_path};

type ActionResponse = Result<Response, RequestError>;
type ActionState = State<Arc<AppState>>;

pub async fn answer(state: ActionState, question: PathParams<String>, submitted: SubmittedForm) -> ActionResponse {
    let choice = submitted.form.required("choice");
    perform(&state, choice.map(|choice| WebAction::Answer { question: question.0, choice }), submitted).await
}

pub async fn retry(state: ActionState, task: PathParams<String>, submitted: SubmittedForm) -> ActionResponse {
    let task = parse_id(&task.0)?;
    perform(&state, Ok(WebAction::Retry { task }), submitted).await
}

pub async fn cancel(state: ActionState, task: PathParams<String>, submitted: SubmittedForm) -> ActionResponse {
    let task = parse_id(&task.0)?;
    perform(&state, Ok(WebAction::Cancel { task }), submitted).await
}

pub async fn edit(state: ActionState, task: PathParams<String>, submitted: SubmittedForm) -> ActionResponse {
    let (task, reason) = (parse_id(&task.0)?, submitted.form.text("reason").trim().to_owned());
    let verdict = submitted.form.required("verdict");
    perform(&state, verdict.map(|verdict| WebAction::Edit { task, verdict, reason }), submitted).await
}

pub async fn dispute(state: ActionState, finding: PathParams<String>, submitted: SubmittedForm) -> ActionResponse {
    let fields = submitted.form.number("task").and_then(|task| Ok((task, submitted.form.required("reason")?)));
    let action = fields.map(|(task, reason)| WebAction::Dispute { finding: finding.0, task, reason });
    perform(&state, action, submitted).await
}

/// Adds a task. If that fails, the form is shown again with its values.
pub async fn add(State(state): ActionState, form: FormFields) -> ActionResponse {
    let added = match new_task(&form) {
        Ok(task) => state.call(RequestClass::Act, move |backend| backend.perform(WebAction::Add(task))).await,
        Err(error) => Err(error),
    };
    match added {
        Ok(outcome) => {
            let page = outcome.added_task.map_or("/".to_owned(), |task| format!("/tasks/{task}"));
            Ok(redirect_with_notice(&page, &state.add_notice(outcome.into())))
        }
        Err(error) => show_form_again(&state, &form, error).await,
    }
}

fn new_task(form: &FormFields) -> Result<AddTask, RequestError> {
    let text = form.text("text").trim().to_owned();
    if text.is_empty() {
        return Err(invalid("a task needs a text".to_owned()));
    }
    Ok(AddTask {
        text,
        kind: form.text("type").to_owned(),
        auto_review: !form.text("auto_review").is_empty(),
        max_cycles: form.number("max_cycles")?,
        depends_on: form.task_ids("depends_on")?,
    })
}

async fn show_form_again(state: &AppState, form: &FormFields, error: RequestError) -> ActionResponse {
    let project = state.call(RequestClass::Read, |backend| Ok(backend.project())).await?;
    let typed = |name| form.text(name).to_owned();
    let page = AddPage {
        project,
        text: typed("text"),
        kind: typed("type"),
        auto_review: !form.text("auto_review").is_empty(),
        max_cycles: typed("max_cycles"),
        depends_on: typed("depends_on"),
    };
    let status = error.status();
    Ok(html(status, page::add(&page, Some(&error.into()))))
}

/// A submitted form and the path it was sent to.
pub struct SubmittedForm {
    action: String,
    form: FormFields,
}

impl<S: Send + Sync> FromRequest<S> for SubmittedForm {
    type Rejection = Response;

    async fn from_request(request: Request, state: &S) -> Result<Self, Response> {
        let action = request.uri().path().to_owned();
        Ok(Self { action, form: FormFields::from_request(request, state).await? })
    }
}

/// Performs an action and redirects to the page of the form. On failure, that page shows the error and the input.
async fn perform(
    state: &AppState,
    action: Result<WebAction, RequestError>,
    submitted: SubmittedForm,
) -> ActionResponse {
    let result = match action {
        Ok(action) => state.call(RequestClass::Act, move |backend| backend.perform(action)).await,
        Err(error) => Err(error),
    };
    let back = submitted.form.text("back");
    let notice = match result {
        Ok(outcome) => PageNotice::from(outcome),
        // A program that names no return page gets the error directly. So does a browser on an internal error,
        // because the page may be broken, too.
        Err(error) if back.is_empty() || error.kind == RequestErrorKind::Internal => return Err(error),
        Err(error) => PageNotice { typed: Some(typed_fields(&submitted)), ..PageNotice::from(error) },
    };
    Ok(redirect_with_notice(return_path(back), &state.add_notice(notice)))
}

fn typed_fields(submitted: &SubmittedForm) -> TypedFields {
    let text = |name| submitted.form.text(name).to_owned();
    TypedFields { action: submitted.action.clone(), verdict: text("verdict"), reason: text("reason") }
}

/// Redirects to a page that shows the notice with this key.
fn redirect_with_notice(page: &str, notice_key: &str) -> Response {
    (StatusCode::SEE_OTHER, [(header::LOCATION, format!("{page}?notice={notice_key}"))]).into_response()
}
