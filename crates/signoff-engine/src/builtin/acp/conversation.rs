//! A whole conversation with an agent: it is greeted, given a session, a model and the prompt.

use std::borrow::Cow;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    CancelNotification, ContentBlock, HttpHeader, Implementation, InitializeRequest, InitializeResponse,
    LoadSessionRequest, McpServer, McpServerHttp, NewSessionRequest, PromptRequest, RequestPermissionRequest,
    RequestPermissionResponse, SessionConfigOption, SessionConfigOptionCategory, SessionId,
    SessionNotification, SetSessionConfigOptionRequest, TextContent,
};
use agent_client_protocol::{
    Agent, Client, Error, Lines, is_connection_terminated, is_incoming_transport_closed,
    on_receive_notification, on_receive_request,
};
use futures_util::{Sink, Stream, StreamExt};
use serde::Deserialize;
use serde::de::IgnoredAny;
use signoff_core::contract::Blocks;
use tokio::time::timeout;

use super::order::Job;
use super::teller::Teller;
use super::{Stop, permission};
use crate::agent::acp::line::Line;
use crate::agent::{SERVER, note_unread};

/// How a conversation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// With a word that is printed, well or not.
    Said,
    /// The agent went away.
    Broken,
    /// It did not answer the greeting.
    Unspoken,
}

/// Lines are told by those who answer and by those who ask.
struct Shared<W>(Arc<Mutex<Teller<W>>>);

impl<W> Clone for Shared<W> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<W> Shared<W> {
    fn lock(&self) -> MutexGuard<'_, Teller<W>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Speaks with an agent over its pipes until it has answered the prompt, or until it is to stop.
pub async fn converse<W: Write + Send + 'static>(
    told: impl Sink<String, Error = io::Error> + Send + 'static,
    said: impl Stream<Item = io::Result<String>> + Send + 'static,
    job: Job,
    (out, stop): (W, Stop),
) -> Ended {
    let opening = Arc::new(Mutex::new(Opening::default()));
    let teller = Shared(Arc::new(Mutex::new(Teller::new(out, job.order.resumes.is_some()))));
    let said = overheard(said, (Arc::clone(&opening), teller.clone()));
    let (hears, answers, asks) = (teller.clone(), teller.clone(), teller.clone());
    let reads = job.order.reads;
    let outcome = Client
        .v1()
        .name(SERVER)
        .on_receive_notification(
            async move |notification: SessionNotification, _| {
                hears.lock().take(notification.update);
                Ok(())
            },
            on_receive_notification!(),
        )
        .on_receive_request(
            async move |request: RequestPermissionRequest, responder, _| {
                let allowed = permission::is_allowed(&request, reads);
                let (id, fields) = (request.tool_call.tool_call_id.clone(), &request.tool_call.fields);
                answers.lock().asked_for(id, fields, allowed);
                responder.respond(RequestPermissionResponse::new(permission::answer(&request, allowed)))
            },
            on_receive_request!(),
        )
        .connect_with(Lines::new(told, said), async move |agent| {
            Conversation { agent, teller: asks, job }.run(stop).await
        })
        .await;
    close(&mut teller.lock(), outcome, &opening.lock().unwrap_or_else(PoisonError::into_inner))
}

/// What is known of an agent from its first lines.
#[derive(Debug, Default)]
struct Opening {
    /// The first line that it said.
    first: Option<String>,
    /// Whether it said something that the protocol knows. Who says again what it was told does not.
    speaks: Option<bool>,
}

impl Opening {
    fn hear(&mut self, line: &str) {
        if self.speaks.is_none() && !line.trim().is_empty() {
            self.speaks = is_spoken(line);
            self.first.get_or_insert_with(|| line.trim().to_owned());
        }
    }
}

/// Whether a line is a message of the protocol, and not the greeting come back; nobody knows of other lines.
fn is_spoken(line: &str) -> Option<bool> {
    #[derive(Deserialize)]
    struct Message<'a> {
        #[serde(borrow, rename = "jsonrpc")]
        _version: Cow<'a, str>,
        #[serde(borrow, default)]
        method: Option<Cow<'a, str>>,
    }
    let Message { method, .. } = serde_json::from_str(line).ok()?;
    Some(method.as_deref() != Some("initialize"))
}

/// Hands on what is said, hears how it opens, and tells what the protocol cannot read of a message.
fn overheard<W: Write + Send + 'static>(
    said: impl Stream<Item = io::Result<String>> + Send + 'static,
    (opening, teller): (Arc<Mutex<Opening>>, Shared<W>),
) -> impl Stream<Item = io::Result<String>> + Send + 'static {
    said.inspect(move |line| {
        if let Ok(line) = line {
            opening.lock().unwrap_or_else(PoisonError::into_inner).hear(line);
            if let Some(line) = unread(line) {
                teller.lock().unread(line);
            }
        }
    })
}

/// The beginning of a line that may be a part of a message and is not read as one.
fn unread(line: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Update {
        #[serde(rename = "params")]
        _params: SessionNotification,
    }
    const MESSAGE: &str = "agent_message_chunk";
    let is_read = !line.contains(MESSAGE) || serde_json::from_str::<Update>(line).is_ok();
    let mut noted = Blocks::default();
    if !is_read || serde_json::from_str::<IgnoredAny>(line).is_err() {
        note_unread(line.as_bytes(), MESSAGE, &mut noted);
    }
    noted.join().unreadable
}

/// How an error of ours begins.
const UNANSWERED: &str = "it did not answer the greeting";

fn close<W: Write>(teller: &mut Teller<W>, outcome: Result<(), Error>, opening: &Opening) -> Ended {
    teller.close();
    match outcome {
        Ok(()) => Ended::Said,
        Err(error) if opening.speaks != Some(true) => {
            let late = || error.message.starts_with(UNANSWERED).then(|| error.message.clone());
            let echoes = opening.speaks.map(|_| "it says again what it is told".to_owned());
            teller.tell(&Line::Unspoken { said: echoes.or_else(|| opening.first.clone()).or_else(late) });
            Ended::Unspoken
        }
        Err(error) if is_connection_terminated(&error) || is_incoming_transport_closed(&error) => {
            Ended::Broken
        }
        Err(error) => {
            let message = words(&error);
            let code = status(&error, &message).unwrap_or(error.code.value());
            teller.tell(&Line::Error { code: Some(code), message });
            Ended::Said
        }
    }
}

/// An error's own words: agents put them into one of two places, and what breaks on our side into a third.
fn words(error: &Error) -> String {
    let data = error.data.as_ref();
    let details = data.and_then(|data| data.as_str().or_else(|| data.get("details")?.as_str()));
    details.unwrap_or(&error.message).to_owned()
}

/// The status that a provider answered with, where an agent tells its words alone: opencode says whose error it is.
fn status(error: &Error, words: &str) -> Option<i32> {
    let whose = error.data.as_ref().and_then(|data| data.get("errorName")?.as_str());
    let statuses =
        words.split(|char: char| !char.is_ascii_alphanumeric()).filter_map(|word| word.parse().ok());
    whose
        .filter(|whose| *whose == "APIError")
        .and(statuses.into_iter().find(|status| (400..600).contains(status)))
}

struct Conversation<W> {
    agent: ConnectionTo<Agent>,
    teller: Shared<W>,
    job: Job,
}

impl<W: Write> Conversation<W> {
    async fn run(self, stop: Stop) -> Result<(), Error> {
        let version = Implementation::new(SERVER, env!("CARGO_PKG_VERSION"));
        let greeting = InitializeRequest::new(ProtocolVersion::V1).client_info(version);
        let Ok(capable) = timeout(self.job.greeting, self.agent.send_request(greeting).block_task()).await
        else {
            let message = format!("{UNANSWERED} within {:?}", self.job.greeting);
            return Err(Error::new(-32603, message));
        };
        let capable = capable?;
        if capable.protocol_version != ProtocolVersion::V1 {
            return Err(Error::new(-32600, "it speaks another version of the protocol"));
        }
        let servers = self.servers(&capable);
        let (session, options) = self.session(&capable, servers).await?;
        self.teller.lock().tell(&Line::Session { id: session.to_string() });
        self.choose_model(&session, &options).await?;
        self.teller.lock().ask();
        self.prompt(session, stop).await
    }

    /// The server that it reports to. The token is sent to the agent alone.
    fn servers(&self, capable: &InitializeResponse) -> Vec<McpServer> {
        let Some((url, token)) = &self.job.order.report else { return Vec::new() };
        if !capable.agent_capabilities.mcp_capabilities.http {
            self.teller.lock().tell(&Line::Reports { found: false });
            return Vec::new();
        }
        let header = HttpHeader::new("Authorization", format!("Bearer {token}"));
        vec![McpServer::Http(McpServerHttp::new(SERVER, url).headers(vec![header]))]
    }

    async fn session(
        &self,
        capable: &InitializeResponse,
        servers: Vec<McpServer>,
    ) -> Result<(SessionId, Vec<SessionConfigOption>), Error> {
        let directory = &self.job.directory;
        let Some(session) = &self.job.order.resumes else {
            let new = NewSessionRequest::new(directory).mcp_servers(servers);
            let new = self.agent.send_request(new).block_task().await?;
            return Ok((new.session_id, new.config_options.unwrap_or_default()));
        };
        if !capable.agent_capabilities.load_session {
            return Err(Error::new(-32601, "it cannot go on with a session"));
        }
        let session = SessionId::from(session.clone());
        let load = LoadSessionRequest::new(session.clone(), directory).mcp_servers(servers);
        let loaded = self.agent.send_request(load).block_task().await?;
        Ok((session, loaded.config_options.unwrap_or_default()))
    }

    /// Another model than the one that was asked for is never used.
    async fn choose_model(&self, session: &SessionId, options: &[SessionConfigOption]) -> Result<(), Error> {
        let Some(model) = &self.job.order.model else { return Ok(()) };
        let is_model =
            |option: &&SessionConfigOption| option.category == Some(SessionConfigOptionCategory::Model);
        let Some(option) = options.iter().find(is_model) else {
            let message = format!("model not found: it lets nobody choose {model}; its own arguments may");
            return Err(Error::new(-32602, message));
        };
        let choice = SetSessionConfigOptionRequest::new(session.clone(), option.id.clone(), model.as_str());
        self.agent.send_request(choice).block_task().await?;
        Ok(())
    }

    async fn prompt(self, session: SessionId, stop: Stop) -> Result<(), Error> {
        let text = ContentBlock::Text(TextContent::new(self.job.prompt));
        let asked = self.agent.send_request(PromptRequest::new(session.clone(), vec![text]));
        let mut answer = Box::pin(asked.block_task());
        let response = tokio::select! {
            response = &mut answer => response?,
            () = stop => {
                self.agent.send_notification(CancelNotification::new(session))?;
                answer.await?
            }
        };
        let mut teller = self.teller.lock();
        teller.close();
        teller.end(&response);
        Ok(())
    }
}
