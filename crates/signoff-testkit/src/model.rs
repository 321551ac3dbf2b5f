//! A scripted model server, for testing with real agent programs.
//!
//! It implements the APIs Anthropic Messages, OpenAI Responses, OpenAI Chat Completions and Gemini, streamed or not, on
//! the loopback interface. It keeps no conversation state: the request itself determines the next turn, so retries,
//! resumed sessions and concurrent clients all work.

mod anthropic;
mod chat;
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
mod rule_choice;
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
pub use fault::{Fault, ModelError, ReplyEnd};
pub use pattern::Pattern;
pub use record::{Authorization, ModelReplyRecord, ModelRequestKind, RecordedModelRequest};
pub use script::{ModelAction, ModelCondition, ModelRule, ModelScript, ModelTurn};
pub use usage::TokenUsage;

use server::ModelServer;

/// A running model server. It stops when this value is dropped.
#[derive(Debug)]
pub struct ScriptedModel {
    url: String,
    server: Arc<ModelServer>,
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl ScriptedModel {
    /// Starts on a free port.
    ///
    /// # Panics
    /// If no port is available.
    pub fn start(script: ModelScript) -> Self {
        Self::listen(script, 0).expect("a port on the loopback interface")
    }

    /// Starts on this port; 0 picks a free one.
    pub fn listen(script: ModelScript, port: u16) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        listener.set_nonblocking(true)?;
        let url = format!("http://{}", listener.local_addr()?);
        let server = Arc::new(ModelServer::new(script));
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

    /// The base URL, `http://127.0.0.1:PORT`. Clients of OpenAI's APIs need `/v1` appended.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// All requests so far.
    pub fn requests(&self) -> Vec<RecordedModelRequest> {
        self.server.records.all()
    }

    /// The replies that this rule gave so far.
    pub fn replies_of_rule(&self, rule: &str) -> Vec<ModelReplyRecord> {
        let seen = self.requests();
        seen.iter().filter(|seen| seen.is_answered_by(rule)).filter_map(RecordedModelRequest::reply).cloned().collect()
    }

    /// Waits until this rule has answered `count` requests.
    ///
    /// # Panics
    /// If it has not within a minute.
    pub fn wait_for(&self, rule: &str, count: usize) {
        let came = self.server.records.wait_for(count, |seen| seen.is_answered_by(rule));
        assert!(came.is_some(), "{rule} was not asked for {count} times: {:#?}", self.requests());
    }

    /// Waits without a timeout for the request with this number, from 1.
    pub fn wait_for_request(&self, number: usize) -> RecordedModelRequest {
        self.server.records.wait(number)
    }

    /// The reported usage of this rule's complete replies.
    pub fn rule_usage(&self, rule: &str) -> TokenUsage {
        self.usage(ReplyEnd::Whole, |reply| reply.rule.as_deref() == Some(rule))
    }

    /// The usage of this rule's interrupted replies. Some clients count what they read of it.
    pub fn interrupted_usage(&self, rule: &str) -> TokenUsage {
        self.usage(ReplyEnd::Broken, |reply| reply.rule.as_deref() == Some(rule))
    }

    /// The usage of replies without a rule: side requests and the default.
    pub fn default_usage(&self) -> TokenUsage {
        self.usage(ReplyEnd::Whole, |reply| reply.rule.is_none())
    }

    fn usage(&self, end: ReplyEnd, fits: impl Fn(&ModelReplyRecord) -> bool) -> TokenUsage {
        let seen = self.requests();
        let replies = seen.iter().filter_map(RecordedModelRequest::reply);
        replies.filter(|reply| reply.end == end && fits(reply)).map(|reply| reply.usage).sum()
    }
}

impl Drop for ScriptedModel {
    fn drop(&mut self) {
        self.end.take();
        if let Some(thread) = self.thread.take() {
            // The thread panics only if the test already failed.
            thread.join().ok();
        }
    }
}
