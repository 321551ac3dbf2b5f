//! The vocabulary of the conflict rule. Verbs are in their base form.

use std::collections::HashMap;
use std::sync::LazyLock;

/// What a finding can request. `Verb` is any other verb, by its stem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::merge) enum RequestedAction {
    /// Something exists.
    Presence,
    /// Something is enabled or allowed.
    Enabled,
    /// Something is in one piece.
    SinglePiece,
    /// Something is larger.
    Larger,
    /// Something is reachable from outside.
    Exposed,
    /// Something is strict.
    Strict,
    /// A failure is propagated.
    Propagated,
    Verb(String),
}

/// Pairs of opposite verbs: `add` requests presence, `remove` absence.
const POLES: [(RequestedAction, &str, &str); 7] = [
    (
        RequestedAction::Presence,
        "add introduce include implement keep retain preserve restore support use provide insert create have prefer",
        "remove delete drop omit strip discard eliminate exclude replace",
    ),
    (
        RequestedAction::Enabled,
        "enable activate allow permit accept",
        "disable deactivate forbid disallow prohibit reject deny block",
    ),
    (RequestedAction::SinglePiece, "inline merge combine join", "extract split separate"),
    (RequestedAction::Larger, "increase extend lengthen expand", "decrease reduce lower shorten shrink"),
    (RequestedAction::Exposed, "expose export publish public", "hide encapsulate private"),
    (RequestedAction::Strict, "tighten", "loosen relax"),
    (RequestedAction::Propagated, "propagate rethrow throw", "swallow ignore suppress"),
];

static ACTIONS: LazyLock<HashMap<String, (RequestedAction, bool)>> = LazyLock::new(|| {
    let mut actions = HashMap::new();
    for (action, wanted, unwanted) in &POLES {
        actions.extend(wanted.split(' ').map(|word| (stem(word), (action.clone(), true))));
        actions.extend(unwanted.split(' ').map(|word| (stem(word), (action.clone(), false))));
    }
    actions
});

/// The action that a verb requests. An unknown verb is its own action.
pub(super) fn action_of(verb: &str) -> (RequestedAction, bool) {
    let stem = stem(verb);
    ACTIONS.get(&stem).cloned().unwrap_or((RequestedAction::Verb(stem), true))
}

/// The roles of a word in a clause, one bit each.
type WordRole = u16;

const ABSENT: WordRole = 1;
const SUPERFLUOUS: WordRole = 1 << 1;
const NEGATION: WordRole = 1 << 2;
pub(super) const DEMAND: WordRole = 1 << 3;
const FILLER: WordRole = 1 << 4;
/// An imperative may begin with it before its verb: "please remove", "never log". "Not" is excluded, because "not
/// closed" describes and requests the opposite.
pub(super) const OPENING: WordRole = 1 << 5;
/// It begins a condition or a reason.
pub(super) const SUBORDINATION: WordRole = 1 << 6;
const EMPTY: WordRole = 1 << 7;

const ROLES: [(WordRole, &str); 8] = [
    (ABSENT, "missing lacks lacking lack absent required needed necessary mandatory allowed"),
    (
        SUPERFLUOUS,
        "unnecessary unneeded unused redundant superfluous extra extraneous forbidden prohibited unwanted
         disallowed overkill unspecified",
    ),
    (NEGATION, "not never don't shouldn't mustn't isn't aren't avoid stop no longer"),
    (
        DEMAND,
        "must should shall ought need needs do don't shouldn't mustn't please consider avoid stop better
         suggest recommend",
    ),
    (FILLER, "to be always just simply instead also we you"),
    (OPENING, "never always just simply instead also we you to no"),
    (SUBORDINATION, "because since so as while when if unless which that otherwise until where"),
    (
        EMPTY,
        "a an the this these those it its they them there here is are was were been being has had does did can
         could will would may might of in on at by for from with without into onto around over under out up
         than rather any all some each every very too only still already again back before after entirely
         completely altogether one i",
    ),
];

static ROLES_BY_WORD: LazyLock<HashMap<&str, WordRole>> = LazyLock::new(|| {
    let mut roles = HashMap::new();
    for (role, words) in ROLES {
        words.split_whitespace().for_each(|word| *roles.entry(word).or_default() |= role);
    }
    roles
});

pub(super) fn has_role(word: &str, roles: WordRole) -> bool {
    ROLES_BY_WORD.get(word).is_some_and(|role| role & roles != 0)
}

/// Whether a word complains about something absent (it is wanted) or present (it is not).
pub(super) fn missing_or_superfluous(word: &str) -> Option<bool> {
    has_role(word, ABSENT | SUPERFLUOUS).then(|| has_role(word, ABSENT))
}

/// What the kind of a finding requests if its words do not.
pub(super) fn wanted_by_kind(kind: &str) -> Option<bool> {
    match kind {
        "missing_requirement" => Some(true),
        "extra_feature" | "over-engineering" | "dead-code" => Some(false),
        _ => None,
    }
}

/// Whether a word negates the one after it.
pub(super) fn negates(word: &str) -> bool {
    has_role(word, NEGATION)
}

/// Whether a word makes what follows a demand or a prohibition.
pub(super) fn demands(word: &str) -> bool {
    has_role(word, DEMAND)
}

/// Whether a word may come between a demand and its verb.
pub(super) fn leads(word: &str) -> bool {
    has_role(word, DEMAND | NEGATION | FILLER)
}

/// Whether a word says nothing about the subject of a finding.
pub(super) fn is_empty(word: &str) -> bool {
    has_role(word, EMPTY | DEMAND | NEGATION | FILLER | ABSENT | SUPERFLUOUS)
}

/// The stem of a word: `removed`, `removing` and `remove` are `remov`.
pub(super) fn stem(word: &str) -> String {
    let cut = cut_ending(word);
    let mut chars: Vec<char> = cut.chars().collect();
    if chars.len() > 2 && chars.last() == Some(&'e') {
        chars.pop();
    }
    if chars.len() > 2 && chars[chars.len() - 1] == chars[chars.len() - 2] {
        chars.pop();
    }
    chars.into_iter().collect()
}

fn cut_ending(word: &str) -> String {
    let long = |rest: &&str| rest.chars().count() > 2;
    if let Some(rest) = word.strip_suffix("ies").filter(long) {
        return format!("{rest}y");
    }
    let ending = ["ing", "ion", "ed", "s"].into_iter().find_map(|end| word.strip_suffix(end).filter(long));
    ending.unwrap_or(word).to_owned()
}
