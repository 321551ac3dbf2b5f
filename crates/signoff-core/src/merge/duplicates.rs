//! Joins findings that several reviewers raised.
//!
//! Two findings are duplicates when
//! - different reviewers raised them (two findings of one reviewer are never duplicates),
//! - they have the same location: the same file with lines at most five apart, or neither has a line in the same
//!   file, or neither has a file. A finding with a line and one without have different locations; otherwise the one
//!   without would join findings from all over the file,
//! - their descriptions are alike by [`crate::similarity`], and
//! - they do not request opposite changes: "add the check" and "remove the check" have similar words.
//!
//! Similarity is not transitive, so each finding is compared with the lead of a known finding: the most urgent
//! statement, first in the merged order. At most [`LIMIT`] leads are compared, the nearest first, so that a
//! reviewer with thousands of findings on one line does not slow down the merge.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use super::conflict::{ChangeRequests, opposition};
use super::issues::{MAX_LINE_DISTANCE, RaisedFinding};
use crate::similarity::Signature;

/// Maximum number of known findings that one finding is compared with.
const LIMIT: usize = 64;

/// Indexes of the statements of one finding. The first one is the lead.
pub(super) type Statements = Vec<usize>;

/// Joins the statements of each finding, in the order of their leads.
pub(super) fn join_duplicates(raised: &[RaisedFinding<'_>]) -> Vec<Statements> {
    let mut known = KnownFindings {
        raised,
        requests: raised.iter().map(|_| OnceCell::new()).collect(),
        signatures: raised.iter().map(|_| OnceCell::new()).collect(),
        findings: Vec::new(),
        by_place: BTreeMap::new(),
        by_words: BTreeMap::new(),
    };
    for index in 0..raised.len() {
        match known.find_duplicate(index) {
            Some(finding) => known.findings[finding].push(index),
            None => known.add(index),
        }
    }
    known.findings
}

/// The number of the merged finding that each statement belongs to, in the given order.
pub(crate) fn group(said: Vec<RaisedFinding<'_>>) -> Vec<usize> {
    let mut groups = vec![0; said.len()];
    let mut raised: Vec<(usize, RaisedFinding<'_>)> = said.into_iter().enumerate().collect();
    raised.sort_by(|(_, a), (_, b)| a.key().cmp(&b.key()));
    let (positions, raised): (Vec<usize>, Vec<RaisedFinding<'_>>) = raised.into_iter().unzip();
    for (number, statements) in join_duplicates(&raised).into_iter().enumerate() {
        for statement in statements {
            groups[positions[statement]] = number;
        }
    }
    groups
}

type FileLine<'a> = (Option<&'a str>, Option<u32>);

/// The findings so far, indexed by the location of their lead.
struct KnownFindings<'a> {
    raised: &'a [RaisedFinding<'a>],
    /// The requests and words of each finding, computed on first use.
    requests: Vec<OnceCell<ChangeRequests>>,
    signatures: Vec<OnceCell<Signature>>,
    findings: Vec<Statements>,
    by_place: BTreeMap<FileLine<'a>, Vec<usize>>,
    /// Finds verbatim repetitions even at a location with more findings than the limit.
    by_words: BTreeMap<(FileLine<'a>, &'a str), Vec<usize>>,
}

impl<'a> KnownFindings<'a> {
    fn add(&mut self, index: usize) {
        let raised: &'a RaisedFinding<'a> = &self.raised[index];
        let place = (raised.path.as_deref(), raised.finding.line);
        let finding = self.findings.len();
        self.findings.push(vec![index]);
        self.by_place.entry(place).or_default().push(finding);
        self.by_words.entry((place, &raised.finding.description)).or_default().push(finding);
    }

    fn find_duplicate(&self, index: usize) -> Option<usize> {
        let raised = &self.raised[index];
        let (path, line) = (raised.path.as_deref(), raised.finding.line);
        let verbatim = self.by_words.get(&((path, line), &raised.finding.description)).into_iter().flatten();
        let nearby = lines_around(line).filter_map(|line| self.by_place.get(&(path, line))).flatten();
        verbatim
            .take(LIMIT)
            .chain(nearby.take(LIMIT))
            .copied()
            .find(|&finding| self.is_duplicate_of(index, &self.findings[finding]))
    }

    fn is_duplicate_of(&self, index: usize, statements: &Statements) -> bool {
        let (raised, lead) = (&self.raised[index], statements[0]);
        statements.iter().all(|&said| self.raised[said].reviewer != raised.reviewer)
            && self.signature(lead).alike(self.signature(index))
            && opposition(self.requests(lead), self.requests(index)).is_none()
    }

    fn signature(&self, index: usize) -> &Signature {
        self.signatures[index].get_or_init(|| Signature::new(&self.raised[index].finding.description))
    }

    fn requests(&self, index: usize) -> &ChangeRequests {
        self.requests[index].get_or_init(|| ChangeRequests::from_finding(self.raised[index].finding))
    }
}

/// The line itself, then those around it, nearest first. A missing line gives only itself.
fn lines_around(line: Option<u32>) -> impl Iterator<Item = Option<u32>> {
    let around = line.into_iter().flat_map(|line| {
        (1..=MAX_LINE_DISTANCE).flat_map(move |by| [line.checked_sub(by), line.checked_add(by)]).flatten().map(Some)
    });
    std::iter::once(line).chain(around)
}
