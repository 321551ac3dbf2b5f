//! Replays conversations of the Agent Client Protocol.
//!
//! In a script, `> METHOD ID` is a request of the client, `> answer ID` a response of the client, `< JSON` a message of
//! the agent, and `eof` the end of the agent. `| TEXT` is agent output that is no message. After `silence` the agent
//! sends nothing more and keeps running.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::future;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use std::{env, fs};

use futures_util::{sink, stream};
use serde_json::Value;
use signoff_core::settings::AgentKind::Acp;
use signoff_engine::builtin::acp::{AcpArgs, AcpJob, run_conversation};
use tokio::sync::{mpsc, oneshot};

use crate::agents::replay::render_recording;

/// A buffer that collects the printed output.
#[derive(Clone, Default)]
struct SharedOutput(Arc<Mutex<Vec<u8>>>);

impl io::Write for SharedOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Replays a conversation and compares the printed output with the stored recording. Returns the requests of the client
/// (without the handshake), the displayed lines and the summary.
#[expect(clippy::disallowed_methods, reason = "UPDATE_RECORDINGS=1 writes the files instead of comparing them")]
pub fn replay_conversation(name: &str, args: AcpArgs) -> String {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/agents/acp");
    let script = fs::read_to_string(directory.join(format!("{name}.conversation"))).unwrap();
    let (printed, sent) = run_script(&script, args);
    let recorded = directory.join(format!("{name}.stdout"));
    if env::var_os("UPDATE_RECORDINGS").is_some() {
        fs::write(&recorded, &printed).unwrap();
    }
    assert_eq!(String::from_utf8_lossy(&printed), fs::read_to_string(&recorded).unwrap(), "{name}.stdout");
    format!("{sent}---\n{}", render_recording(Acp, name))
}

fn run_script(script: &str, args: AcpArgs) -> (Vec<u8>, String) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (to_agent, from_client) = mpsc::unbounded_channel();
        let (to_client, from_agent) = mpsc::unbounded_channel();
        let (stop, stopped) = oneshot::channel();
        let printed = SharedOutput::default();
        // A silent agent times out at once; all others answer immediately.
        let handshake_timeout = if script.contains("silence") { Duration::ZERO } else { Duration::from_secs(60) };
        let (prompt, directory) = ("Do it.".to_owned(), "/work/repo".into());
        let job = AcpJob { args, prompt, directory, handshake_timeout };
        let sent_lines = sink::unfold(to_agent, |to_agent, line: String| async {
            to_agent.send(line).map_err(io::Error::other)?;
            Ok(to_agent)
        });
        let lines = stream::unfold(from_agent, |mut from_agent: mpsc::UnboundedReceiver<String>| async {
            let line = from_agent.recv().await?;
            Some((Ok(line), from_agent))
        });
        let stop_requested = Box::pin(async {
            if stopped.await.is_err() {
                future::pending::<()>().await;
            }
        });
        let client = run_conversation(Box::pin(sent_lines), Box::pin(lines), job, printed.clone(), stop_requested);
        let agent = ScriptedAgent { from_client, to_client: Some(to_client), stop: Some(stop), ids: BTreeMap::new() };
        let (_, sent) = tokio::join!(client, agent.play(script));
        let printed = printed.0.lock().unwrap().clone();
        (printed, sent)
    })
}

/// Plays the agent's side of a script.
struct ScriptedAgent {
    from_client: mpsc::UnboundedReceiver<String>,
    /// The agent's stdout; `None` once it ended.
    to_client: Option<mpsc::UnboundedSender<String>>,
    stop: Option<oneshot::Sender<()>>,
    /// Maps the request ids of the script to those that the client uses now.
    ids: BTreeMap<String, Value>,
}

impl ScriptedAgent {
    async fn play(mut self, script: &str) -> String {
        let mut sent = String::new();
        for line in script.lines() {
            match (line.split_once(' '), line) {
                (Some((">", expected)), _) => self.expect(expected, &mut sent).await,
                (Some(("<", message)), _) => self.send_message(message),
                (Some(("|", text)), _) => self.to_client.as_ref().unwrap().send(text.to_owned()).unwrap(),
                (_, "silence") => while self.from_client.recv().await.is_some() {},
                (_, "eof") => drop(self.to_client.take()),
                _ => panic!("{line}"),
            }
        }
        sent
    }

    async fn expect(&mut self, expected: &str, sent: &mut String) {
        let (method, id) = expected.split_once(' ').unwrap_or((expected, ""));
        if method == "session/cancel" {
            self.stop.take().unwrap().send(()).unwrap();
        }
        let line = self.from_client.recv().await.unwrap();
        let line: Value = serde_json::from_str(&line).unwrap();
        if method == "answer" {
            writeln!(sent, "answers {}", line["result"]["outcome"]["optionId"]).unwrap();
            return;
        }
        assert_eq!(line["method"], method);
        self.ids.insert(id.to_owned(), line["id"].clone());
        if method == "initialize" {
            let offered =
                r#"{"fs":{"readTextFile":false,"writeTextFile":false},"terminal":false,"auth":{"terminal":false}}"#;
            assert_eq!(line["params"]["clientCapabilities"].to_string(), offered);
        } else if method != "session/prompt" {
            writeln!(sent, "{method} {}", line["params"]).unwrap();
        }
    }

    fn send_message(&self, message: &str) {
        let mut message: Value = serde_json::from_str(message).unwrap();
        if message.get("method").is_none() {
            message["id"] = self.ids[&message["id"].to_string()].clone();
        }
        self.to_client.as_ref().unwrap().send(message.to_string()).unwrap();
    }
}
