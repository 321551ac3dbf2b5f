//! Groups findings for parallel fixers: groups share no file.

use crate::ids::FindingId;
use crate::review::{Finding, is_repository_path};

/// Maximum number of parallel fixers.
const MAX_FIXERS: usize = 8;

/// Splits findings into groups with disjoint files, in the order given. A finding without a file in the repository
/// could touch any file, so with one such finding there is only one group. Groups beyond the maximum are merged into
/// the others.
pub fn independent_groups<'a>(findings: impl IntoIterator<Item = &'a Finding>) -> Vec<Vec<FindingId>> {
    let mut groups: Vec<(Option<&str>, Vec<FindingId>)> = Vec::new();
    let mut anywhere = false;
    for finding in findings {
        let file = finding.file.as_deref().filter(|file| is_repository_path(file));
        anywhere |= file.is_none();
        match groups.iter_mut().find(|(of, _)| *of == file) {
            Some((_, group)) => group.push(finding.id.clone()),
            None => groups.push((file, vec![finding.id.clone()])),
        }
    }
    let groups: Vec<_> = groups.into_iter().map(|(_, group)| group).collect();
    if anywhere { vec![groups.concat()] } else { limit_groups(groups) }
}

fn limit_groups(mut groups: Vec<Vec<FindingId>>) -> Vec<Vec<FindingId>> {
    let further = groups.split_off(groups.len().min(MAX_FIXERS));
    for (index, group) in further.into_iter().enumerate() {
        groups[index % MAX_FIXERS].extend(group);
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::review::Severity;

    fn finding(id: &str, file: Option<&str>) -> Finding {
        Finding {
            id: id.into(),
            sources: Vec::new(),
            kind: "bug".into(),
            severity: Severity::Critical,
            file: file.map(str::to_owned),
            line: None,
            description: String::new(),
            requirement: None,
            suggestion: None,
        }
    }

    fn groups(findings: &[Finding]) -> String {
        let group = |group: Vec<FindingId>| group.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
        independent_groups(findings).into_iter().map(group).collect::<Vec<_>>().join(" | ")
    }

    #[test]
    fn findings_in_three_files_are_three_groups_and_two_in_one_file_are_one() {
        let findings = [
            finding("a", Some("x.rs")),
            finding("b", Some("y.rs")),
            finding("c", Some("x.rs")),
            finding("d", Some("z.rs")),
        ];
        assert_eq!(groups(&findings), "a c | b | d");
    }

    #[test]
    fn findings_in_many_files_are_shared_by_eight() {
        let file = |number: usize| finding(&number.to_string(), Some(&format!("{number}.rs")));
        let findings: Vec<_> = (0..11).map(file).collect();
        assert_eq!(groups(&findings), "0 8 | 1 9 | 2 10 | 3 | 4 | 5 | 6 | 7");
    }

    #[test]
    fn a_finding_without_a_file_is_independent_of_nothing() {
        let findings = [finding("a", Some("x.rs")), finding("b", None), finding("c", Some("y.rs"))];
        assert_eq!(groups(&findings), "a b c");
        let findings = [finding("a", Some("x.rs")), finding("b", Some("/etc/passwd"))];
        assert_eq!(groups(&findings), "a b");
    }
}
