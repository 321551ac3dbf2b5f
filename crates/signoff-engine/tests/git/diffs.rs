//! The diff under review.

use std::fs::{self, File};

use signoff_core::prompt::{DiffContext, LeftOutWhy};
use signoff_engine::git::Diff;

use crate::place::{Place, write};

fn lines(count: usize) -> String {
    (1..=count).map(|number| format!("line {number}\n")).collect()
}

fn left_out(diff: &Diff) -> Vec<(&str, LeftOutWhy)> {
    diff.left_out.iter().map(|file| (file.path.as_str(), file.why)).collect()
}

#[test]
fn committed_uncommitted_and_untracked_changes_are_all_in_it() {
    let place = Place::new();
    let base = place.head();
    let worktree = place.worktree("one");
    let top = worktree.path();
    write(top, "committed", "1\n");
    worktree.commit_all("work").unwrap();
    write(top, "README.md", "hello\nyou\n");
    write(top, "new\"ü\"", "2\n");
    write(top, "staged", "3\n");
    place.run_in(top, &["add", "staged"]);
    let person = place.person();
    let index = fs::read(place.root().join(".git/worktrees/one/index")).unwrap();

    let diff = worktree.diff(&base).unwrap();
    insta::assert_snapshot!(diff.stat, @r#"
     README.md  | 1 +
     committed  | 1 +
     "new\"ü\"" | 1 +
     staged     | 1 +
     4 files changed, 4 insertions(+)
    "#);
    insta::assert_snapshot!(diff.patch, @r#"
    diff --git a/README.md b/README.md
    index ce01362..95c9918 100644
    --- a/README.md
    +++ b/README.md
    @@ -1 +1,2 @@
     hello
    +you
    diff --git a/committed b/committed
    new file mode 100644
    index 0000000..d00491f
    --- /dev/null
    +++ b/committed
    @@ -0,0 +1 @@
    +1
    diff --git "a/new\"ü\"" "b/new\"ü\""
    new file mode 100644
    index 0000000..0cfbf08
    --- /dev/null
    +++ "b/new\"ü\""
    @@ -0,0 +1 @@
    +2
    diff --git a/staged b/staged
    new file mode 100644
    index 0000000..00750ed
    --- /dev/null
    +++ b/staged
    @@ -0,0 +1 @@
    +3
    "#);
    assert_eq!((diff.lines, diff.files, diff.cut), (diff.patch.lines().count(), 4, false));
    assert_eq!(fs::read(place.root().join(".git/worktrees/one/index")).unwrap(), index);
    assert_eq!(place.person(), person);

    let head = worktree.commit_all("rest").unwrap().head;
    assert_eq!(worktree.diff(&base).unwrap(), diff, "committing changes nothing");
    assert_eq!(worktree.diff_between(&base, &head.commit).unwrap(), diff);
}

#[test]
fn no_change_is_an_empty_diff() {
    let place = Place::new();
    let diff = place.worktree("one").diff(&place.head()).unwrap();
    assert!(diff.is_empty());
    assert_eq!((diff.stat.as_str(), diff.patch.as_str(), diff.lines), ("", "", 0));
}

#[test]
fn five_hundred_lines_are_inline_and_one_more_is_not() {
    let place = Place::new();
    let worktree = place.worktree("one");
    // Of a new file git prints six lines before its content.
    for (content, inline) in [(494, true), (495, false)] {
        write(worktree.path(), "new", lines(content));
        let diff = worktree.diff(&place.head()).unwrap();
        let context = DiffContext { stat: &diff.stat, diff: &diff.patch, ..DiffContext::default() };
        assert_eq!((diff.lines, context.is_inline()), (content + 6, inline));
    }
}

#[test]
fn binary_and_huge_files_are_named() {
    let place = Place::new();
    let base = place.head();
    let worktree = place.worktree("one");
    let top = worktree.path();
    write(top, "a.bin", b"\0\x01\x02");
    write(top, "big.txt", "x\n".repeat(150_000));
    write(top, "small.txt", "small\n");
    let diff = worktree.diff(&base).unwrap();
    insta::assert_debug_snapshot!(left_out(&diff), @r#"
    [
        (
            "a.bin",
            Binary,
        ),
        (
            "big.txt",
            Huge {
                bytes: 450124,
            },
        ),
    ]
    "#);
    assert!(diff.patch.contains("small") && !diff.patch.contains("big.txt") && !diff.patch.contains("a.bin"));
    assert!(diff.stat.contains("big.txt") && diff.stat.contains("a.bin"));
    assert_eq!(diff.lines, 7);

    worktree.commit_all("big").unwrap();
    let with_big = worktree.head().unwrap().commit;
    write(top, "big.txt", format!("{}one more line\n", "x\n".repeat(150_000)));
    let diff = worktree.diff(&with_big).unwrap();
    assert_eq!(left_out(&diff), []);
    assert!(diff.patch.contains("+one more line"), "a small change of a large file is shown");
}

#[test]
fn files_left_out_count_for_the_digest() {
    let place = Place::new();
    let worktree = place.worktree("one");
    let digest = |content: &[u8]| {
        write(worktree.path(), "a.bin", content);
        worktree.diff(&place.head()).unwrap().digest
    };
    let (one, two, again) = (digest(b"\0one"), digest(b"\0two"), digest(b"\0one"));
    assert_ne!(one, two);
    assert_eq!(one, again);
    assert_eq!(one.len(), 64);
}

#[test]
fn a_file_larger_than_memory_should_hold_is_named_without_being_shown() {
    let place = Place::new();
    let worktree = place.worktree("one");
    let sparse = File::create(worktree.path().join("huge")).unwrap();
    sparse.set_len(300_000_000).unwrap();
    let diff = worktree.diff(&place.head()).unwrap();
    assert_eq!(left_out(&diff), [("huge", LeftOutWhy::Huge { bytes: 300_000_000 })]);
    assert_eq!(diff.patch, "");
}

#[test]
fn who_only_looks_writes_nothing_and_reads_nothing_huge() {
    let place = Place::new();
    let base = place.head();
    let worktree = place.worktree("one");
    write(worktree.path(), "README.md", "changed\n");
    write(worktree.path(), "new.txt", "new\n");
    write(worktree.path(), "a.bin", b"\0\x01\x02");
    let objects = || place.run(&["count-objects", "-v"]);
    let before = objects();
    let seen = worktree.glance(&base).unwrap();
    assert_eq!(objects(), before, "looking");
    assert_eq!(seen, worktree.diff(&base).unwrap());
    assert_ne!(objects(), before, "a review");

    // Ten times as much as a machine has memory, and nobody waits for it.
    File::create(worktree.path().join("huge")).unwrap().set_len(1 << 38).unwrap();
    File::create(worktree.path().join("README.md")).unwrap().set_len(1 << 38).unwrap();
    let seen = worktree.glance(&base).unwrap();
    let huge = LeftOutWhy::Huge { bytes: 1 << 38 };
    assert_eq!(left_out(&seen), [("a.bin", LeftOutWhy::Binary), ("README.md", huge), ("huge", huge)]);
    assert!(seen.patch.contains("+new") && seen.stat.contains("huge | 274877906944 bytes"), "{}", seen.stat);

    fs::remove_file(worktree.path().join("new.txt")).unwrap();
    fs::remove_file(worktree.path().join("a.bin")).unwrap();
    let seen = worktree.glance(&base).unwrap();
    assert_eq!((seen.patch.as_str(), seen.files), ("", 2));
}

#[test]
fn an_agent_cannot_have_its_code_called_binary() {
    let place = Place::new();
    let worktree = place.worktree("one");
    write(worktree.path(), ".gitattributes", "* -diff binary\n");
    write(worktree.path(), "evil.rs", "evil\n");
    assert_eq!(left_out(&worktree.diff(&place.head()).unwrap()), []);
    worktree.commit_all("x").unwrap();
    assert!(worktree.diff(&place.head()).unwrap().patch.contains("+evil"));
}

#[test]
fn renames_modes_links_and_types() {
    let place = Place::new();
    place.write("long", lines(20));
    place.write("plain", "to be a link\n");
    place.commit("more");
    let base = place.head();
    let worktree = place.worktree("one");
    let top = worktree.path();
    fs::rename(top.join("long"), top.join("new\tname")).unwrap();
    fs::remove_file(top.join("plain")).unwrap();
    std::os::unix::fs::symlink("README.md", top.join("plain")).unwrap();
    write(top, "z.bin", b"\0");
    let diff = worktree.diff(&base).unwrap();
    assert_eq!(left_out(&diff), [("z.bin", LeftOutWhy::Binary)], "{}", diff.patch);
    assert!(diff.patch.contains("rename from long"));
    assert!(diff.patch.contains("deleted file mode 100644") && diff.patch.contains("new file mode 120000"));
}

#[test]
fn a_merge_with_conflicts_is_shown_as_the_files_are() {
    let place = Place::new();
    let worktree = place.worktree("one");
    write(worktree.path(), "README.md", "ours\n");
    worktree.commit_all("ours").unwrap();
    place.write("README.md", "theirs\n");
    place.commit("theirs");
    place.try_in(worktree.path(), &["merge", "main"]);
    assert!(worktree.diff(&place.head()).unwrap().patch.contains("+<<<<<<< HEAD"));
}

#[test]
fn text_that_is_not_utf_8_is_shown_as_well_as_can_be() {
    let place = Place::new();
    let worktree = place.worktree("one");
    write(worktree.path(), "latin1.txt", b"gr\xfcn\r\n");
    assert!(worktree.diff(&place.head()).unwrap().patch.contains("+gr\u{fffd}n\r\n"));
}
