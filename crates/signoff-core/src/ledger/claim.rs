//! A fixer's claims about its findings. A claim is evidence to verify; it never changes a finding's state.

use serde::{Deserialize, Serialize};

use crate::ids::{AttemptId, Commit, FindingId};

/// What a fixer claims to have done about a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(strum::VariantArray, strum::IntoStaticStr)]
#[strum(const_into_str, serialize_all = "lowercase")]
pub enum ClaimKind {
    Fixed,
    Refuted,
    #[strum(serialize = "not fixed")]
    NotFixed,
}

impl ClaimKind {
    pub const ALL: &'static [Self] = <Self as strum::VariantArray>::VARIANTS;
}

/// One claim of a fixer.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FixClaim {
    pub finding: FindingId,
    pub kind: ClaimKind,
    pub evidence: String,
}

impl FixClaim {
    /// Adds a line of evidence.
    fn add_line(&mut self, line: &str) {
        let more = if self.evidence.is_empty() { line.trim().to_owned() } else { format!(" {}", line.trim()) };
        let room = MAX_EVIDENCE_CHARS.saturating_sub(self.evidence.chars().count());
        self.evidence.extend(more.chars().take(room));
    }
}

/// A claim as stored in the ledger.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RecordedClaim {
    pub kind: ClaimKind,
    pub evidence: String,
    pub attempt: AttemptId,
    /// The fixer's commit.
    pub commit: Commit,
}

/// Maximum length of stored evidence, in characters.
const MAX_EVIDENCE_CHARS: usize = 1000;

/// Minimum length of an id prefix that identifies a finding.
const MIN_PREFIX_CHARS: usize = 5;

/// Characters between and around the parts of a line: list markers, emphasis, code, table cells.
const MARKUP: &[char] =
    &['-', '–', '—', '*', '_', '`', '|', '>', '#', '+', '[', ']', '(', ')', ':', ',', '.', '•', '✅', '✔'];

/// Parses a fixer's claims: lines with the id of a known finding, then `fixed`, `refuted` or `not fixed`, then the
/// evidence, which may continue in indented lines. The last claim about a finding counts. All other lines are
/// ignored.
pub fn read_claims<'a>(message: &str, known: impl Iterator<Item = &'a FindingId> + Clone) -> Vec<FixClaim> {
    let mut claims: Vec<FixClaim> = Vec::new();
    let mut is_open = false;
    for line in message.lines() {
        if let Some(claim) = read_line(line, known.clone()) {
            claims.retain(|earlier| earlier.finding != claim.finding);
            claims.push(claim);
            is_open = true;
        } else {
            is_open &= line.starts_with([' ', '\t']) && !line.trim().is_empty();
            if let Some(claim) = claims.last_mut().filter(|_| is_open) {
                claim.add_line(line);
            }
        }
    }
    claims
}

fn read_line<'a>(line: &str, known: impl Iterator<Item = &'a FindingId>) -> Option<FixClaim> {
    let rest = strip_list_number(strip_markup(line));
    let end = rest.find(|c: char| c.is_whitespace() || c != '-' && MARKUP.contains(&c)).unwrap_or(rest.len());
    let (name, rest) = rest.split_at(end);
    let finding = find_by_prefix(name.trim_end_matches('-'), known)?;
    let rest = strip_markup(rest);
    let kind = ClaimKind::ALL.iter().copied().find(|kind| after_word(rest, kind.into_str()).is_some())?;
    let evidence =
        strip_markup(after_word(rest, kind.into_str())?).trim_end_matches(|c: char| c == '|' || c.is_whitespace());
    Some(FixClaim { finding, kind, evidence: evidence.chars().take(MAX_EVIDENCE_CHARS).collect() })
}

fn strip_markup(text: &str) -> &str {
    text.trim_start_matches(|c: char| c.is_whitespace() || MARKUP.contains(&c))
}

/// The text after the number of a list item.
fn strip_list_number(text: &str) -> &str {
    let behind = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let numbered = behind.len() < text.len() && behind.starts_with(['.', ')']);
    if numbered { strip_markup(behind) } else { text }
}

/// The finding with this id, or the only one whose id has this prefix.
fn find_by_prefix<'a>(name: &str, known: impl Iterator<Item = &'a FindingId>) -> Option<FindingId> {
    let name = name.to_ascii_lowercase();
    let mut begins = Vec::new();
    for id in known {
        if id.as_str() == name {
            return Some(id.clone());
        }
        if id.as_str().starts_with(&name) {
            begins.push(id);
        }
    }
    match begins.as_slice() {
        [one] if name.chars().count() >= MIN_PREFIX_CHARS => Some((*one).clone()),
        [] | [_] | [_, _, ..] => None,
    }
}

/// The text after a word at the start, compared without case.
fn after_word<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let (begins, rest) = text.split_at_checked(word.len())?;
    let ends = rest.chars().next().is_none_or(|next| !next.is_alphanumeric());
    let same = begins.eq_ignore_ascii_case(word) || begins.replace(['-', '_'], " ").eq_ignore_ascii_case(word);
    (same && ends).then_some(rest)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(message: &str) -> String {
        let known = ["f-22d1aa90c4", "f-22d1aa90c4-2", "f-7a0b11c2d3"].map(FindingId::new);
        let render = |claim: &FixClaim| format!("{} {}: {}", claim.finding, claim.kind.into_str(), claim.evidence);
        read_claims(message, known.iter()).iter().map(render).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn evidence_continues_in_indented_lines() {
        let message = "- f-7a0b11c2d3: fixed\n  in cart.rs,\n  with a test\nAll done.\n  not this";
        assert_eq!(read(message), "f-7a0b11c2d3 fixed: in cart.rs, with a test");
    }

    #[test]
    fn every_form_that_fixers_use_is_read() {
        for line in [
            "f-7a0b11c2d3 refuted: the macro uses it",
            "- f-7a0b11c2d3: refuted: the macro uses it",
            "* **f-7a0b11c2d3** – refuted – the macro uses it",
            "1. `f-7a0b11c2d3` refuted, the macro uses it",
            "| f-7a0b11c2d3 | Refuted | the macro uses it |",
            "> f-7a0b refuted. the macro uses it",
            "F-7A0B11C2D3 REFUTED: the macro uses it",
        ] {
            assert_eq!(read(line), "f-7a0b11c2d3 refuted: the macro uses it", "{line}");
        }
    }

    #[test]
    fn each_word_is_its_own_claim() {
        let account = "Done.\n\nf-22d1aa90c4 fixed: tests/a.rs passes\nf-22d1aa90c4-2 not fixed: no database here\n\
                       f-7a0b11c2d3 Not-Fixed";
        assert_eq!(
            read(account),
            "f-22d1aa90c4 fixed: tests/a.rs passes\nf-22d1aa90c4-2 not fixed: no database here\n\
             f-7a0b11c2d3 not fixed: "
        );
    }

    #[test]
    fn the_last_line_about_a_finding_counts() {
        assert_eq!(read("f-7a0b11c2d3 fixed: a\nf-7a0b11c2d3 not fixed: b"), "f-7a0b11c2d3 not fixed: b");
    }

    #[test]
    fn other_lines_are_not_claims() {
        for line in [
            "",
            "f-7a0b11c2d3",
            "f-7a0b11c2d3 is fixed",
            "f-7a0b11c2d3 fixedly",
            "f-99999999 fixed: an unknown finding",
            "f-22d1 fixed: two findings begin like this",
            "f- fixed: too short",
            "all fixed",
        ] {
            assert_eq!(read(line), "", "{line}");
        }
    }

    proptest! {
        #[test]
        fn any_text_can_be_read(text in "(f-7a0b11c2d3|f-22d1|fixed|not fixed|refuted|[-:|*` \n]|\\PC){0,40}") {
            let known = [FindingId::new("f-7a0b11c2d3")];
            let claims = read_claims(&text, known.iter());
            prop_assert!(claims.len() <= 1);
            prop_assert!(claims.iter().all(|claim| claim.evidence.chars().count() <= MAX_EVIDENCE_CHARS));
        }
    }
}
