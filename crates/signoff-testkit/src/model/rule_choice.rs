//! Selects the rule and the turn that answer a request.

use std::collections::BTreeMap;

use super::pattern::Pattern;
use super::placeholders::{Placeholders, working_directory};
use super::request::{ConversationRole, ModelRequest};
use super::script::{ModelCondition, ModelRule, ModelScript, ModelTurn};

/// The turn that answers a request.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ChosenTurn {
    pub source: TurnSource,
    /// With its placeholders filled.
    pub turn: ModelTurn,
    pub cwd: Option<String>,
}

/// The source of a turn.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum TurnSource {
    Rule { name: String, turn: usize },
    Default,
}

/// A matching rule, and the entry from which its turns are counted.
struct RuleMatch<'s> {
    rule: &'s ModelRule,
    start: usize,
    groups: Vec<(String, String)>,
}

impl ModelScript {
    pub(super) fn choose(&self, request: &ModelRequest) -> ChosenTurn {
        let fit = self.match_by_prompt(request).or_else(|| self.match_without_prompt(request));
        let cwd = working_directory(request);
        let mut names = self.found_placeholders(request);
        names.extend(cwd.iter().map(|cwd| ("cwd".to_owned(), cwd.clone())));
        names.insert("model".to_owned(), request.model.clone());
        let (by, turn) = match fit {
            Some(fit) => {
                names.extend(fit.groups);
                let turn = request.answers_since(fit.start);
                let last = fit.rule.turns.get(turn).or(fit.rule.turns.last());
                (TurnSource::Rule { name: fit.rule.name.clone(), turn }, last.unwrap_or(&self.otherwise).clone())
            }
            None => (TurnSource::Default, self.otherwise.clone()),
        };
        ChosenTurn { source: by, turn: Placeholders(names).fill_turn(turn), cwd }
    }

    /// The rule whose prompt condition matches the newest message.
    fn match_by_prompt(&self, request: &ModelRequest) -> Option<RuleMatch<'_>> {
        let messages =
            request.entries.iter().enumerate().rev().filter(|(_, entry)| entry.role == ConversationRole::User);
        let rules =
            || self.rules.iter().filter(|rule| rule.when.has_prompt_condition() && rule.when.matches_request(request));
        messages
            .flat_map(|(start, entry)| rules().map(move |rule| (start, entry, rule)))
            .find_map(|(start, entry, rule)| Some(RuleMatch { rule, start, groups: rule.when.groups(&entry.text)? }))
    }

    fn match_without_prompt(&self, request: &ModelRequest) -> Option<RuleMatch<'_>> {
        let mut rules = self.rules.iter();
        let rule = rules.find(|rule| !rule.when.has_prompt_condition() && rule.when.matches_request(request))?;
        Some(RuleMatch { rule, start: 0, groups: Vec::new() })
    }

    fn found_placeholders(&self, request: &ModelRequest) -> BTreeMap<String, String> {
        let first = |pattern: &Pattern| request.texts().find_map(|text| pattern.first(text));
        self.find.iter().filter_map(|(name, pattern)| Some((name.clone(), first(pattern)?.to_owned()))).collect()
    }
}

impl ModelCondition {
    fn has_prompt_condition(&self) -> bool {
        self.prompt.is_some() || self.pattern.is_some()
    }

    /// Whether everything but the prompt matches.
    fn matches_request(&self, request: &ModelRequest) -> bool {
        self.system.as_ref().is_none_or(|words| request.system.contains(words))
            && self.model.as_ref().is_none_or(|model| *model == request.model)
            && (self.toolless || !request.tools.is_empty())
    }

    /// The named groups, if the prompt condition matches.
    fn groups(&self, text: &str) -> Option<Vec<(String, String)>> {
        if self.prompt.as_ref().is_some_and(|words| !text.contains(words)) {
            return None;
        }
        self.pattern.as_ref().map_or(Some(Vec::new()), |pattern| pattern.groups(text))
    }
}
