//! Recordings of real agents, heard by their adapters.
//!
//! A recording is `testdata/agents/KIND/NAME.stdout`, `NAME.stderr` and `NAME.code` (a signal is a number below zero), and
//! where the agent left something in its home, `NAME.home/`. What is empty or 0 has no file.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use signoff_core::config::AgentKind;
use signoff_core::heard::{Heard, Spent};
use signoff_engine::agent::{self, Account, Closing, Listener};

/// What an agent wrote, and how it ended.
#[derive(Debug, Clone)]
pub struct Recording {
    pub name: String,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    /// None if a signal ended it.
    pub code: Option<i32>,
    pub home: PathBuf,
}

fn directory(kind: AgentKind) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/agents").join(kind.word())
}

impl Recording {
    fn empty() -> Self {
        let home = PathBuf::from("/nonexistent");
        Self { name: String::new(), stdout: Vec::new(), stderr: Vec::new(), code: Some(0), home }
    }

    /// Lines that nobody recorded.
    pub fn of(stdout: &str) -> Self {
        Self { stdout: stdout.as_bytes().to_vec(), ..Self::empty() }
    }

    pub fn read(kind: AgentKind, name: &str) -> Self {
        let file = |end: &str| directory(kind).join(format!("{name}.{end}"));
        let code = fs::read_to_string(file("code")).unwrap_or_else(|_| "0".to_owned());
        let code: i32 = code.trim().parse().unwrap();
        Self {
            name: name.to_owned(),
            stdout: fs::read(file("stdout")).unwrap_or_default(),
            stderr: fs::read(file("stderr")).unwrap_or_default(),
            code: (code >= 0).then_some(code),
            home: file("home"),
        }
    }

    /// Every recording of a kind.
    pub fn all(kind: AgentKind) -> Vec<Self> {
        let entries = fs::read_dir(directory(kind)).unwrap();
        let name = |path: PathBuf| path.file_stem().unwrap().to_str().unwrap().to_owned();
        let mut names: Vec<String> = entries.map(|entry| name(entry.unwrap().path())).collect();
        names.sort();
        names.dedup();
        names.iter().map(|name| Self::read(kind, name)).collect()
    }

    fn closing(&self) -> Closing<'_> {
        Closing {
            code: self.code,
            stderr: &self.stderr,
            home: &self.home,
            started_at: "2026-01-29T12:00:00Z".parse().unwrap(),
            ended_at: ENDED_AT.parse().unwrap(),
            resumed: false,
        }
    }
}

/// When every recording ended, whatever its own times say.
const ENDED_AT: &str = "2026-01-29T12:10:00Z";

fn hear(listener: &mut dyn Listener, stdout: &[u8]) -> Vec<String> {
    let lines = stdout.split(|byte| *byte == b'\n');
    let said = lines.flat_map(|line| listener.line(line.trim_ascii_end()));
    said.map(|said| said.shown()).collect()
}

/// What a recording comes to, as its adapter hears it.
pub fn account(kind: AgentKind, recording: &Recording) -> Account {
    let mut listener = agent::of(kind).unwrap().listener();
    hear(listener.as_mut(), &recording.stdout);
    listener.ended(&recording.closing())
}

/// A recording as people see it: what is shown while it runs, then what it came to.
pub fn story(kind: AgentKind, name: &str) -> String {
    let recording = Recording::read(kind, name);
    assert!(!recording.stdout.is_empty() || !recording.stderr.is_empty(), "there is no recording {name}");
    told(kind, &recording)
}

/// The same for lines that nobody recorded.
pub fn story_of(kind: AgentKind, lines: &[&str]) -> String {
    told(kind, &Recording::of(&lines.join("\n")))
}

fn told(kind: AgentKind, recording: &Recording) -> String {
    let mut listener = agent::of(kind).unwrap().listener();
    let mut text = hear(listener.as_mut(), &recording.stdout).join("\n");
    let account = listener.ended(&recording.closing());
    write!(text, "\n---\nmessage: {}\n", account.message).unwrap();
    tell(&mut text, &account.heard);
    text
}

fn tell(text: &mut String, heard: &Heard) {
    let Heard { session, spent, trouble, denied, found_reports, unreadable } = heard;
    if let Some(session) = session {
        writeln!(text, "session: {session}").unwrap();
    }
    for Spent { model, tokens, cost_micro_usd } in spent {
        let model = model.as_deref().unwrap_or("a model");
        write!(text, "spent by {model}: {} in", tokens.input).unwrap();
        write!(text, " ({} cached, {} written), {} out", tokens.cached, tokens.written, tokens.output)
            .unwrap();
        writeln!(text, "{}", cost_micro_usd.map_or(String::new(), |cost| format!(", {cost} µ$"))).unwrap();
    }
    for denied in denied {
        writeln!(text, "denied: {} {}", denied.tool, denied.about).unwrap();
    }
    if let Some(found) = found_reports {
        writeln!(text, "found the server for reports: {found}").unwrap();
    }
    if let Some(line) = unreadable {
        writeln!(text, "unreadable: {line}").unwrap();
    }
    match trouble {
        Some(trouble) => writeln!(text, "trouble: {trouble} ({:?})", trouble.kind).unwrap(),
        None => writeln!(text, "ended well").unwrap(),
    }
}

/// Law: what breaks off before the end of its closing line never ended well, whatever the exit code.
pub fn ends_well_only_when_it_says_so(kind: AgentKind, closes: fn(&str) -> bool) {
    for recording in Recording::all(kind) {
        let text = String::from_utf8_lossy(&recording.stdout).into_owned();
        let mut lines = text.split_inclusive('\n');
        let before: Vec<&str> = lines.by_ref().take_while(|line| !closes(line)).collect();
        let closing = text[before.concat().len()..].lines().next().unwrap_or_default();
        let whole = (0..=before.len()).map(|lines| before[..lines].concat());
        let parts = (0..closing.len()).step_by(13).chain([closing.len().saturating_sub(1)]);
        let parts = parts.map(|bytes| format!("{}{}", before.concat(), clean_cut(closing, bytes)));
        for stdout in whole.chain(parts) {
            let at = stdout.len();
            let cut = Recording { stdout: stdout.into_bytes(), code: Some(0), ..recording.clone() };
            let trouble = account(kind, &cut).heard.trouble;
            assert!(trouble.is_some(), "{}, cut at byte {at}, ended well", recording.name);
        }
    }
}

/// So many bytes of a text, or a few less.
fn clean_cut(text: &str, bytes: usize) -> &str {
    (0..=bytes).rev().find_map(|end| text.get(..end)).unwrap_or_default()
}

/// Law: any lines at all are taken in, and come to something.
pub fn takes_in_anything(kind: AgentKind) {
    let known = Recording::all(kind);
    let lines: Vec<Vec<u8>> =
        known.iter().flat_map(|one| one.stdout.split(|byte| *byte == b'\n')).map(<[u8]>::to_vec).collect();
    let bytes = prop::collection::vec(any::<u8>(), 0..200);
    // A line of a recording that breaks off, or in which a byte is another.
    let spoilt = (prop::sample::select(lines), any::<prop::sample::Index>(), any::<u8>(), any::<bool>())
        .prop_map(|(mut line, at, byte, cut)| {
            let at = if line.is_empty() { 0 } else { at.index(line.len()) };
            if cut {
                line.truncate(at);
            } else if let Some(place) = line.get_mut(at) {
                *place = byte;
            }
            line
        });
    let line = prop_oneof![bytes.clone(), spoilt];
    let input = (prop::collection::vec(line, 0..12), bytes, prop::option::of(any::<i32>()));
    proptest!(ProptestConfig::with_cases(300), |((lines, stderr, code) in input)| {
        let recording = Recording { stdout: lines.join(&b'\n'), stderr, code, ..Recording::empty() };
        account(kind, &recording);
    });
}
