//! The commits that a branch would get with a commit, and their ancestry.

use signoff_core::ids::Commit;
use signoff_engine::git::{MergeOutcome, Repository, Worktree};

use crate::git::fixture::{GitFixture, write};

fn commit(worktree: &Worktree, file: &str, text: &str) -> Commit {
    write(worktree.path(), file, text);
    worktree.commit_all(file).expect("a commit").head.commit
}

fn merged(repository: &Repository, onto: &Worktree, commit: &Commit) -> Commit {
    let onto = onto.head().expect("a head");
    match repository.merge_onto(&onto, commit, "Merge it").expect("a merge") {
        MergeOutcome::Clean(head) => head.commit,
        merge @ (MergeOutcome::Contained | MergeOutcome::Different(_) | MergeOutcome::Conflicting { .. }) => {
            panic!("{merge:?}")
        }
    }
}

#[test]
fn ancestors_are_listed_parents_first() {
    let fixture = GitFixture::new();
    let (repository, one, two) = (fixture.repository(), fixture.worktree("one"), fixture.worktree("two"));
    let (first, second) = (commit(&one, "a.txt", "a\n"), commit(&one, "b.txt", "b\n"));
    let beside = commit(&two, "c.txt", "c\n");
    let both = merged(&repository, &two, &second);
    let lineage = repository.commits_beyond("main", [&both]).unwrap();
    let all = lineage.up_to(&both);
    assert_eq!((all.len(), all.last()), (4, Some(&both)));
    assert_eq!(lineage.between(&first, &second), [&second]);
    assert_eq!(lineage.between(&fixture.head(), &second), [&first, &second]);
    assert_eq!(lineage.between(&second, &both), [&beside, &both]);
    assert_eq!(lineage.parents(&both), [beside.clone(), second]);
    assert!(!lineage.contains(&fixture.head()), "the branch has it");
    let unknown = Commit::new("0123456789012345678901234567890123456789");
    let lineage = repository.commits_beyond("main", [&fixture.head(), &unknown]).unwrap();
    assert!(!lineage.contains(&fixture.head()) && !lineage.contains(&unknown));
}

#[test]
fn merges_with_own_changes_are_detected() {
    let fixture = GitFixture::new();
    let (repository, one, two) = (fixture.repository(), fixture.worktree("one"), fixture.worktree("two"));
    let (first, second) = (commit(&one, "a.txt", "a\n"), commit(&two, "b.txt", "b\n"));
    let plain = merged(&repository, &one, &second);
    let described = repository.commit_infos([&plain]).unwrap();
    assert_eq!(described[&plain].subject, "Merge it");
    assert!(repository.is_plain_merge(&first, &second, &described[&plain].tree).unwrap());
    write(one.path(), "evil.txt", "evil\n");
    let other = one.commit_all("more").unwrap().head;
    assert!(!repository.is_plain_merge(&first, &second, &other.tree).unwrap());
    fixture.run(&["checkout", "-q", "--orphan", "alone"]);
    fixture.commit("alone");
    let alone = Commit::new(fixture.run(&["rev-parse", "alone"]).trim());
    assert!(!repository.is_plain_merge(&first, &alone, &other.tree).unwrap());
}

#[test]
fn equal_changes_have_equal_patch_digests() {
    let fixture = GitFixture::new();
    let (repository, one, two) = (fixture.repository(), fixture.worktree("one"), fixture.worktree("two"));
    let lines: String = (1..=20).map(|number| format!("line {number}\n")).collect();
    commit(&one, "long.txt", &lines);
    let here = commit(&one, "long.txt", &lines.replace("line 12", "changed"));
    let lines = format!("above\n{lines}");
    commit(&two, "long.txt", &lines);
    let there = commit(&two, "long.txt", &lines.replace("line 12", "changed"));
    let other = commit(&two, "long.txt", &lines.replace("line 12", " changed"));
    let patches = repository.patches(&[here.clone(), there.clone(), other.clone()]).unwrap();
    assert_eq!(patches[&here].digest(), patches[&there].digest());
    assert_ne!(patches[&here].digest(), patches[&other].digest(), "a space is a change");
}

#[test]
fn replaced_lines_are_reported_only_for_pure_replacements() {
    let fixture = GitFixture::new();
    let (repository, one) = (fixture.repository(), fixture.worktree("one"));
    let begun = commit(&one, "plan.md", "# Plan\n- [ ] a\n- [ ] b");
    let ticked = commit(&one, "plan.md", "# Plan\n- [x] a\n- [x] b");
    let ended = commit(&one, "plan.md", "# Plan\n- [ ] a\n- [x] b\n");
    let longer = commit(&one, "plan.md", "# Plan\n- [x] a\n- [x] b\nmore\n");
    write(one.path(), "evil.txt", "evil\n");
    let evil = commit(&one, "plan.md", "# Plan\n- [ ] a\n- [x] b\nmore\n");
    let all = [begun.clone(), ticked.clone(), ended.clone(), longer.clone(), evil.clone()];
    let patches = repository.patches(&all).unwrap();
    let pairs: Vec<(&[u8], &[u8])> = vec![(b"- [ ] a", b"- [x] a"), (b"- [ ] b", b"- [x] b")];
    assert_eq!(patches[&ticked].replaced_lines(), Some(pairs));
    for other in [begun, ended, longer, evil] {
        assert_eq!(patches[&other].replaced_lines(), None);
    }
}
