//! `signoff __acp … -- COMMAND…`: starts an agent that implements the Agent Client Protocol, sends it the prompt
//! from stdin, answers its requests, and prints its messages as the lines of [`crate::agent::acp::AcpLine`].
//!
//! It offers neither files nor terminals: the agent works by itself. When this process ends, the agent's stdin
//! closes. Both are in one process group.

mod conversation;
mod printer;

use std::env;
use std::ffi::OsString;
use std::io::{self, Read};
use std::path::PathBuf;
use std::pin::Pin;
use std::process::{ExitCode, Stdio};
use std::time::Duration;

use futures_util::{Sink, SinkExt, StreamExt, future, sink, stream};
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;
use tokio::time::timeout;
use tokio_util::bytes::Bytes;
use tokio_util::codec::{
    AnyDelimiterCodec, AnyDelimiterCodecError, FramedRead, FramedWrite, LinesCodec, LinesCodecError,
};

use crate::agent::acp::EXIT_SILENT;

pub use conversation::{ConversationEnd, run_conversation};

/// Maximum length of a message.
const MAX_MESSAGE: usize = 32 * 1024 * 1024;

/// Time limit for the handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(30);

/// How long stdout is read after the agent has closed its stdin.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// Time limit for the agent to exit after the conversation.
const EXIT_TIMEOUT: Duration = Duration::from_secs(5);

/// Resolves when the conversation must end.
pub type StopFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Runs the program. `arguments` are those after `__acp`.
pub fn run(arguments: &[OsString]) -> ExitCode {
    super::exit_code(work(arguments))
}

fn work(arguments: &[OsString]) -> io::Result<ExitCode> {
    let arguments = arguments.iter().map(|argument| argument.to_string_lossy().into_owned());
    let args = AcpArgs::parse(arguments, &variable).map_err(io::Error::other)?;
    let mut prompt = String::new();
    io::stdin().read_to_string(&mut prompt)?;
    let job = AcpJob { args, prompt, directory: env::current_dir()?, handshake_timeout: HANDSHAKE_TIMEOUT };
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(with_agent(job))
}

async fn with_agent(job: AcpJob) -> io::Result<ExitCode> {
    let stop = stop_on_signal()?;
    let mut agent = start(&job.args)?;
    let (Some(stdin), Some(stdout)) = (agent.stdin.take(), agent.stdout.take()) else {
        return Err(io::Error::other("the agent has no pipes"));
    };
    let lines = AnyDelimiterCodec::new_with_max_length(b"\n".to_vec(), Vec::new(), MAX_MESSAGE);
    let text = |line: Bytes| String::from_utf8_lossy(&line).into_owned();
    let from_agent = FramedRead::new(stdout, lines).map(move |line| line.map(text).map_err(read_error));
    let to_agent = FramedWrite::new(stdin, LinesCodec::new());
    let to_agent = SinkExt::<String>::sink_map_err(to_agent, write_error);
    let (drained_sender, drained) = oneshot::channel();
    let from_agent =
        from_agent.chain(stream::once(async { drop(drained_sender) }).filter_map(|()| future::ready(None)));
    let ended = run_conversation(drain_before_error(to_agent, drained), from_agent, job, io::stdout(), stop).await;
    let code = wait_for_exit(&mut agent).await;
    Ok(match ended {
        ConversationEnd::Answered => ExitCode::SUCCESS,
        // The agent exited early, so its own exit code is the most informative.
        ConversationEnd::Disconnected => ExitCode::from(code.filter(|code| *code != 0).unwrap_or(1)),
        ConversationEnd::HandshakeFailed => ExitCode::from(code.filter(|code| *code != 0).unwrap_or(EXIT_SILENT)),
    })
}

/// Delays a write error until the agent's stdout was read to the end, because it may contain the reason.
fn drain_before_error(
    to_agent: impl Sink<String, Error = io::Error> + Send + Unpin + 'static,
    drained: oneshot::Receiver<()>,
) -> impl Sink<String, Error = io::Error> + Send + 'static {
    sink::unfold((to_agent, drained), |(mut to_agent, drained), line: String| async move {
        match to_agent.send(line).await {
            Ok(()) => Ok((to_agent, drained)),
            Err(error) => {
                timeout(DRAIN_TIMEOUT, drained).await.ok();
                Err(error)
            }
        }
    })
}

/// Starts the agent. It shares our stderr.
fn start(args: &AcpArgs) -> io::Result<Child> {
    let mut command = Command::new(&args.program);
    command.args(&args.arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
    command.spawn().map_err(|error| io::Error::other(format!("cannot start {}: {error}", args.program)))
}

/// Waits for an agent whose stdin is closed.
async fn wait_for_exit(agent: &mut Child) -> Option<u8> {
    match timeout(EXIT_TIMEOUT, agent.wait()).await {
        Ok(status) => status.ok()?.code().and_then(|code| u8::try_from(code).ok()),
        Err(_) => {
            agent.kill().await.ok();
            None
        }
    }
}

fn stop_on_signal() -> io::Result<StopFuture> {
    let (mut term, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    Ok(Box::pin(async move {
        tokio::select! {
            _ = term.recv() => {}
            _ = interrupt.recv() => {}
        }
    }))
}

fn read_error(error: AnyDelimiterCodecError) -> io::Error {
    match error {
        AnyDelimiterCodecError::Io(error) => error,
        AnyDelimiterCodecError::MaxChunkLengthExceeded => io::Error::other("a message is too long"),
    }
}

fn write_error(error: LinesCodecError) -> io::Error {
    match error {
        LinesCodecError::Io(error) => error,
        LinesCodecError::MaxLineLengthExceeded => io::Error::other("a message is too long"),
    }
}

#[expect(clippy::disallowed_methods, reason = "the one place where the token is read")]
fn variable(name: &str) -> Option<String> {
    env::var(name).ok()
}

/// The agent to start, and the options besides the prompt.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AcpArgs {
    /// The agent may only read.
    pub read_only: bool,
    /// URL and token of the report server.
    pub report: Option<(String, String)>,
    pub resume_session: Option<String>,
    pub model: Option<String>,
    pub program: String,
    pub arguments: Vec<String>,
}

/// The arguments with the prompt and the working directory.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AcpJob {
    pub args: AcpArgs,
    pub prompt: String,
    /// The agent's working directory.
    pub directory: PathBuf,
    /// Time limit for the handshake.
    pub handshake_timeout: Duration,
}

/// Invalid arguments.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AcpArgsError {
    #[error("{0} is not a flag of `__acp`")]
    Flag(String),
    #[error("`__acp` needs `-- COMMAND`")]
    Command,
    #[error("the variable {0} with the token is not set")]
    Token(String),
}

impl AcpArgs {
    pub fn parse(
        mut arguments: impl Iterator<Item = String>,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, AcpArgsError> {
        let mut args = Self::default();
        while let Some(argument) = arguments.next() {
            let mut next = || arguments.next().ok_or(AcpArgsError::Command);
            match argument.as_str() {
                "--read" => args.read_only = true,
                "--report" => {
                    let (url, name) = (next()?, next()?);
                    args.report = Some((url, variable(&name).ok_or(AcpArgsError::Token(name))?));
                }
                "--resume" => args.resume_session = Some(next()?),
                "--model" => args.model = Some(next()?),
                "--" => {
                    args.program = next()?;
                    args.arguments = arguments.collect();
                    return Ok(args);
                }
                _ => return Err(AcpArgsError::Flag(argument)),
            }
        }
        Err(AcpArgsError::Command)
    }
}
