//! Every address there is, in one table: what is not in it is not served, and tests go through all of it.

use std::sync::Arc;

use axum::Router;
use axum::routing::{MethodRouter, get, post};

use super::site::Site;
use super::{pages, wishes};

/// An address, and who answers.
pub struct Route {
    /// `/tasks/{task}`.
    pub path: &'static str,
    /// Whether something is done there; other addresses are looked at.
    pub is_form: bool,
    answers: fn() -> MethodRouter<Arc<Site>>,
}

const fn page(path: &'static str, answers: fn() -> MethodRouter<Arc<Site>>) -> Route {
    Route { path, is_form: false, answers }
}

const fn form(path: &'static str, answers: fn() -> MethodRouter<Arc<Site>>) -> Route {
    Route { path, is_form: true, answers }
}

/// All of them.
pub const ROUTES: [Route; 17] = [
    page("/", || get(pages::home)),
    page("/stats", || get(pages::stats)),
    page("/add", || get(pages::add)),
    page("/runs/{run}", || get(pages::run)),
    page("/runs/{run}/report.html", || get(pages::report_of_run)),
    page("/tasks/{task}", || get(pages::task)),
    page("/tasks/{task}/diff", || get(pages::diff)),
    page("/tasks/{task}/transcript/{attempt}", || get(pages::transcript)),
    page("/tasks/{task}/report.html", || get(pages::report_of_task)),
    page("/events", || get(pages::events)),
    page("/assets/{name}", || get(pages::asset)),
    form("/tasks", || post(wishes::add)),
    form("/questions/{question}/answer", || post(wishes::answer)),
    form("/tasks/{task}/retry", || post(wishes::retry)),
    form("/tasks/{task}/cancel", || post(wishes::cancel)),
    form("/tasks/{task}/edit", || post(wishes::edit)),
    form("/findings/{finding}/dispute", || post(wishes::dispute)),
];

pub fn router() -> Router<Arc<Site>> {
    let add = |router: Router<Arc<Site>>, route: Route| router.route(route.path, (route.answers)());
    ROUTES.into_iter().fold(Router::new(), add)
}
