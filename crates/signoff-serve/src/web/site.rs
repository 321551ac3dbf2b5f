//! What every request is answered with: the desk, who may come in, and what was said to whom.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use tokio::sync::Semaphore;

use super::desk::{Desk, Done, Refused, Why};
use super::door::Door;
use super::live::Live;
use crate::page::{self, Notice, NoticeKind};

/// So many pages are put together at once, and so many wishes fulfilled. Who decides may wait for another program, who looks
/// at a task for git, and whoever wants a report or numbers for the logs of whole runs: they keep nobody from looking at the
/// rest.
const LOOKING: usize = 8;
const CLOSELY: usize = 4;
const LONG: usize = 2;
const DECIDING: usize = 8;

/// So many notices are remembered.
const NOTICES: usize = 64;

pub struct Site {
    pub door: Door,
    pub live: Arc<Live>,
    desk: Arc<dyn Desk>,
    looking: Arc<Semaphore>,
    closely: Arc<Semaphore>,
    long: Arc<Semaphore>,
    deciding: Arc<Semaphore>,
    said: Mutex<Said>,
}

/// What was said after wishes were fulfilled, each under a name that nobody guesses, to be found on the page that comes next.
type Said = VecDeque<(String, Notice)>;

impl Site {
    pub fn new(door: Door, live: Arc<Live>, desk: Arc<dyn Desk>) -> Self {
        let hands = |count| Arc::new(Semaphore::new(count));
        Self {
            door,
            live,
            desk,
            looking: hands(LOOKING),
            closely: hands(CLOSELY),
            long: hands(LONG),
            deciding: hands(DECIDING),
            said: Mutex::default(),
        }
    }

    /// Looks at something, where it keeps nobody waiting.
    pub async fn look<T: Send + 'static>(
        &self,
        look: impl FnOnce(&dyn Desk) -> Result<T, Refused> + Send + 'static,
    ) -> Result<T, Refused> {
        self.work(self.looking.clone(), look).await
    }

    /// The same for what git is asked about.
    pub async fn look_closely<T: Send + 'static>(
        &self,
        look: impl FnOnce(&dyn Desk) -> Result<T, Refused> + Send + 'static,
    ) -> Result<T, Refused> {
        self.work(self.closely.clone(), look).await
    }

    /// The same for what takes seconds. Whoever leaves before it is begun is not waited on any more.
    pub async fn look_long<T: Send + 'static>(
        &self,
        look: impl FnOnce(&dyn Desk) -> Result<T, Refused> + Send + 'static,
    ) -> Result<T, Refused> {
        self.work(self.long.clone(), look).await
    }

    /// Decides something. It is carried out even if nobody waits for it any more.
    pub async fn decide<T: Send + 'static>(
        &self,
        decide: impl FnOnce(&dyn Desk) -> Result<T, Refused> + Send + 'static,
    ) -> Result<T, Refused> {
        self.work(self.deciding.clone(), decide).await
    }

    async fn work<T: Send + 'static>(
        &self,
        hands: Arc<Semaphore>,
        work: impl FnOnce(&dyn Desk) -> Result<T, Refused> + Send + 'static,
    ) -> Result<T, Refused> {
        let broken = |message: String| Refused { why: Why::Broken, message, hint: None };
        let hand = hands.acquire_owned().await.map_err(|error| broken(error.to_string()))?;
        let desk = self.desk.clone();
        let worked = tokio::task::spawn_blocking(move || {
            let _hand = hand;
            work(&*desk)
        });
        worked.await.map_err(|_| broken("this could not be done: signoff has a bug".to_owned()))?
    }

    /// Remembers what is to be said; gives the name under which it is found.
    pub fn say(&self, notice: Notice) -> String {
        let mut name = [0; 8];
        // Without randomness nothing is said, and all is done.
        if getrandom::fill(&mut name).is_err() {
            return String::new();
        }
        let name = format!("{:016x}", u64::from_ne_bytes(name));
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        said.push_back((name.clone(), notice));
        if said.len() > NOTICES {
            said.pop_front();
        }
        name
    }

    /// What was said under a name. It is said once.
    pub fn said(&self, name: &str) -> Option<Notice> {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let index = said.iter().position(|(known, _)| known == name)?;
        said.remove(index).map(|(_, notice)| notice)
    }
}

/// A page.
pub fn html(status: StatusCode, text: String) -> Response {
    (status, [(header::CONTENT_TYPE, "text/html; charset=utf-8")], text).into_response()
}

/// A page that says why there is nothing else to see.
pub fn problem(status: StatusCode, message: &str, hint: Option<&str>) -> Response {
    html(status, page::error_page(status.as_u16(), message, hint))
}

impl From<Done> for Notice {
    fn from(done: Done) -> Self {
        Self { kind: NoticeKind::Done, message: done.message, hint: done.hint, typed: None }
    }
}

impl From<Refused> for Notice {
    fn from(refused: Refused) -> Self {
        Self { kind: NoticeKind::Refused, message: refused.message, hint: refused.hint, typed: None }
    }
}

impl Refused {
    pub fn status(&self) -> StatusCode {
        match self.why {
            Why::Unknown => StatusCode::NOT_FOUND,
            Why::Unclear => StatusCode::BAD_REQUEST,
            Why::Unfitting => StatusCode::CONFLICT,
            Why::Broken => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        problem(self.status(), &self.message, self.hint.as_deref())
    }
}

/// An address that leads nowhere.
pub fn nowhere() -> Refused {
    Refused {
        why: Why::Unknown,
        message: "there is no such page".to_owned(),
        hint: Some("the overview leads to all there are".to_owned()),
    }
}
