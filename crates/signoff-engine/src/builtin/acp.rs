//! `signoff __acp … -- COMMAND…`: starts an agent that speaks the Agent Client Protocol, gives it the prompt from stdin,
//! answers what it asks, and prints what it says as the lines of [`crate::agent::acp::line`].
//!
//! It offers neither files nor terminals: the agent works by itself. Their end is the same: when this process ends, the
//! agent's stdin does, and both are of one process group.

mod conversation;
mod order;
mod permission;
mod teller;

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::pin::Pin;
use std::process::{ExitCode, Stdio};
use std::time::Duration;
use std::{env, fmt};

use futures_util::{Sink, SinkExt, StreamExt, future, sink, stream};
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;
use tokio::time::timeout;
use tokio_util::bytes::Bytes;
use tokio_util::codec::{
    AnyDelimiterCodec, AnyDelimiterCodecError, FramedRead, FramedWrite, LinesCodec, LinesCodecError,
};

use crate::agent::acp::SILENT;

pub use conversation::{Ended, converse};
pub use order::{Job, Order};

/// A message of an agent that is longer is none.
const LONGEST: usize = 32 * 1024 * 1024;

/// So long an agent may take to answer the greeting.
const GREETED: Duration = Duration::from_secs(30);

/// How long is listened to one that does not listen.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// So long an agent may take to end when all is said.
const PATIENCE: Duration = Duration::from_secs(5);

/// Resolves when the conversation must end.
pub type Stop = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The program. Its arguments are those behind `__acp`.
pub fn run(arguments: &[OsString]) -> ExitCode {
    match work(arguments) {
        Ok(code) => code,
        Err(error) => {
            complain(&error);
            ExitCode::FAILURE
        }
    }
}

fn work(arguments: &[OsString]) -> io::Result<ExitCode> {
    let words = arguments.iter().map(|word| word.to_string_lossy().into_owned());
    let order = Order::read(words, &variable).map_err(io::Error::other)?;
    let mut prompt = String::new();
    io::stdin().read_to_string(&mut prompt)?;
    let job = Job { order, prompt, directory: env::current_dir()?, greeting: GREETED };
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(with_agent(job))
}

async fn with_agent(job: Job) -> io::Result<ExitCode> {
    let stop = asked_to_stop()?;
    let mut agent = start(&job.order)?;
    let (Some(stdin), Some(stdout)) = (agent.stdin.take(), agent.stdout.take()) else {
        return Err(io::Error::other("the agent has no pipes"));
    };
    let lines = AnyDelimiterCodec::new_with_max_length(b"\n".to_vec(), Vec::new(), LONGEST);
    let text = |line: Bytes| String::from_utf8_lossy(&line).into_owned();
    let said = FramedRead::new(stdout, lines).map(move |line| line.map(text).map_err(unread));
    let told = FramedWrite::new(stdin, LinesCodec::new());
    let told = SinkExt::<String>::sink_map_err(told, broken);
    let (over, all_heard) = oneshot::channel();
    let said = said.chain(stream::once(async { drop(over) }).filter_map(|()| future::ready(None)));
    let ended = converse(unless_heard(told, all_heard), said, job, (io::stdout(), stop)).await;
    let code = close(&mut agent).await;
    Ok(match ended {
        Ended::Said => ExitCode::SUCCESS,
        // It broke off: its own code tells more than any of ours.
        Ended::Broken => ExitCode::from(code.filter(|code| *code != 0).unwrap_or(1)),
        Ended::Unspoken => ExitCode::from(code.filter(|code| *code != 0).unwrap_or(SILENT)),
    })
}

/// Who listens no more may have said why: telling it something fails once all of that was heard.
fn unless_heard(
    told: impl Sink<String, Error = io::Error> + Send + Unpin + 'static,
    all_heard: oneshot::Receiver<()>,
) -> impl Sink<String, Error = io::Error> + Send + 'static {
    sink::unfold((told, all_heard), |(mut told, all_heard), line: String| async move {
        match told.send(line).await {
            Ok(()) => Ok((told, all_heard)),
            Err(error) => {
                timeout(LAST_WORDS, all_heard).await.ok();
                Err(error)
            }
        }
    })
}

/// Starts the agent, which says what is wrong on our stderr.
fn start(order: &Order) -> io::Result<Child> {
    let mut command = Command::new(&order.program);
    command.args(&order.arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
    command.spawn().map_err(|error| io::Error::other(format!("cannot start {}: {error}", order.program)))
}

/// Waits for an agent whose stdin is closed.
async fn close(agent: &mut Child) -> Option<u8> {
    match timeout(PATIENCE, agent.wait()).await {
        Ok(status) => status.ok()?.code().and_then(|code| u8::try_from(code).ok()),
        Err(_) => {
            agent.kill().await.ok();
            None
        }
    }
}

fn asked_to_stop() -> io::Result<Stop> {
    let (mut term, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    Ok(Box::pin(async move {
        tokio::select! {
            _ = term.recv() => {}
            _ = interrupt.recv() => {}
        }
    }))
}

fn unread(error: AnyDelimiterCodecError) -> io::Error {
    match error {
        AnyDelimiterCodecError::Io(error) => error,
        AnyDelimiterCodecError::MaxChunkLengthExceeded => io::Error::other("a message is too long"),
    }
}

fn broken(error: LinesCodecError) -> io::Error {
    match error {
        LinesCodecError::Io(error) => error,
        LinesCodecError::MaxLineLengthExceeded => io::Error::other("a message is too long"),
    }
}

#[expect(clippy::disallowed_methods, reason = "the one place where the token is read")]
fn variable(name: &str) -> Option<String> {
    env::var(name).ok()
}

fn complain(error: &dyn fmt::Display) {
    // Nobody is left to tell when stderr is gone.
    let _ = writeln!(io::stderr(), "signoff: {error}");
}
