//! Reads Codex's session files, which contain the token usage of every answer, including failed and killed
//! turns and sub-agents.
//!
//! A resumed session continues in its file, so only entries newer than the start of the attempt count.

use std::time::Duration;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;
use signoff_core::agent_output::{DeniedTool, ModelSpend};

use super::CONFIG_DIR;
use super::stream::{CodexUsage, is_write_denied};
use crate::agent::bounded::{self, OpenCalls};
use crate::agent::{AgentExit, first_line, json_line};

/// Usage and denied calls from the session files of an attempt.
#[derive(Debug, Default)]
pub struct Rollout {
    pub spent: Vec<ModelSpend>,
    pub denied: Vec<DeniedTool>,
    /// When an exhausted rate limit window resets, in seconds since 1970.
    resets_at: Option<i64>,
}

impl Rollout {
    pub fn read(exit: &AgentExit<'_>) -> Self {
        let mut rollout = Self::default();
        // The files are `sessions/YEAR/MONTH/DAY/NAME.jsonl`.
        for path in json_line::jsonl_files(&exit.home.join(CONFIG_DIR).join("sessions"), 4) {
            let mut file = RolloutFile { since: exit.started_at, ..RolloutFile::default() };
            json_line::for_each_line(&path, |line| {
                file.parse_line(line, &mut rollout);
            });
            rollout.resets_at = rollout.resets_at.max(file.resets_at);
        }
        rollout
    }

    pub fn resets_in(&self, exit: &AgentExit<'_>) -> Option<Duration> {
        let seconds = self.resets_at?.saturating_sub(exit.ended_at.as_second());
        u64::try_from(seconds).ok().map(Duration::from_secs)
    }
}

/// State of the parser for one file.
#[derive(Default)]
struct RolloutFile {
    since: Timestamp,
    model: Option<String>,
    calls: OpenCalls,
    resets_at: Option<i64>,
}

#[derive(Deserialize)]
struct RolloutLine<'a> {
    timestamp: Timestamp,
    r#type: &'a str,
    #[serde(borrow)]
    payload: &'a RawValue,
}

#[derive(Deserialize)]
struct RolloutContext {
    model: String,
}

#[derive(Deserialize)]
struct RolloutUsage {
    usage: CodexUsage,
}

#[derive(Deserialize)]
struct RolloutItem<'a> {
    r#type: &'a str,
    call_id: Option<String>,
    name: Option<String>,
    /// JSON in a string.
    arguments: Option<String>,
    input: Option<String>,
    #[serde(borrow)]
    output: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct RolloutEvent {
    rate_limits: Option<RateLimits>,
}

#[derive(Deserialize)]
struct RateLimits {
    primary: Option<RateLimitWindow>,
    secondary: Option<RateLimitWindow>,
}

#[derive(Deserialize)]
struct RateLimitWindow {
    used_percent: f64,
    resets_at: Option<i64>,
}

impl RolloutFile {
    /// Parses a line. Returns `None` if it contains nothing of interest.
    fn parse_line(&mut self, line: &str, rollout: &mut Rollout) -> Option<()> {
        let RolloutLine { timestamp, r#type, payload } = serde_json::from_str(line).ok()?;
        let payload = payload.get();
        if timestamp < self.since {
            return None;
        }
        match r#type {
            "turn_context" => self.model = Some(serde_json::from_str::<RolloutContext>(payload).ok()?.model),
            "token_usage_record" => {
                let RolloutUsage { usage } = serde_json::from_str(payload).ok()?;
                bounded::add_tokens(&mut rollout.spent, self.model.as_deref(), usage.tokens());
            }
            "response_item" => self.parse_item(serde_json::from_str(payload).ok()?, rollout)?,
            "event_msg" => self.apply_rate_limits(serde_json::from_str::<RolloutEvent>(payload).ok()?.rate_limits?),
            _ => {}
        }
        Some(())
    }

    fn parse_item(&mut self, item: RolloutItem<'_>, rollout: &mut Rollout) -> Option<()> {
        let call = item.call_id?;
        match item.r#type {
            "function_call" => self.begin_call(&call, item.name?, &parse_command(&item.arguments?)),
            "custom_tool_call" => self.begin_call(&call, item.name?, &patched_files(&item.input?)),
            "function_call_output" | "custom_tool_call_output" => {
                let denied = self.calls.end(&call)?;
                if is_denied(&denied.tool, item.output?.get()) {
                    bounded::push_denied(&mut rollout.denied, denied);
                }
            }
            _ => {}
        }
        Some(())
    }

    fn begin_call(&mut self, id: &str, name: String, about: &str) {
        self.calls.begin(id, bounded::tool_call(&tool_name(name), first_line(about)));
    }

    fn apply_rate_limits(&mut self, limits: RateLimits) {
        let windows = [limits.primary, limits.secondary].into_iter().flatten();
        let full = windows.filter(|window| window.used_percent >= 100.0);
        self.resets_at = full.filter_map(|window| window.resets_at).max();
    }
}

fn is_denied(tool: &str, output: &str) -> bool {
    let failed = output.contains("Process exited with code") && !output.contains("exited with code 0");
    match tool {
        "shell" => failed && is_write_denied(output),
        "patch" => output.contains("Failed to write file") || is_write_denied(output),
        // Some models write scripts that use the other tools.
        "exec" => is_write_denied(output),
        _ => false,
    }
}

/// A common name for tools that different models name differently.
fn tool_name(name: String) -> String {
    match name.as_str() {
        "exec_command" | "shell_command" | "local_shell" => "shell".to_owned(),
        "apply_patch" => "patch".to_owned(),
        _ => name,
    }
}

fn parse_command(arguments: &str) -> String {
    #[derive(Deserialize)]
    struct ShellArguments {
        #[serde(alias = "command")]
        cmd: String,
    }
    serde_json::from_str(arguments).map_or_else(|_| String::new(), |ShellArguments { cmd }| cmd)
}

/// The files that a patch names.
fn patched_files(patch: &str) -> String {
    let names = ["*** Add File: ", "*** Update File: ", "*** Delete File: "];
    let named = patch.lines().filter_map(|line| names.iter().find_map(|name| line.strip_prefix(name)));
    named.collect::<Vec<_>>().join(", ")
}
