//! The words the rule knows. Verbs are given in their base form.

use std::collections::BTreeMap;
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
const POLES: [(Action, &[&str], &[&str]); 7] = [
    (
        Action::Presence,
        &[
            "add",
            "introduce",
            "include",
            "implement",
            "keep",
            "retain",
            "preserve",
            "restore",
            "support",
            "use",
            "provide",
            "insert",
            "create",
            "have",
            "prefer",
        ],
        &["remove", "delete", "drop", "omit", "strip", "discard", "eliminate", "exclude", "replace"],
    ),
    (
        Action::Enabled,
        &["enable", "activate", "allow", "permit", "accept"],
        &["disable", "deactivate", "forbid", "disallow", "prohibit", "reject", "deny", "block"],
    ),
    (Action::Whole, &["inline", "merge", "combine", "join"], &["extract", "split", "separate"]),
    (
        Action::Larger,
        &["increase", "extend", "lengthen", "expand"],
        &["decrease", "reduce", "lower", "shorten", "shrink"],
    ),
    (Action::Exposed, &["expose", "export", "publish"], &["hide", "encapsulate"]),
    (Action::Strict, &["tighten"], &["loosen", "relax"]),
    (Action::PassedOn, &["propagate", "rethrow", "throw"], &["swallow", "ignore", "suppress"]),
];

static ACTIONS: LazyLock<BTreeMap<String, (Action, bool)>> = LazyLock::new(|| {
    let pole = |words: &[&str], action: &Action, wanted: bool| {
        words.iter().map(|word| (stem(word), (action.clone(), wanted))).collect::<Vec<_>>()
    };
    POLES
        .iter()
        .flat_map(|(action, wanted, unwanted)| [pole(wanted, action, true), pole(unwanted, action, false)])
        .flatten()
        .collect()
});

/// What a verb asks for. One the table does not know stands for itself.
pub(super) fn action_of(verb: &str) -> (Action, bool) {
    let stem = stem(verb);
    ACTIONS.get(&stem).cloned().unwrap_or((Action::Verb(stem), true))
}

/// Words that complain of something absent (it is wanted) or of something present (it is not).
pub(super) fn complaint(word: &str) -> Option<bool> {
    match word {
        "missing" | "lacks" | "lacking" | "lack" | "absent" | "required" | "needed" | "necessary"
        | "mandatory" | "allowed" => Some(true),
        "unnecessary" | "unneeded" | "unused" | "redundant" | "superfluous" | "extra" | "extraneous"
        | "forbidden" | "prohibited" | "unwanted" | "disallowed" | "overkill" | "unspecified" => Some(false),
        _ => None,
    }
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
    matches!(
        word,
        "not"
            | "never"
            | "don't"
            | "shouldn't"
            | "mustn't"
            | "isn't"
            | "aren't"
            | "avoid"
            | "stop"
            | "no"
            | "longer"
    )
}

/// A word that makes what follows an order, a wish or a ban.
pub(super) fn demands(word: &str) -> bool {
    matches!(
        word,
        "must"
            | "should"
            | "shall"
            | "ought"
            | "need"
            | "needs"
            | "do"
            | "don't"
            | "shouldn't"
            | "mustn't"
            | "please"
            | "consider"
            | "avoid"
            | "stop"
            | "never"
            | "always"
            | "better"
            | "suggest"
            | "recommend"
    )
}

/// A word that may stand between a demand and its verb.
pub(super) fn leads(word: &str) -> bool {
    demands(word)
        || negates(word)
        || matches!(word, "to" | "be" | "just" | "simply" | "instead" | "also" | "we" | "you")
}

/// A word after which `-ing` is a demand: "consider removing".
pub(super) fn takes_gerund(word: &str) -> bool {
    matches!(word, "consider" | "avoid" | "stop" | "suggest" | "recommend")
}

/// A word that ends one thought and begins the next.
pub(super) fn breaks(word: &str) -> bool {
    matches!(
        word,
        "and"
            | "or"
            | "then"
            | "but"
            | "because"
            | "since"
            | "so"
            | "as"
            | "while"
            | "when"
            | "if"
            | "unless"
            | "which"
            | "that"
            | "otherwise"
            | "until"
    )
}

/// A word that says nothing about what a finding is about.
pub(super) fn is_empty(word: &str) -> bool {
    matches!(
        word,
        "a" | "an"
            | "the"
            | "this"
            | "these"
            | "those"
            | "it"
            | "its"
            | "they"
            | "them"
            | "there"
            | "here"
            | "is"
            | "are"
            | "was"
            | "were"
            | "been"
            | "being"
            | "has"
            | "had"
            | "does"
            | "did"
            | "can"
            | "could"
            | "will"
            | "would"
            | "may"
            | "might"
            | "of"
            | "in"
            | "on"
            | "at"
            | "by"
            | "for"
            | "from"
            | "with"
            | "without"
            | "into"
            | "onto"
            | "around"
            | "over"
            | "under"
            | "out"
            | "up"
            | "than"
            | "rather"
            | "any"
            | "all"
            | "some"
            | "each"
            | "every"
            | "very"
            | "too"
            | "only"
            | "still"
            | "already"
            | "again"
            | "back"
            | "before"
            | "after"
            | "entirely"
            | "completely"
            | "altogether"
            | "one"
            | "i"
    )
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
