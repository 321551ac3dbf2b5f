//! The same finding said by several reviewers.
//!
//! Two findings are the same one when
//! - different reviewers raised them (two findings of one reviewer are two findings),
//! - they stand at the same place: the same file with lines at most five apart, or neither with a line
//!   in the same file, or neither with a file. A finding with a line and one without are at different
//!   places: else the one without would tie together findings from all over the file,
//! - their descriptions are alike by [`crate::similarity`], and
//! - they do not ask for opposite things: "add the check" and "remove the check" are alike in words, and
//!   the last two anyone should see as one.
//!
//! Likeness is not transitive, so each finding is compared with the leading statement of a finding
//! already known: the most urgent one, first in the merged order. At most [`LIMIT`] of them are tried,
//! the nearest first, which keeps a reviewer that puts thousands of findings on one line affordable.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use super::conflict::{Asks, opposition};
use super::raised::Raised;
use super::related::NEAR;
use crate::ids::ReviewerName;
use crate::review::{Finding, ReviewerKind};
use crate::similarity::Signature;

/// How many known findings one finding is compared with.
const LIMIT: usize = 64;

/// Indexes of the statements of one finding; the first one leads.
pub(super) type Statements = Vec<usize>;

/// Brings the statements of each finding together, in the order of their leads.
pub(super) fn join(raised: &[Raised<'_>]) -> Vec<Statements> {
    let mut known = Known {
        raised,
        asks: raised.iter().map(|_| OnceCell::new()).collect(),
        signatures: raised.iter().map(|_| OnceCell::new()).collect(),
        findings: Vec::new(),
        by_place: BTreeMap::new(),
        by_words: BTreeMap::new(),
    };
    for index in 0..raised.len() {
        match known.said_before(index) {
            Some(finding) => known.findings[finding].push(index),
            None => known.add(index),
        }
    }
    known.findings
}

/// The number of the merged finding that each statement belongs to, in the order given.
pub(crate) fn group(said: &[(&ReviewerName, ReviewerKind, &Finding)]) -> Vec<usize> {
    let raise = |&(reviewer, kind, finding)| Raised::new(reviewer, kind, finding);
    let mut raised: Vec<(usize, Raised<'_>)> = said.iter().map(raise).enumerate().collect();
    raised.sort_by(|(_, a), (_, b)| a.key().cmp(&b.key()));
    let (positions, raised): (Vec<usize>, Vec<Raised<'_>>) = raised.into_iter().unzip();
    let mut groups = vec![0; said.len()];
    for (number, statements) in join(&raised).into_iter().enumerate() {
        for statement in statements {
            groups[positions[statement]] = number;
        }
    }
    groups
}

type Place<'a> = (Option<&'a str>, Option<u32>);

/// The findings met so far, to be looked up by where their lead stands.
struct Known<'a> {
    raised: &'a [Raised<'a>],
    /// What each asks for and the words it uses, read when first needed.
    asks: Vec<OnceCell<Asks>>,
    signatures: Vec<OnceCell<Signature>>,
    findings: Vec<Statements>,
    by_place: BTreeMap<Place<'a>, Vec<usize>>,
    /// Word for word repetitions are found even where a place is crowded beyond the limit.
    by_words: BTreeMap<(Place<'a>, &'a str), Vec<usize>>,
}

impl<'a> Known<'a> {
    fn add(&mut self, index: usize) {
        let raised: &'a Raised<'a> = &self.raised[index];
        let place = (raised.path.as_deref(), raised.finding.line);
        let finding = self.findings.len();
        self.findings.push(vec![index]);
        self.by_place.entry(place).or_default().push(finding);
        self.by_words.entry((place, &raised.finding.description)).or_default().push(finding);
    }

    fn said_before(&self, index: usize) -> Option<usize> {
        let raised = &self.raised[index];
        let (path, line) = (raised.path.as_deref(), raised.finding.line);
        let verbatim = self.by_words.get(&((path, line), &raised.finding.description)).into_iter().flatten();
        let nearby = lines_around(line).filter_map(|line| self.by_place.get(&(path, line))).flatten();
        verbatim
            .take(LIMIT)
            .chain(nearby.take(LIMIT))
            .copied()
            .find(|&finding| self.is_said_again_by(index, &self.findings[finding]))
    }

    fn is_said_again_by(&self, index: usize, statements: &Statements) -> bool {
        let (raised, lead) = (&self.raised[index], statements[0]);
        statements.iter().all(|&said| self.raised[said].reviewer != raised.reviewer)
            && self.signature(lead).alike(self.signature(index))
            && opposition(self.asks(lead), self.asks(index)).is_none()
    }

    fn signature(&self, index: usize) -> &Signature {
        self.signatures[index].get_or_init(|| Signature::of(&self.raised[index].finding.description))
    }

    fn asks(&self, index: usize) -> &Asks {
        self.asks[index].get_or_init(|| Asks::of(self.raised[index].finding))
    }
}

/// The line itself, then those around it, nearest first. A missing line has only itself.
fn lines_around(line: Option<u32>) -> impl Iterator<Item = Option<u32>> {
    let around = line.into_iter().flat_map(|line| {
        (1..=NEAR).flat_map(move |by| [line.checked_sub(by), line.checked_add(by)]).flatten().map(Some)
    });
    std::iter::once(line).chain(around)
}
