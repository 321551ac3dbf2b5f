//! The stored part of an agent's output: bounded collections, and summaries of tool calls.

use std::collections::{BTreeMap, VecDeque};

use serde_json::value::RawValue;
use signoff_core::agent_output::{AgentSummary, DeniedTool, ModelSpend, OutputLine, TokenCounts};
use signoff_core::contract::AnswerBlocks;

use super::first_line;

/// The part of the output that the parsers of all agents store.
#[derive(Debug, Default)]
pub struct KeptOutput {
    pub summary: AgentSummary,
    /// Text since the last tool use.
    pub message: AnswerBlocks,
    /// Open tool calls by id.
    pub calls: OpenCalls,
}

impl KeptOutput {
    /// Records the start of a tool call. Earlier text is not the final message.
    pub fn begin_tool(&mut self, id: &str, name: String, about: String) -> OutputLine {
        self.message.clear();
        self.calls.begin(id, tool_call(&name, about.clone()));
        OutputLine::Tool { name, about }
    }

    /// Records a denied call, up to the maximum.
    pub fn deny(&mut self, denied: DeniedTool) -> OutputLine {
        push_denied(&mut self.summary.denied, denied.clone());
        OutputLine::Denied(denied)
    }

    pub fn add_tokens(&mut self, model: Option<&str>, tokens: TokenCounts) {
        add_tokens(&mut self.summary.spent, model, tokens);
    }
}

/// Maximum number of open tool calls that are kept.
const MAX_OPEN: usize = 100;

/// Open tool calls by id.
#[derive(Debug, Default)]
pub struct OpenCalls(VecDeque<(String, DeniedTool)>);

impl OpenCalls {
    pub fn begin(&mut self, call: &str, tool: DeniedTool) {
        if self.0.len() == MAX_OPEN {
            self.0.pop_front();
        }
        self.0.push_back((first_line(call), tool));
    }

    pub fn get(&self, call: &str) -> Option<&DeniedTool> {
        let call = first_line(call);
        self.0.iter().rev().find(|(known, _)| *known == call).map(|(_, tool)| tool)
    }

    pub fn end(&mut self, call: &str) -> Option<DeniedTool> {
        let call = first_line(call);
        let at = self.0.iter().rposition(|(known, _)| *known == call)?;
        self.0.remove(at).map(|(_, tool)| tool)
    }
}

/// A tool call with a shortened name.
pub fn tool_call(name: &str, about: String) -> DeniedTool {
    DeniedTool { tool: first_line(name), about }
}

/// Maximum number of denied calls that are kept.
pub const MAX_DENIED: usize = 1000;

/// Records a denied call, up to the maximum.
pub fn push_denied(denied: &mut Vec<DeniedTool>, one: DeniedTool) {
    if denied.len() < MAX_DENIED {
        denied.push(one);
    }
}

/// Maximum number of models that are counted separately.
const MAX_MODELS: usize = 100;

/// Adds tokens to those of the same model.
pub fn add_tokens(spent: &mut Vec<ModelSpend>, model: Option<&str>, tokens: TokenCounts) {
    let model = model.map(first_line);
    let known = spent.iter().position(|spent| spent.model == model);
    // Beyond the maximum, tokens are counted for the first model.
    match known.or((spent.len() == MAX_MODELS).then_some(0)) {
        Some(known) => spent[known].tokens = spent[known].tokens.plus(tokens),
        None => spent.push(ModelSpend { model, tokens, cost_micro_usd: None }),
    }
}

/// Token counts of answers that are reported more than once; the last report counts.
#[derive(Debug, Default)]
pub struct AnswerTokens {
    /// Answers that may be reported again.
    recent: VecDeque<(String, Option<String>, TokenCounts)>,
    earlier: Vec<ModelSpend>,
}

impl AnswerTokens {
    pub fn record(&mut self, id: &str, model: Option<&str>, tokens: TokenCounts) {
        let (id, model) = (first_line(id), model.map(first_line));
        if let Some(known) = self.recent.iter_mut().rev().find(|(known, ..)| *known == id) {
            known.2 = tokens;
            return;
        }
        if self.recent.len() == MAX_OPEN
            && let Some((_, model, tokens)) = self.recent.pop_front()
        {
            add_tokens(&mut self.earlier, model.as_deref(), tokens);
        }
        self.recent.push_back((id, model, tokens));
    }

    /// Whether this answer may be reported again.
    pub fn is_recent(&self, id: &str) -> bool {
        let id = first_line(id);
        self.recent.iter().any(|(known, ..)| *known == id)
    }

    /// Removes an answer that is counted elsewhere, and all answers that are not recent.
    pub fn remove(&mut self, id: &str) {
        let id = first_line(id);
        self.earlier.clear();
        self.recent.retain(|(known, ..)| *known != id);
    }

    /// The totals by model, added to `before`.
    pub fn add_to(self, before: Vec<ModelSpend>) -> Vec<ModelSpend> {
        let mut all = before;
        for ModelSpend { model, tokens, .. } in self.earlier {
            add_tokens(&mut all, model.as_deref(), tokens);
        }
        for (_, model, tokens) in self.recent {
            // Errors are reported as answers without tokens.
            if tokens != TokenCounts::default() {
                add_tokens(&mut all, model.as_deref(), tokens);
            }
        }
        all
    }
}

/// The names of the most informative arguments of different tools.
const ARGUMENTS: [&str; 10] =
    ["command", "file_path", "notebook_path", "dir_path", "pattern", "path", "query", "url", "description", "title"];

/// The most informative argument, shortened. Empty if the arguments have another form.
pub fn summarize_arguments(arguments: Option<&RawValue>) -> String {
    let parsed: BTreeMap<String, &RawValue> =
        arguments.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
    let text = |name: &&str| serde_json::from_str::<String>(parsed.get(*name)?.get()).ok();
    first_line(&ARGUMENTS.iter().find_map(text).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_answers_and_refusals_are_bounded() {
        let (mut calls, mut answers, mut denied) = (OpenCalls::default(), AnswerTokens::default(), Vec::new());
        for number in 0..10_000 {
            let name = number.to_string();
            calls.begin(&name, tool_call(&name.repeat(1000), String::new()));
            answers.record(&name, Some(&name), TokenCounts { input: 1, output: 1, ..TokenCounts::default() });
            push_denied(&mut denied, tool_call(&name, String::new()));
        }
        assert!(calls.0.len() <= MAX_OPEN && answers.recent.len() <= MAX_OPEN && denied.len() == MAX_DENIED);
        assert!(calls.0.iter().all(|(_, tool)| tool.tool.len() < 200));
        assert_eq!(calls.get("9999").map(|tool| tool.tool.len()), Some(163), "the newest is known");
        let all = answers.add_to(Vec::new());
        assert!(all.len() <= MAX_MODELS, "{}", all.len());
        assert_eq!(all.iter().map(|spent| spent.tokens.input).sum::<u64>(), 10_000, "nothing is lost");
    }

    #[test]
    fn the_last_token_count_of_an_answer_is_used() {
        let mut answers = AnswerTokens::default();
        let tokens = |output| TokenCounts { input: 10, output, ..TokenCounts::default() };
        answers.record("one", Some("m"), tokens(1));
        answers.record("two", Some("m"), tokens(5));
        answers.record("one", Some("m"), tokens(7));
        let [spent] = &answers.add_to(Vec::new())[..] else { panic!("one model") };
        assert_eq!(spent.tokens, TokenCounts { input: 20, output: 12, ..TokenCounts::default() });
    }
}
