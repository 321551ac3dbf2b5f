//! Which rule a request is answered by, and which of its turns.

use std::collections::BTreeMap;

use super::pattern::Pattern;
use super::placeholders::{Names, working_directory};
use super::request::{Request, Role};
use super::script::{Rule, Script, Turn, When};

/// What answers a request.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Chosen {
    pub by: By,
    /// With its placeholders filled.
    pub turn: Turn,
    pub cwd: Option<String>,
}

/// Who chose.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum By {
    Rule { name: String, turn: usize },
    Default,
}

/// A rule, and from where on its turns are counted.
struct Fit<'s> {
    rule: &'s Rule,
    start: usize,
    groups: Vec<(String, String)>,
}

impl Script {
    pub(super) fn choose(&self, request: &Request) -> Chosen {
        let fit = self.worded(request).or_else(|| self.wordless(request));
        let cwd = working_directory(request);
        let mut names = self.found(request);
        names.extend(cwd.iter().map(|cwd| ("cwd".to_owned(), cwd.clone())));
        names.insert("model".to_owned(), request.model.clone());
        let (by, turn) = match fit {
            Some(fit) => {
                names.extend(fit.groups);
                let turn = request.answers_since(fit.start);
                let last = fit.rule.turns.get(turn).or(fit.rule.turns.last());
                (By::Rule { name: fit.rule.name.clone(), turn }, last.unwrap_or(&self.otherwise).clone())
            }
            None => (By::Default, self.otherwise.clone()),
        };
        Chosen { by, turn: Names(names).fill_turn(turn), cwd }
    }

    /// The newest message that a rule has words for.
    fn worded(&self, request: &Request) -> Option<Fit<'_>> {
        let messages = request.entries.iter().enumerate().rev().filter(|(_, entry)| entry.role == Role::User);
        let rules = || self.rules.iter().filter(|rule| rule.when.has_words() && rule.when.could_fit(request));
        messages.flat_map(|(start, entry)| rules().map(move |rule| (start, entry, rule))).find_map(
            |(start, entry, rule)| Some(Fit { rule, start, groups: rule.when.groups(&entry.text)? }),
        )
    }

    fn wordless(&self, request: &Request) -> Option<Fit<'_>> {
        let mut rules = self.rules.iter();
        let rule = rules.find(|rule| !rule.when.has_words() && rule.when.could_fit(request))?;
        Some(Fit { rule, start: 0, groups: Vec::new() })
    }

    fn found(&self, request: &Request) -> BTreeMap<String, String> {
        let first = |pattern: &Pattern| request.texts().find_map(|text| pattern.first(text));
        self.find
            .iter()
            .filter_map(|(name, pattern)| Some((name.clone(), first(pattern)?.to_owned())))
            .collect()
    }
}

impl When {
    fn has_words(&self) -> bool {
        self.prompt.is_some() || self.pattern.is_some()
    }

    /// Whether all fits but the words of the prompt.
    fn could_fit(&self, request: &Request) -> bool {
        self.system.as_ref().is_none_or(|words| request.system.contains(words))
            && self.model.as_ref().is_none_or(|model| *model == request.model)
            && (self.toolless || !request.tools.is_empty())
    }

    /// The named groups, if the words are there.
    fn groups(&self, text: &str) -> Option<Vec<(String, String)>> {
        if self.prompt.as_ref().is_some_and(|words| !text.contains(words)) {
            return None;
        }
        self.pattern.as_ref().map_or(Some(Vec::new()), |pattern| pattern.groups(text))
    }
}
