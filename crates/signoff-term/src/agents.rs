//! Which agents are here, as a report and as text.

use schemars::JsonSchema;
use serde::Serialize;
use signoff_core::config::AgentKind;
use signoff_core::hold::Hold;
use signoff_core::redact::Secrets;
use signoff_core::review::Usage;

use crate::fit::cut;
use crate::json::{Look, VERSION};

/// `agents --json`: the agents that are configured, and those that are installed.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct AgentsReport {
    #[schemars(extend("const" = 1))]
    pub version: u32,
    /// Whether all that are configured, were named or were tried can be used, as far as was looked.
    pub ok: bool,
    /// Who holds agents to what they may write.
    #[schemars(extend("enum" = ["nobody", "bubblewrap", "landlock"]))]
    pub hold: &'static str,
    pub agents: Vec<AgentRow>,
}

/// One agent.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct AgentRow {
    pub name: String,
    pub kind: AgentKind,
    /// False for one that is installed and in no configuration.
    pub configured: bool,
    /// Where its program is; null if it is not there, or the agent is part of signoff.
    pub program: Option<String>,
    /// Null where it is not known.
    pub program_version: Option<String>,
    /// The first version that understands what it is told; null where none is known that does not.
    pub least_version: Option<String>,
    pub too_old: bool,
    /// `unknown`: it may be logged in where nobody else can look, or need no login.
    #[schemars(extend("enum" = ["logged_in", "not_logged_in", "unknown", "not_needed"]))]
    pub login: &'static str,
    /// The variable that holds the key, or the place of the login.
    pub login_by: Option<String>,
    /// The model that it is configured with; null: its own choice.
    pub model: Option<String>,
    /// Why it cannot be used.
    pub problem: Option<String>,
    /// What a person can do about that.
    pub hint: Option<String>,
    /// What else is to be known.
    pub note: Option<String>,
    /// What came of the trial; null without `--check`.
    pub check: Option<Checked>,
}

/// What came of asking an agent for one word.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Checked {
    pub works: bool,
    /// Its answer, or why there is none, in its own words.
    pub message: String,
    /// What a person can do about it.
    pub hint: Option<String>,
    pub duration_ms: u64,
    pub cost_usd: f64,
    /// The cost is worked out from a price list, at least in part.
    pub cost_is_estimated: bool,
    pub input_tokens: u64,
    pub output_tokens: u64,
}

impl Checked {
    pub fn of(answer: Result<String, (String, Option<String>)>, usage: Usage, duration_ms: u64) -> Self {
        let (works, message, hint) = match answer {
            Ok(message) => (true, message, None),
            Err((message, hint)) => (false, message, hint),
        };
        let Usage { cost_micro_usd, cost_is_estimated, input_tokens, output_tokens, .. } = usage;
        let cost_usd = cost_micro_usd as f64 / 1_000_000.0;
        Self { works, message, hint, duration_ms, cost_usd, cost_is_estimated, input_tokens, output_tokens }
    }

    fn told(&self) -> Vec<String> {
        // Not every agent tells what it cost.
        let about = if self.cost_is_estimated { "~" } else { "" };
        let cost =
            if self.cost_usd > 0.0 { format!(", {about}${:.4}", self.cost_usd) } else { String::new() };
        let seconds = self.duration_ms as f64 / 1000.0;
        let (input, output) = (self.input_tokens, self.output_tokens);
        let spent = format!("{seconds:.1} s, {input} tokens in, {output} out{cost}");
        let how = if self.works { "works" } else { "does not work" };
        let first = format!("{how}: {} ({spent})", cut(&self.message, WORDS));
        let hint = self.hint.iter().map(|hint| format!("hint: {hint}"));
        [first].into_iter().chain(hint).collect()
    }
}

/// How much is shown of what an agent or its program says.
const WORDS: usize = 300;

impl AgentRow {
    /// The same with nothing of these in the words of programs.
    #[must_use]
    pub fn without(self, secrets: &Secrets) -> Self {
        let clean = |said: Option<String>| said.map(|said| secrets.redact_text(&said));
        let check = self.check.map(|check| Checked { message: secrets.redact_text(&check.message), ..check });
        Self { problem: clean(self.problem), note: clean(self.note), check, ..self }
    }

    /// Whether it can be used, as far as was looked.
    pub fn works(&self) -> bool {
        self.problem.is_none() && self.check.as_ref().is_none_or(|check| check.works)
    }

    fn mark(&self) -> &'static str {
        let proven = self.check.as_ref().is_some_and(|check| check.works);
        let doubtful = self.login == "not_logged_in" || self.note.is_some();
        match (self.works(), doubtful && !proven) {
            (false, _) => "✗",
            (true, true) => "!",
            (true, false) => "✓",
        }
    }

    /// How the login is told.
    pub fn login(&self) -> Option<String> {
        match (self.login, &self.login_by) {
            ("logged_in", Some(by)) if by.starts_with('~') => Some(format!("logged in ({by})")),
            ("logged_in", Some(by)) => Some(format!("logged in (key in {by})")),
            ("logged_in", None) => Some("logged in".to_owned()),
            ("not_logged_in", _) => Some("not logged in".to_owned()),
            ("unknown", _) => Some("login cannot be told".to_owned()),
            _ => None,
        }
    }

    /// The row for people.
    pub fn text(&self) -> String {
        let kind = self.kind.word();
        let kind = (self.name != kind).then(|| format!("kind {kind}"));
        let place = match &self.program {
            Some(program) => Some(cut(program, WORDS)),
            None if self.login == "not_needed" => Some("part of signoff".to_owned()),
            None => None,
        };
        let model = self.model.as_ref().map(|model| format!("model {}", cut(model, 60)));
        let known = (!self.configured).then(|| "not configured".to_owned());
        let parts = [kind, self.program_version.clone(), place, self.login(), model, known];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        let mut lines = vec![format!("{} {}: {}", self.mark(), cut(&self.name, 40), parts.join(", "))];
        lines.extend(self.problem.iter().map(|problem| cut(problem, WORDS)));
        lines.extend(self.hint.iter().map(|hint| format!("hint: {hint}")));
        lines.extend(self.note.iter().map(|note| cut(note, WORDS)));
        lines.extend(self.check.iter().flat_map(Checked::told));
        lines.join("\n    ") + "\n"
    }
}

impl AgentsReport {
    pub fn of(agents: Vec<AgentRow>, ok: bool, hold: Hold) -> Self {
        Self { version: VERSION, ok, hold: hold.word(), agents }
    }

    /// What follows the rows for people; `sandbox` says who holds agents.
    pub fn text(sandbox: &Look) -> String {
        format!("sandbox: {}\n", sandbox.message)
    }
}
