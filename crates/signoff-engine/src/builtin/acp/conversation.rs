//! One conversation with an agent: handshake, session, model and prompt.

use std::borrow::Cow;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    CancelNotification, ContentBlock, HttpHeader, Implementation, InitializeRequest, InitializeResponse,
    LoadSessionRequest, McpServer, McpServerHttp, NewSessionRequest, PermissionOptionKind, PromptRequest,
    RequestPermissionOutcome, RequestPermissionRequest, RequestPermissionResponse, SelectedPermissionOutcome,
    SessionConfigOption, SessionConfigOptionCategory, SessionId, SessionNotification, SetSessionConfigOptionRequest,
    TextContent, ToolKind,
};
use agent_client_protocol::{
    Agent, Client, Error, Lines, is_connection_terminated, is_incoming_transport_closed, on_receive_notification,
    on_receive_request,
};
use futures_util::{Sink, Stream, StreamExt};
use serde::Deserialize;
use serde::de::IgnoredAny;
use signoff_core::contract::AnswerBlocks;
use signoff_core::policy::TimeSpan;
use tokio::time::timeout;

use super::printer::{LinePrinter, names_report_tool};
use super::{AcpJob, StopFuture};
use crate::agent::acp::AcpLine;
use crate::agent::{REPORT_SERVER, record_unparsed};

/// How a conversation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConversationEnd {
    /// The agent answered or reported an error, and the line was printed.
    Answered,
    /// The connection broke.
    Disconnected,
    /// The agent did not complete the handshake.
    HandshakeFailed,
}

/// The line printer, shared by the handlers and the conversation.
type SharedPrinter<W> = Arc<Mutex<LinePrinter<W>>>;

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs a conversation over the agent's pipes until the prompt is answered or `stop` resolves.
pub async fn run_conversation<W: Write + Send + 'static>(
    to_agent: impl Sink<String, Error = io::Error> + Send + 'static,
    from_agent: impl Stream<Item = io::Result<String>> + Send + 'static,
    job: AcpJob,
    out: W,
    stop: StopFuture,
) -> ConversationEnd {
    let first_lines = Arc::new(Mutex::new(FirstLines::default()));
    let printer = Arc::new(Mutex::new(LinePrinter::new(out, job.args.resume_session.is_some())));
    let from_agent = observe(from_agent, Arc::clone(&first_lines), printer.clone());
    let (update_printer, request_printer, end_printer) = (printer.clone(), printer.clone(), printer.clone());
    let reads = job.args.read_only;
    let outcome = Client
        .v1()
        .name(REPORT_SERVER)
        .on_receive_notification(
            async move |notification: SessionNotification, _| {
                lock(&update_printer).apply(notification.update);
                Ok(())
            },
            on_receive_notification!(),
        )
        .on_receive_request(
            async move |request: RequestPermissionRequest, responder, _| {
                let allowed = is_allowed(&request, reads);
                let (id, fields) = (request.tool_call.tool_call_id.clone(), &request.tool_call.fields);
                lock(&request_printer).print_permission(id, fields, allowed);
                responder.respond(RequestPermissionResponse::new(answer(&request, allowed)))
            },
            on_receive_request!(),
        )
        .connect_with(Lines::new(to_agent, from_agent), async move |agent| {
            Conversation { agent, printer: end_printer, job }.run(stop).await
        })
        .await;
    finish(&mut lock(&printer), outcome, &lock(&first_lines))
}

/// What an agent's first lines show.
#[derive(Debug, Default)]
struct FirstLines {
    /// The first line.
    first: Option<String>,
    /// Whether the agent implements the protocol. `false` if it echoes its input. `None` if unknown.
    is_acp_agent: Option<bool>,
}

impl FirstLines {
    fn record(&mut self, line: &str) {
        if self.is_acp_agent.is_none() && !line.trim().is_empty() {
            self.is_acp_agent = is_protocol_message(line);
            self.first.get_or_insert_with(|| line.trim().to_owned());
        }
    }
}

/// Whether a line is a protocol message and not an echo of the handshake. `None` for any other line.
fn is_protocol_message(line: &str) -> Option<bool> {
    #[derive(Deserialize)]
    struct JsonRpcMessage<'a> {
        #[serde(borrow, rename = "jsonrpc")]
        _version: Cow<'a, str>,
        #[serde(borrow, default)]
        method: Option<Cow<'a, str>>,
    }
    let JsonRpcMessage { method, .. } = serde_json::from_str(line).ok()?;
    Some(method.as_deref() != Some("initialize"))
}

/// Passes lines on, records the first ones, and reports messages that cannot be parsed.
fn observe<W: Write + Send + 'static>(
    from_agent: impl Stream<Item = io::Result<String>> + Send + 'static,
    first_lines: Arc<Mutex<FirstLines>>,
    printer: SharedPrinter<W>,
) -> impl Stream<Item = io::Result<String>> + Send + 'static {
    from_agent.inspect(move |line| {
        if let Ok(line) = line {
            lock(&first_lines).record(line);
            if let Some(line) = unparsed(line) {
                lock(&printer).print_unparsed(line);
            }
        }
    })
}

/// The beginning of a line that may be part of a message and cannot be parsed.
fn unparsed(line: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct SessionUpdateMessage {
        #[serde(rename = "params")]
        _params: SessionNotification,
    }
    const MESSAGE: &str = "agent_message_chunk";
    let is_read = !line.contains(MESSAGE) || serde_json::from_str::<SessionUpdateMessage>(line).is_ok();
    let mut unparsed_lines = AnswerBlocks::default();
    if !is_read || serde_json::from_str::<IgnoredAny>(line).is_err() {
        record_unparsed(line, MESSAGE, &mut unparsed_lines);
    }
    unparsed_lines.join().unreadable
}

/// Prefix of our own error for a missing handshake.
const NO_HANDSHAKE: &str = "it did not complete the handshake";

fn finish<W: Write>(printer: &mut LinePrinter<W>, outcome: Result<(), Error>, first: &FirstLines) -> ConversationEnd {
    printer.close();
    match outcome {
        Ok(()) => ConversationEnd::Answered,
        Err(error) if first.is_acp_agent != Some(true) => {
            let late = || error.message.starts_with(NO_HANDSHAKE).then(|| error.message.clone());
            let echoes = first.is_acp_agent.map(|_| "it echoes its input".to_owned());
            printer.print(&AcpLine::HandshakeFailed { output: echoes.or_else(|| first.first.clone()).or_else(late) });
            ConversationEnd::HandshakeFailed
        }
        Err(error) if is_connection_terminated(&error) || is_incoming_transport_closed(&error) => {
            ConversationEnd::Disconnected
        }
        Err(error) => {
            let message = error_text(&error);
            let code = provider_status(&error, &message).unwrap_or(error.code.value());
            printer.print(&AcpLine::Error { code: Some(code), message });
            ConversationEnd::Answered
        }
    }
}

/// The text of an error. Agents put it into one of two fields, and our own errors into a third.
fn error_text(error: &Error) -> String {
    let data = error.data.as_ref();
    let details = data.and_then(|data| data.as_str().or_else(|| data.get("details")?.as_str()));
    details.unwrap_or(&error.message).to_owned()
}

/// The provider's HTTP status, if the agent reports only its text. opencode marks these errors.
fn provider_status(error: &Error, text: &str) -> Option<i32> {
    let error_name = error.data.as_ref().and_then(|data| data.get("errorName")?.as_str());
    let statuses = text.split(|char: char| !char.is_ascii_alphanumeric()).filter_map(|word| word.parse().ok());
    error_name.filter(|name| *name == "APIError").and(statuses.into_iter().find(|status| (400..600).contains(status)))
}

struct Conversation<W> {
    agent: ConnectionTo<Agent>,
    printer: SharedPrinter<W>,
    job: AcpJob,
}

impl<W: Write> Conversation<W> {
    async fn run(self, stop: StopFuture) -> Result<(), Error> {
        let version = Implementation::new(REPORT_SERVER, env!("CARGO_PKG_VERSION"));
        let request = InitializeRequest::new(ProtocolVersion::V1).client_info(version);
        let Ok(response) = timeout(self.job.handshake_timeout, self.agent.send_request(request).block_task()).await
        else {
            let limit = TimeSpan { seconds: self.job.handshake_timeout.as_secs() };
            let message = format!("{NO_HANDSHAKE} within {limit}");
            return Err(Error::new(-32603, message));
        };
        let response = response?;
        if response.protocol_version != ProtocolVersion::V1 {
            return Err(Error::new(-32600, "it uses another version of the protocol"));
        }
        let servers = self.servers(&response);
        let (session, options) = self.session(&response, servers).await?;
        lock(&self.printer).print(&AcpLine::Session { id: session.to_string() });
        self.select_model(&session, &options).await?;
        lock(&self.printer).start_answer();
        self.prompt(session, stop).await
    }

    /// The report server. The token is sent only to the agent.
    fn servers(&self, response: &InitializeResponse) -> Vec<McpServer> {
        let Some((url, token)) = &self.job.args.report else { return Vec::new() };
        if !response.agent_capabilities.mcp_capabilities.http {
            lock(&self.printer).print(&AcpLine::Reports { found: false });
            return Vec::new();
        }
        let header = HttpHeader::new("Authorization", format!("Bearer {token}"));
        vec![McpServer::Http(McpServerHttp::new(REPORT_SERVER, url).headers(vec![header]))]
    }

    async fn session(
        &self,
        response: &InitializeResponse,
        servers: Vec<McpServer>,
    ) -> Result<(SessionId, Vec<SessionConfigOption>), Error> {
        let directory = &self.job.directory;
        let Some(session) = &self.job.args.resume_session else {
            let new = NewSessionRequest::new(directory).mcp_servers(servers);
            let new = self.agent.send_request(new).block_task().await?;
            return Ok((new.session_id, new.config_options.unwrap_or_default()));
        };
        if !response.agent_capabilities.load_session {
            return Err(Error::new(-32601, "it cannot resume a session"));
        }
        let session = SessionId::from(session.clone());
        let load = LoadSessionRequest::new(session.clone(), directory).mcp_servers(servers);
        let loaded = self.agent.send_request(load).block_task().await?;
        Ok((session, loaded.config_options.unwrap_or_default()))
    }

    /// Selects the model. Fails rather than using another model than the requested one.
    async fn select_model(&self, session: &SessionId, options: &[SessionConfigOption]) -> Result<(), Error> {
        let Some(model) = &self.job.args.model else { return Ok(()) };
        let is_model = |option: &&SessionConfigOption| option.category == Some(SessionConfigOptionCategory::Model);
        let Some(option) = options.iter().find(is_model) else {
            let message = format!("model not found: it does not let clients choose {model}; its own arguments may");
            return Err(Error::new(-32602, message));
        };
        let choice = SetSessionConfigOptionRequest::new(session.clone(), option.id.clone(), model.as_str());
        self.agent.send_request(choice).block_task().await?;
        Ok(())
    }

    async fn prompt(self, session: SessionId, stop: StopFuture) -> Result<(), Error> {
        let text = ContentBlock::Text(TextContent::new(self.job.prompt));
        let request = self.agent.send_request(PromptRequest::new(session.clone(), vec![text]));
        let mut answer = Box::pin(request.block_task());
        let response = tokio::select! {
            response = &mut answer => response?,
            () = stop => {
                self.agent.send_notification(CancelNotification::new(session))?;
                answer.await?
            }
        };
        let mut printer = lock(&self.printer);
        printer.close();
        printer.print_end(&response);
        Ok(())
    }
}

/// Whether a request is granted. A writer may do anything; a reader may read, search, think and report.
pub fn is_allowed(request: &RequestPermissionRequest, read_only: bool) -> bool {
    let kind = request.tool_call.fields.kind.unwrap_or_default();
    !read_only || matches!(kind, ToolKind::Read | ToolKind::Search | ToolKind::Think) || is_report(request, kind)
}

/// Whether the request is for our report tool. Commands have another kind, so they cannot imitate its names.
fn is_report(request: &RequestPermissionRequest, kind: ToolKind) -> bool {
    let id = request.tool_call.tool_call_id.0.as_ref();
    let is_named = id.starts_with(&format!("mcp_{REPORT_SERVER}_")) || names_report_tool(&request.tool_call.fields);
    kind == ToolKind::Other && is_named
}

/// The response, selected from the options the agent offers. Prefers the option for this one call.
pub fn answer(request: &RequestPermissionRequest, allowed: bool) -> RequestPermissionOutcome {
    let kinds = if allowed {
        [PermissionOptionKind::AllowOnce, PermissionOptionKind::AllowAlways]
    } else {
        [PermissionOptionKind::RejectOnce, PermissionOptionKind::RejectAlways]
    };
    let option = kinds.iter().find_map(|kind| request.options.iter().find(|option| option.kind == *kind));
    match option {
        Some(option) => RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new(option.option_id.clone())),
        None => RequestPermissionOutcome::Cancelled,
    }
}
