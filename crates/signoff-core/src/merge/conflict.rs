//! Finds conflicts: pairs of findings of which one requests what the other forbids.
//!
//! Conflicts are reported, not resolved. `docs/adr/0003-detecting-conflicting-findings.md` describes the rule, with examples
//! and counterexamples.

mod requests;
mod vocabulary;

use super::{FindingConflict, IssueGroup, MergedIssue};
use crate::review::Finding;
pub(super) use requests::{ChangeRequest, change_requests};

/// Maximum neighbours, by line, that each issue of a group is compared with. Larger groups can miss a conflict, but
/// merging thousands of issues stays fast.
const NEIGHBOURS: usize = 64;

/// Maximum number of common words in the description of a conflict.
const MAX_NAMED_WORDS: usize = 6;

/// The conflicts within the groups, in the order of the issues.
pub(super) fn find_conflicts(issues: &[MergedIssue], groups: &[IssueGroup]) -> Vec<FindingConflict> {
    let mut conflicts: Vec<_> = groups.iter().flat_map(|group| conflicts_in_group(issues, group)).collect();
    conflicts.sort_by_key(|conflict| (conflict.a, conflict.b));
    conflicts
}

fn conflicts_in_group(issues: &[MergedIssue], group: &IssueGroup) -> Vec<FindingConflict> {
    let mut requests: Vec<(usize, Vec<ChangeRequest>)> =
        group.issues.iter().map(|&index| (index, change_requests(&issues[index].finding))).collect();
    requests.sort_by_key(|(index, _)| (issues[*index].finding.line, *index));
    let mut conflicts = Vec::new();
    for (position, (a, request)) in requests.iter().enumerate() {
        for (b, other) in requests.iter().skip(position + 1).take(NEIGHBOURS) {
            if !have_different_reviewers(&issues[*a], &issues[*b]) {
                continue;
            }
            // Describe the conflict from the side of the more urgent issue.
            let (about, a, b) =
                if a < b { (opposition(request, other), *a, *b) } else { (opposition(other, request), *b, *a) };
            conflicts.extend(about.map(|about| FindingConflict { a, b, about }));
        }
    }
    conflicts
}

/// Whether the issues come from different reviewers. One reviewer that contradicts itself is not a conflict.
fn have_different_reviewers(a: &MergedIssue, b: &MergedIssue) -> bool {
    let voices = a.finding.sources.iter().chain(&b.finding.sources);
    voices.clone().zip(voices.skip(1)).any(|(one, other)| one != other)
}

/// Whether one finding requests what the other forbids.
pub(crate) fn are_opposed(a: &Finding, b: &Finding) -> bool {
    opposition(&change_requests(a), &change_requests(b)).is_some()
}

/// Describes what two findings disagree about, if they do.
pub(super) fn opposition(a: &[ChangeRequest], b: &[ChangeRequest]) -> Option<String> {
    a.iter().find_map(|one| b.iter().find_map(|other| opposite(one, other)))
}

/// Compares two requests. They are opposite if one requests the action that the other forbids, and they share more
/// than half of the words of the shorter one.
fn opposite(a: &ChangeRequest, b: &ChangeRequest) -> Option<String> {
    if a.action != b.action || a.wanted == b.wanted {
        return None;
    }
    let mut shared: Vec<&(usize, String)> =
        a.about.iter().filter(|(stem, _)| b.about.contains_key(*stem)).map(|(_, word)| word).collect();
    if 2 * shared.len() <= a.about.len().min(b.about.len()) {
        return None;
    }
    shared.sort();
    let named: Vec<&str> = shared.into_iter().take(MAX_NAMED_WORDS).map(|(_, word)| word.as_str()).collect();
    Some(format!("{} against {}: {}", a.phrase, b.phrase, named.join(" ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::FindingId;
    use crate::review::Severity;

    fn finding(kind: &str, description: &str) -> Finding {
        Finding {
            id: FindingId::new("f"),
            sources: Vec::new(),
            kind: kind.into(),
            severity: Severity::Important,
            file: None,
            line: None,
            description: description.into(),
            requirement: None,
            suggestion: None,
        }
    }

    fn about(a: &str, b: &str) -> Option<String> {
        let (a, b) = (change_requests(&finding("bug", a)), change_requests(&finding("bug", b)));
        let there = opposition(&a, &b);
        assert_eq!(there.is_some(), opposition(&b, &a).is_some(), "opposition has no direction");
        there
    }

    #[test]
    fn these_pairs_conflict() {
        let pairs = [
            ("Add a null check to parse()", "Remove the null check from parse()"),
            ("Missing input validation", "Input validation is not needed here"),
            ("Keep the retry loop, the network is flaky", "Delete the retry; the caller retries already"),
            ("This helper should be inlined", "Extract a helper"),
            ("Enable TLS verification", "TLS verification must be disabled in tests"),
            ("The result should be cached", "Do not cache the result"),
            ("Consider logging the request body", "Never log the request body"),
            ("Propagate the parse error", "Ignore the parse error"),
            ("A rate limiter is required by the specification", "Unnecessary rate limiter"),
            ("Use a mutex instead of a channel", "Replace the mutex with a channel"),
            ("There is no rate limiting", "Rate limiting is out of scope"),
            ("Increase the timeout", "Reduce the timeout to a second"),
            ("Must validate the token", "Don’t validate the token"),
            ("If the list is empty, keep the header", "Drop the footer and remove the header"),
        ];
        let conflicts: Vec<String> = pairs
            .iter()
            .map(|(a, b)| format!("{a} | {b}\n    {}", about(a, b).unwrap_or_else(|| "NOTHING".into())))
            .collect();
        insta::assert_snapshot!(conflicts.join("\n"), @"
        Add a null check to parse() | Remove the null check from parse()
            add against remove: null check parse
        Missing input validation | Input validation is not needed here
            wanted against unwanted: input validation
        Keep the retry loop, the network is flaky | Delete the retry; the caller retries already
            keep against delete: retry
        This helper should be inlined | Extract a helper
            inlined against extract: helper
        Enable TLS verification | TLS verification must be disabled in tests
            enable against disabled: tls verification
        The result should be cached | Do not cache the result
            cached against not cache: result
        Consider logging the request body | Never log the request body
            logging against not log: request body
        Propagate the parse error | Ignore the parse error
            propagate against ignore: parse error
        A rate limiter is required by the specification | Unnecessary rate limiter
            wanted against unwanted: rate limiter
        Use a mutex instead of a channel | Replace the mutex with a channel
            use against replace: mutex
        There is no rate limiting | Rate limiting is out of scope
            wanted against out of scope: rate limiting
        Increase the timeout | Reduce the timeout to a second
            increase against reduce: timeout
        Must validate the token | Don’t validate the token
            validate against not validate: token
        If the list is empty, keep the header | Drop the footer and remove the header
            keep against remove: header
        ");
    }

    #[test]
    fn these_pairs_do_not_conflict() {
        let pairs = [
            ("User input is not sanitized", "Sanitize the user input"),
            ("The null check was removed", "Add the null check back"),
            ("Removing the null check broke parse()", "Keep the null check"),
            ("Fails to add the header", "Add the header"),
            ("Does not close the file", "Close the file"),
            ("Opens the file and never closes it", "Close the file"),
            ("Null check checks the wrong thing", "Checks a and never null-checks the wrong thing"),
            ("end is computed from start instead of stop", "end should use stop"),
            ("Creates an instance", "Unused instance"),
            ("Throws if no credential exists", "The id is lost when trying to manage or delete a credential"),
            ("These calls have no effect on the result", "Discards the result"),
            ("Fails with: expected a number, not datetime", "Datetime fields are compared"),
            ("Missing input validation", "User input not sanitized"),
            ("Add validation for user input", "Remove the unused user import"),
            ("Add error handling", "Remove the error variable"),
            ("Remove the retry loop", "Remove the retry loop"),
            ("Missing OAuth flow implementation", "Magic number could be a constant"),
            ("No need to add a test", "Do not add a test"),
            ("", ""),
        ];
        for (a, b) in pairs {
            assert_eq!(about(a, b), None, "{a} | {b}");
        }
    }

    #[test]
    fn the_kind_of_a_finding_is_part_of_its_request() {
        let missing = change_requests(&finding("missing_requirement", "Retry with backoff"));
        let extra = change_requests(&finding("over-engineering", "Retry with backoff for one local call"));
        insta::assert_snapshot!(opposition(&missing, &extra).unwrap_or_default(), @"missing_requirement against over-engineering: retry backoff");
    }
}
