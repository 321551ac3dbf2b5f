//! Feeds recordings of real agents to their adapters.
//!
//! A recording is `testdata/agents/KIND/NAME.stdout`, `NAME.stderr` and `NAME.code` (negative for a signal), and
//! `NAME.home/` if the agent left files in its home. Empty output and exit code 0 have no file.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use signoff_core::agent_output::{AgentSummary, ModelSpend};
use signoff_core::settings::AgentKind;
use signoff_engine::agent::{self, AgentExit, AgentResult, OutputParser};

/// The output of an agent and its exit code.
#[derive(Debug, Clone)]
pub struct Recording {
    pub name: String,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    /// `None` if a signal ended the process.
    pub code: Option<i32>,
    pub home: PathBuf,
}

fn directory(kind: AgentKind) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/agents").join(kind.into_str())
}

impl Recording {
    fn empty() -> Self {
        let home = PathBuf::from("/nonexistent");
        Self { name: String::new(), stdout: Vec::new(), stderr: Vec::new(), code: Some(0), home }
    }

    /// Creates a recording from stdout alone.
    pub fn from_stdout(stdout: &str) -> Self {
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

    /// Reads all recordings of a kind.
    pub fn all(kind: AgentKind) -> Vec<Self> {
        let entries = fs::read_dir(directory(kind)).unwrap();
        let name = |path: PathBuf| path.file_stem().unwrap().to_str().unwrap().to_owned();
        let mut names: Vec<String> = entries.map(|entry| name(entry.unwrap().path())).collect();
        names.sort();
        names.dedup();
        names.iter().map(|name| Self::read(kind, name)).collect()
    }

    fn closing(&self) -> AgentExit<'_> {
        AgentExit {
            code: self.code,
            stderr: &self.stderr,
            home: &self.home,
            started_at: "2026-01-29T12:00:00Z".parse().unwrap(),
            ended_at: ENDED_AT.parse().unwrap(),
            resumed: false,
        }
    }
}

/// The assumed end time of every recording.
const ENDED_AT: &str = "2026-01-29T12:10:00Z";

fn feed(parser: &mut dyn OutputParser, stdout: &[u8]) -> Vec<String> {
    let lines = stdout.split(|byte| *byte == b'\n');
    let outputs = lines.flat_map(|line| parser.parse_line(line.trim_ascii_end()));
    outputs.map(|output| output.display_line()).collect()
}

/// Parses a recording with its adapter.
pub fn parse_recording(kind: AgentKind, recording: &Recording) -> AgentResult {
    let mut parser = agent::adapter_for(kind).unwrap().output_parser();
    feed(parser.as_mut(), &recording.stdout);
    parser.finish(&recording.closing())
}

/// Renders a recording: the lines displayed while it runs, then the result.
pub fn render_recording(kind: AgentKind, name: &str) -> String {
    let recording = Recording::read(kind, name);
    assert!(!recording.stdout.is_empty() || !recording.stderr.is_empty(), "there is no recording {name}");
    render(kind, &recording)
}

/// Renders these stdout lines like a recording.
pub fn render_lines(kind: AgentKind, lines: &[&str]) -> String {
    render(kind, &Recording::from_stdout(&lines.join("\n")))
}

fn render(kind: AgentKind, recording: &Recording) -> String {
    let mut parser = agent::adapter_for(kind).unwrap().output_parser();
    let mut text = feed(parser.as_mut(), &recording.stdout).join("\n");
    let result = parser.finish(&recording.closing());
    write!(text, "\n---\nmessage: {}\n", result.message).unwrap();
    render_summary(&mut text, &result.summary);
    text
}

fn render_summary(text: &mut String, summary: &AgentSummary) {
    let AgentSummary { session, spent, error, denied, reached_report_server, unread_line } = summary;
    if let Some(session) = session {
        writeln!(text, "session: {session}").unwrap();
    }
    for ModelSpend { model, tokens, cost_micro_usd } in spent {
        let model = model.as_deref().unwrap_or("a model");
        write!(text, "spent by {model}: {} in", tokens.input).unwrap();
        write!(text, " ({} cached, {} written), {} out", tokens.cached, tokens.written, tokens.output).unwrap();
        writeln!(text, "{}", cost_micro_usd.map_or(String::new(), |cost| format!(", {cost} µ$"))).unwrap();
    }
    for denied in denied {
        writeln!(text, "denied: {} {}", denied.tool, denied.about).unwrap();
    }
    if let Some(reached) = reached_report_server {
        writeln!(text, "reached the report server: {reached}").unwrap();
    }
    if let Some(line) = unread_line {
        writeln!(text, "unread line: {line}").unwrap();
    }
    match error {
        Some(error) => writeln!(text, "error: {error} ({:?})", error.kind).unwrap(),
        None => writeln!(text, "ended well").unwrap(),
    }
}

/// Property: output that is cut before the end of its closing line is no success, whatever the exit code.
pub fn check_success_requires_a_closing_line(kind: AgentKind, closes: fn(&str) -> bool) {
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
            let error = parse_recording(kind, &cut).summary.error;
            assert!(error.is_some(), "{}, cut at byte {at}, ended well", recording.name);
        }
    }
}

/// Returns the first `bytes` bytes of a text, or fewer to end at a character boundary.
fn clean_cut(text: &str, bytes: usize) -> &str {
    (0..=bytes).rev().find_map(|end| text.get(..end)).unwrap_or_default()
}

/// Property: every input is parsed without a panic.
pub fn check_any_output_is_parsed(kind: AgentKind) {
    let known = Recording::all(kind);
    let lines: Vec<Vec<u8>> =
        known.iter().flat_map(|one| one.stdout.split(|byte| *byte == b'\n')).map(<[u8]>::to_vec).collect();
    let bytes = prop::collection::vec(any::<u8>(), 0..200);
    // A line of a recording that is truncated or has one changed byte.
    let spoilt = (prop::sample::select(lines), any::<prop::sample::Index>(), any::<u8>(), any::<bool>()).prop_map(
        |(mut line, at, byte, cut)| {
            let at = if line.is_empty() { 0 } else { at.index(line.len()) };
            if cut {
                line.truncate(at);
            } else if let Some(place) = line.get_mut(at) {
                *place = byte;
            }
            line
        },
    );
    let line = prop_oneof![bytes.clone(), spoilt];
    let input = (prop::collection::vec(line, 0..12), bytes, prop::option::of(any::<i32>()));
    proptest!(ProptestConfig::with_cases(300), |((lines, stderr, code) in input)| {
        let recording = Recording { stdout: lines.join(&b'\n'), stderr, code, ..Recording::empty() };
        parse_recording(kind, &recording);
    });
}
