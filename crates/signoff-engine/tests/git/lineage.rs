//! What a branch would get with a commit, and how that came about.

use signoff_core::ids::Commit;
use signoff_engine::git::{Merge, Repository, Worktree};

use crate::place::{Place, write};

fn commit(worktree: &Worktree, file: &str, text: &str) -> Commit {
    write(worktree.path(), file, text);
    worktree.commit_all(file).expect("a commit").head.commit
}

fn merged(repository: &Repository, onto: &Worktree, commit: &Commit) -> Commit {
    let onto = onto.head().expect("a head");
    match repository.merge_onto(&onto, commit, "Merge it").expect("a merge") {
        Merge::Clean(head) => head.commit,
        merge @ (Merge::Contained | Merge::Conflicting { .. }) => panic!("{merge:?}"),
    }
}

#[test]
fn what_leads_to_a_commit_is_told_parents_first() {
    let place = Place::new();
    let (repository, one, two) = (place.repository(), place.worktree("one"), place.worktree("two"));
    let (first, second) = (commit(&one, "a.txt", "a\n"), commit(&one, "b.txt", "b\n"));
    let beside = commit(&two, "c.txt", "c\n");
    let both = merged(&repository, &two, &second);
    let lineage = repository.beyond("main", std::slice::from_ref(&both)).unwrap();
    let all = lineage.up_to(&both);
    assert_eq!((all.len(), all.last()), (4, Some(&both)));
    assert_eq!(lineage.between(&first, &second), [&second]);
    assert_eq!(lineage.between(&place.head(), &second), [&first, &second]);
    assert_eq!(lineage.between(&second, &both), [&beside, &both]);
    assert_eq!(lineage.parents(&both), [beside.clone(), second]);
    assert!(!lineage.holds(&place.head()), "the branch has it");
    let unknown = Commit::new("0123456789012345678901234567890123456789");
    assert!(repository.beyond("main", &[place.head(), unknown]).unwrap().is_empty());
}

#[test]
fn a_merge_that_adds_something_is_told_from_one_that_does_not() {
    let place = Place::new();
    let (repository, one, two) = (place.repository(), place.worktree("one"), place.worktree("two"));
    let (first, second) = (commit(&one, "a.txt", "a\n"), commit(&two, "b.txt", "b\n"));
    let plain = merged(&repository, &one, &second);
    let described = repository.described([&plain]).unwrap();
    assert_eq!(described[&plain].subject, "Merge it");
    assert!(repository.adds_nothing((&first, &second), &described[&plain].tree).unwrap());
    write(one.path(), "evil.txt", "evil\n");
    let other = one.commit_all("more").unwrap().head;
    assert!(!repository.adds_nothing((&first, &second), &other.tree).unwrap());
    place.run(&["checkout", "-q", "--orphan", "alone"]);
    place.commit("alone");
    let alone = Commit::new(place.run(&["rev-parse", "alone"]).trim());
    assert!(!repository.adds_nothing((&first, &alone), &other.tree).unwrap());
}

#[test]
fn the_same_change_is_known_wherever_it_stands() {
    let place = Place::new();
    let (repository, one, two) = (place.repository(), place.worktree("one"), place.worktree("two"));
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
fn lines_that_were_replaced_are_told_only_of_a_commit_that_does_nothing_else() {
    let place = Place::new();
    let (repository, one) = (place.repository(), place.worktree("one"));
    let begun = commit(&one, "plan.md", "# Plan\n- [ ] a\n- [ ] b");
    let ticked = commit(&one, "plan.md", "# Plan\n- [x] a\n- [x] b");
    let ended = commit(&one, "plan.md", "# Plan\n- [ ] a\n- [x] b\n");
    let longer = commit(&one, "plan.md", "# Plan\n- [x] a\n- [x] b\nmore\n");
    write(one.path(), "evil.txt", "evil\n");
    let evil = commit(&one, "plan.md", "# Plan\n- [ ] a\n- [x] b\nmore\n");
    let all = [begun.clone(), ticked.clone(), ended.clone(), longer.clone(), evil.clone()];
    let patches = repository.patches(&all).unwrap();
    let pairs: Vec<(&[u8], &[u8])> = vec![(b"- [ ] a", b"- [x] a"), (b"- [ ] b", b"- [x] b")];
    assert_eq!(patches[&ticked].replaced(), Some(pairs));
    for other in [begun, ended, longer, evil] {
        assert_eq!(patches[&other].replaced(), None);
    }
}
