//! A model that follows a script, for the real programs of agents to talk to.
//!
//! It speaks Anthropic's Messages, OpenAI's Responses and Chat Completions, and Gemini, streamed or not, on the loopback
//! interface. It remembers no conversation: which turn comes next is told by the request itself, so retries, resumed
//! sessions and clients side by side all work.

mod anthropic;
mod chat;
mod choose;
mod dialect;
mod fault;
mod gemini;
mod openai;
mod pattern;
mod placeholders;
mod record;
mod reply;
mod request;
mod responses;
mod route;
mod sample;
mod script;
mod server;
mod tools;
mod usage;
mod wire;

use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use tokio::sync::oneshot;

pub use dialect::Dialect;
pub use fault::{End, Fault, Refusal};
pub use pattern::Pattern;
pub use record::{Authorization, Kind, Replied, Seen};
pub use script::{Action, Rule, Script, Turn, When};
pub use usage::Usage;

use server::Server;

/// A model at work. It ends when this is dropped, whatever its clients wait for.
#[derive(Debug)]
pub struct ScriptedModel {
    url: String,
    server: Arc<Server>,
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl ScriptedModel {
    /// Starts on a free port.
    ///
    /// # Panics
    /// If the machine does not let us.
    pub fn start(script: Script) -> Self {
        Self::listen(script, 0).expect("a port on the loopback interface")
    }

    /// Starts on this port; 0 is any that is free.
    pub fn listen(script: Script, port: u16) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        listener.set_nonblocking(true)?;
        let url = format!("http://{}", listener.local_addr()?);
        let server = Arc::new(Server::new(script));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (end, ended) = oneshot::channel();
        let router = server::router(server.clone());
        let thread = thread::spawn(move || {
            runtime.block_on(async {
                let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
                tokio::select! {
                    _ = async { axum::serve(listener, router).await } => {}
                    _ = ended => {}
                }
            });
        });
        Ok(Self { url, server, end: Some(end), thread: Some(thread) })
    }

    /// Where it is: `http://127.0.0.1:PORT`. Clients of OpenAI's languages want `/v1` behind it.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// All requests so far.
    pub fn requests(&self) -> Vec<Seen> {
        self.server.records.all()
    }

    /// The requests so far that this rule answered.
    pub fn requests_of(&self, rule: &str) -> Vec<Replied> {
        let seen = self.requests();
        seen.iter().filter(|seen| seen.is_of(rule)).filter_map(Seen::reply).cloned().collect()
    }

    /// Waits until this rule has been asked for so many times.
    ///
    /// # Panics
    /// If that does not happen within a minute.
    pub fn wait_for(&self, rule: &str, count: usize) {
        let came = self.server.records.wait_for(count, |seen| seen.is_of(rule));
        assert!(came.is_some(), "{rule} was not asked for {count} times: {:#?}", self.requests());
    }

    /// Waits for the request with this number, from 1, however long it takes.
    pub fn nth(&self, number: usize) -> Seen {
        self.server.records.wait(number)
    }

    /// What this rule's replies were said to have used: those that the client could read to their end.
    pub fn served(&self, rule: &str) -> Usage {
        self.usage(End::Whole, |reply| reply.rule.as_deref() == Some(rule))
    }

    /// What this rule's replies would have used that broke off. Some clients count what they read of it.
    pub fn broken(&self, rule: &str) -> Usage {
        self.usage(End::Broken, |reply| reply.rule.as_deref() == Some(rule))
    }

    /// What was served without a rule: side requests and the default.
    pub fn served_besides(&self) -> Usage {
        self.usage(End::Whole, |reply| reply.rule.is_none())
    }

    fn usage(&self, end: End, fits: impl Fn(&Replied) -> bool) -> Usage {
        let seen = self.requests();
        let replies = seen.iter().filter_map(Seen::reply);
        replies.filter(|reply| reply.end == end && fits(reply)).map(|reply| reply.usage).sum()
    }
}

impl Drop for ScriptedModel {
    fn drop(&mut self) {
        self.end.take();
        if let Some(thread) = self.thread.take() {
            // It panics only where a test has failed before.
            thread.join().ok();
        }
    }
}
