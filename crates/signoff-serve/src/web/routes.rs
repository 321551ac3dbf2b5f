//! The table of all routes. Tests iterate over it.

use std::sync::Arc;

use axum::Router;
use axum::routing::{MethodRouter, get, post};

use super::app_state::AppState;
use super::{actions, pages};

/// A path and its handler.
pub struct WebRoute {
    /// `/tasks/{task}`.
    pub path: &'static str,
    /// Whether the route takes a submitted form (POST); the others are pages (GET).
    pub is_form: bool,
    handler: fn() -> MethodRouter<Arc<AppState>>,
}

const fn page(path: &'static str, handler: fn() -> MethodRouter<Arc<AppState>>) -> WebRoute {
    WebRoute { path, is_form: false, handler }
}

const fn form(path: &'static str, handler: fn() -> MethodRouter<Arc<AppState>>) -> WebRoute {
    WebRoute { path, is_form: true, handler }
}

/// All routes.
pub const ROUTES: [WebRoute; 17] = [
    page("/", || get(pages::home)),
    page("/stats", || get(pages::stats)),
    page("/add", || get(pages::add)),
    page("/runs/{run}", || get(pages::run)),
    page("/runs/{run}/report.html", || get(pages::run_report)),
    page("/tasks/{task}", || get(pages::task)),
    page("/tasks/{task}/diff", || get(pages::diff)),
    page("/tasks/{task}/transcript/{attempt}", || get(pages::transcript)),
    page("/tasks/{task}/report.html", || get(pages::task_report)),
    page("/events", || get(pages::events)),
    page("/assets/{name}", || get(pages::asset)),
    form("/tasks", || post(actions::add)),
    form("/questions/{question}/answer", || post(actions::answer)),
    form("/tasks/{task}/retry", || post(actions::retry)),
    form("/tasks/{task}/cancel", || post(actions::cancel)),
    form("/tasks/{task}/edit", || post(actions::edit)),
    form("/findings/{finding}/dispute", || post(actions::dispute)),
];

pub fn router() -> Router<Arc<AppState>> {
    let add = |router: Router<Arc<AppState>>, route: WebRoute| router.route(route.path, (route.handler)());
    ROUTES.into_iter().fold(Router::new(), add)
}
