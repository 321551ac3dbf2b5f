//! The words the rule knows. Verbs are given in their base form.

use std::collections::HashMap;
use std::sync::LazyLock;

/// What a finding can ask for. `Verb` is any other verb, by its stem: wanted or not wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Action {
    /// That something is there.
    Presence,
    /// That something is switched on or let through.
    Enabled,
    /// That something is in one piece.
    Whole,
    /// That something is larger.
    Larger,
    /// That something can be reached from outside.
    Exposed,
    /// That something is strict.
    Strict,
    /// That a failure is passed on.
    PassedOn,
    Verb(String),
}

/// Verbs that are the two ends of one line: `add` wants presence, `remove` does not.
const POLES: [(Action, &str, &str); 7] = [
    (
        Action::Presence,
        "add introduce include implement keep retain preserve restore support use provide insert create have prefer",
        "remove delete drop omit strip discard eliminate exclude replace",
    ),
    (
        Action::Enabled,
        "enable activate allow permit accept",
        "disable deactivate forbid disallow prohibit reject deny block",
    ),
    (Action::Whole, "inline merge combine join", "extract split separate"),
    (Action::Larger, "increase extend lengthen expand", "decrease reduce lower shorten shrink"),
    (Action::Exposed, "expose export publish public", "hide encapsulate private"),
    (Action::Strict, "tighten", "loosen relax"),
    (Action::PassedOn, "propagate rethrow throw", "swallow ignore suppress"),
];

static ACTIONS: LazyLock<HashMap<String, (Action, bool)>> = LazyLock::new(|| {
    let mut actions = HashMap::new();
    for (action, wanted, unwanted) in &POLES {
        actions.extend(wanted.split(' ').map(|word| (stem(word), (action.clone(), true))));
        actions.extend(unwanted.split(' ').map(|word| (stem(word), (action.clone(), false))));
    }
    actions
});

/// What a verb asks for. One the table does not know stands for itself.
pub(super) fn action_of(verb: &str) -> (Action, bool) {
    let stem = stem(verb);
    ACTIONS.get(&stem).cloned().unwrap_or((Action::Verb(stem), true))
}

/// What a word does in a thought; some do several things. One bit each, so that a word is looked up once.
type Role = u16;

const ABSENT: Role = 1;
const SUPERFLUOUS: Role = 1 << 1;
const NEGATION: Role = 1 << 2;
const DEMAND: Role = 1 << 3;
const FILLER: Role = 1 << 4;
const OPENING: Role = 1 << 5;
const SUBORDINATION: Role = 1 << 6;
const EMPTY: Role = 1 << 7;

const ROLES: [(Role, &str); 8] = [
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

static ROLES_BY_WORD: LazyLock<HashMap<&str, Role>> = LazyLock::new(|| {
    let mut roles = HashMap::new();
    for (role, words) in ROLES {
        words.split_whitespace().for_each(|word| *roles.entry(word).or_default() |= role);
    }
    roles
});

fn plays(word: &str, roles: Role) -> bool {
    ROLES_BY_WORD.get(word).is_some_and(|role| role & roles != 0)
}

/// Words that complain of something absent (it is wanted) or of something present (it is not).
pub(super) fn complaint(word: &str) -> Option<bool> {
    plays(word, ABSENT | SUPERFLUOUS).then(|| plays(word, ABSENT))
}

/// What the kind of a finding asks for where its words do not say.
pub(super) fn wanted_by_kind(kind: &str) -> Option<bool> {
    match kind {
        "missing_requirement" => Some(true),
        "extra_feature" | "over-engineering" | "dead-code" => Some(false),
        _ => None,
    }
}

/// A word that turns the one after it around.
pub(super) fn negates(word: &str) -> bool {
    plays(word, NEGATION)
}

/// A word that makes what follows a wish or a ban, wherever it stands.
pub(super) fn demands(word: &str) -> bool {
    plays(word, DEMAND)
}

/// A word that may stand between a demand and its verb.
pub(super) fn leads(word: &str) -> bool {
    plays(word, DEMAND | NEGATION | FILLER)
}

/// A word an order may begin with, before its verb: "please remove", "never log". Not "not": "not closed"
/// tells, and asks for the opposite.
pub(super) fn opens_order(word: &str) -> bool {
    plays(word, DEMAND | OPENING)
}

/// A word after which `-ing` is a demand: "consider removing".
pub(super) fn takes_gerund(word: &str) -> bool {
    matches!(word, "consider" | "avoid" | "stop" | "suggest" | "recommend")
}

/// A word that begins a condition or a reason.
pub(super) fn subordinates(word: &str) -> bool {
    plays(word, SUBORDINATION)
}

/// A word that says nothing about what a finding is about, or only how it is said.
pub(super) fn is_empty(word: &str) -> bool {
    plays(word, EMPTY | DEMAND | NEGATION | FILLER | ABSENT | SUPERFLUOUS)
}

/// One spelling for the forms of a word: `removed`, `removing` and `remove` are `remov`.
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
