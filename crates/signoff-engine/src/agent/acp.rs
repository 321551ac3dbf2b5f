//! `kind = "acp"`: any agent that speaks the Agent Client Protocol. `signoff __acp` speaks it, and prints the lines of
//! [`mod@line`], which are read here.

pub mod line;

use std::borrow::Cow;
use std::ffi::OsStr;
use std::path::Path;

use signoff_core::contract::Blocks;
use signoff_core::heard::{Heard, Said, Spent, Tokens, Trouble, TroubleKind};

use super::bounded;
use super::gemini::{self, Gemini};
use super::line::{note_unread, whole};
use super::opencode::Opencode;
use super::{
    Account, Agent, Closing, CommandLine, Duty, Laid, Listener, Order, Reporting, api_error, glance,
    last_words, refusal,
};
use line::Line;

/// The hidden first argument of the part that speaks the protocol.
pub const SPEAK: &str = "__acp";

/// What that part ends with where an agent said nothing, and ended as if all were well or not at all.
pub const SILENT: u8 = 3;

pub struct Acp;

impl Agent for Acp {
    fn command_line(&self, order: &Order<'_>) -> CommandLine {
        let (program, first) = order.program("");
        let Known { words, model, environment, files } = known(&program, order);
        let flags = flags(&Order { model: order.model.filter(|_| !model), ..*order });
        let speaks = [SPEAK.to_owned()].into_iter().chain(flags).chain(["--".to_owned()]);
        let agent = [program.clone()].into_iter().chain(first).chain(words);
        CommandLine {
            program: order.program.to_owned(),
            arguments: speaks.chain(agent).chain(order.agent.args.iter().cloned()).collect(),
            environment,
            files,
        }
    }

    fn listener(&self) -> Box<dyn Listener> {
        Box::new(Stream::default())
    }
}

/// What `__acp` must know. The token stays in its variable.
fn flags(order: &Order<'_>) -> Vec<String> {
    let mut flags = Vec::new();
    if order.duty == Duty::Read {
        flags.push("--read".to_owned());
    }
    if let Some(Reporting { url, variable }) = order.reporting {
        flags.extend(["--report".to_owned(), url.to_owned(), variable.to_owned()]);
    }
    if let Some(session) = order.resumes {
        flags.extend(["--resume".to_owned(), session.to_owned()]);
    }
    if let Some(model) = order.model {
        flags.extend(["--model".to_owned(), model.to_owned()]);
    }
    flags
}

/// What is known of an agent besides the protocol.
#[derive(Default)]
struct Known {
    words: Vec<String>,
    /// Whether these words choose the model.
    model: bool,
    environment: Vec<(String, Option<String>)>,
    files: Vec<Laid>,
}

/// What an agent needs that is known by its name: the protocol cannot keep an agent from what it does not ask for, so what
/// its own adapter lays around it is laid here too. The server for reports comes with the protocol.
fn known(program: &str, order: &Order<'_>) -> Known {
    let order = &Order { reporting: None, ..*order };
    match Path::new(program).file_name().and_then(OsStr::to_str) {
        Some("opencode") => {
            let CommandLine { environment, files, .. } = Opencode.command_line(order);
            Known { environment, files, ..Known::default() }
        }
        Some("gemini") => {
            let CommandLine { environment, files, .. } = Gemini.command_line(order);
            let files = files.into_iter().map(|file| with_questions(file, order)).collect();
            Known { words: gemini_words(order), model: true, environment, files }
        }
        Some(_) | None => Known::default(),
    }
}

/// Its rules without the last: it would deny our own tool here too. What they do not name is asked for, and refused.
fn with_questions(file: Laid, order: &Order<'_>) -> Laid {
    match file {
        Laid::Text { path, .. } if path == gemini::rules(order) => {
            Laid::Text { path, text: gemini::READING.to_owned() }
        }
        Laid::Text { .. } | Laid::Copy { .. } | Laid::Link { .. } => file,
    }
}

/// In its plan mode it would call no tool of ours, so its rules alone hold a reader.
fn gemini_words(order: &Order<'_>) -> Vec<String> {
    let mut words = vec!["--skip-trust".to_owned(), "-e".to_owned(), "none".to_owned()];
    if order.duty == Duty::Read {
        words.extend(["--policy".to_owned(), gemini::rules(order).display().to_string()]);
    }
    words.extend(order.model.into_iter().flat_map(|model| ["-m".to_owned(), model.to_owned()]));
    words
}

/// What was said so far.
#[derive(Debug, Default)]
struct Stream {
    heard: Heard,
    /// What it said since it last used a tool.
    message: Blocks,
    /// What it spent, all in all.
    dollars: Option<f64>,
    ended: bool,
    /// It did not answer the greeting; what it said instead.
    unspoken: Option<Option<String>>,
}

impl Listener for Stream {
    fn line(&mut self, line: &[u8]) -> Vec<Said> {
        let raw = whole(line);
        match serde_json::from_slice(&raw) {
            Ok(line) => self.take(line).into_iter().collect(),
            Err(_) => {
                note_unread(&raw, "text", &mut self.message);
                Vec::new()
            }
        }
    }

    fn ended(&mut self, end: &Closing<'_>) -> Account {
        if !self.ended {
            let unspoken = self.unspoken.take();
            self.heard.trouble.get_or_insert_with(|| match unspoken {
                Some(said) => not_understood(said, end),
                None => end.without_a_word(),
            });
        }
        self.price();
        Account::new(std::mem::take(&mut self.message), std::mem::take(&mut self.heard))
    }
}

impl Stream {
    fn take(&mut self, line: Line) -> Option<Said> {
        match line {
            Line::Session { id } => self.heard.session = Some(id),
            Line::Text { text, begins } => {
                if begins {
                    self.message.end_block();
                }
                self.message.push(&text);
                let shown = text.trim_end();
                return (!shown.is_empty()).then(|| Said::Text(shown.to_owned()));
            }
            Line::Tool { name, about } => {
                self.message.clear();
                return Some(Said::Tool { name, about });
            }
            Line::Denied { tool, about } => {
                self.message.clear();
                let denied = bounded::tool(&tool, glance(&about));
                bounded::deny(&mut self.heard.denied, &denied);
                return Some(Said::Denied(denied));
            }
            Line::Usage { model, input, cached, written, output } => {
                let tokens = Tokens { input, cached, written, output };
                bounded::add(&mut self.heard.spent, model.as_deref(), tokens);
            }
            Line::Cost { usd } => self.dollars = Some(usd),
            Line::Reports { found } => self.heard.found_reports = Some(found),
            Line::Error { code, message } => {
                let kind = kind_of(code, &message);
                let message = api_error::answered(&message).map_or_else(|| message.clone(), Cow::into_owned);
                self.heard.trouble.get_or_insert_with(|| Trouble::new(kind, glance(&message)));
                return Some(Said::Error(message));
            }
            Line::Unspoken { said } => self.unspoken = Some(said),
            Line::End { reason } => {
                self.ended = true;
                self.end(&reason);
            }
            // Lines of the agent are read before those before them are taken in: a tool does not clear this.
            Line::Unread { line } => {
                self.heard.unreadable.get_or_insert(line);
            }
            Line::Unknown => {}
        }
        None
    }

    fn end(&mut self, reason: &str) {
        let (kind, words) = match reason {
            "end_turn" => return,
            "max_tokens" => (TroubleKind::Bound, "its answer was cut at its longest".to_owned()),
            "max_turn_requests" => (TroubleKind::Bound, "it asked its model too often".to_owned()),
            "refusal" => (TroubleKind::Other, "it refused".to_owned()),
            reason => (TroubleKind::Other, format!("it stopped: {reason}")),
        };
        self.heard.trouble.get_or_insert_with(|| Trouble::new(kind, words));
    }

    /// The cost is said for all models together.
    fn price(&mut self) {
        let micro = self.dollars.map(|dollars| (dollars * 1e6).round() as u64).filter(|micro| *micro > 0);
        match (micro, self.heard.spent.as_mut_slice()) {
            (Some(_), [one]) => one.cost_micro_usd = micro,
            (Some(_), _) => self.heard.spent.push(Spent { cost_micro_usd: micro, ..Spent::default() }),
            (None, _) => {}
        }
    }
}

/// Who ends with an error before it says a word may speak the protocol on another day.
fn not_understood(said: Option<String>, end: &Closing<'_>) -> Trouble {
    match (said, end.code) {
        (Some(said), _) => Trouble::new(TroubleKind::Protocol, glance(&said)),
        (None, Some(code)) if code != i32::from(SILENT) => end.without_a_word(),
        (None, Some(_) | None) => {
            let stderr = String::from_utf8_lossy(end.stderr);
            let said = last_words::telling(&stderr).unwrap_or_else(|| "it said nothing".to_owned());
            Trouble::new(TroubleKind::Protocol, glance(&said))
        }
    }
}

/// Some agents give the status of their provider as the code of the error.
fn kind_of(code: Option<i32>, message: &str) -> TroubleKind {
    const LOGIN_NEEDED: i32 = -32000;
    // What is left of an answer that broke off, under the status of one that did not.
    const BROKE_OFF: &str = "terminated";
    if message == BROKE_OFF {
        return TroubleKind::Broken;
    }
    let status = code.and_then(|code| u16::try_from(code).ok()).filter(|code| (400..600).contains(code));
    if code == Some(LOGIN_NEEDED) { TroubleKind::NotLoggedIn } else { refusal::kind(status, message, None) }
}
