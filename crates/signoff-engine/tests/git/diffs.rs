//! The diff that reviewers get.

use std::fs::{self, File};

use signoff_core::prompt::{DiffContext, OmissionReason};
use signoff_engine::git::GitDiff;

use crate::git::fixture::{GitFixture, write};

fn lines(count: usize) -> String {
    (1..=count).map(|number| format!("line {number}\n")).collect()
}

fn left_out(diff: &GitDiff) -> Vec<(&str, OmissionReason)> {
    diff.omitted.iter().map(|file| (file.path.as_str(), file.reason)).collect()
}

#[test]
fn the_diff_has_committed_uncommitted_and_untracked_changes() {
    let fixture = GitFixture::new();
    let base = fixture.head();
    let worktree = fixture.worktree("one");
    let top = worktree.path();
    write(top, "committed", "1\n");
    worktree.commit_all("work").unwrap();
    write(top, "README.md", "hello\nyou\n");
    write(top, "new\"ü\"", "2\n");
    write(top, "staged", "3\n");
    fixture.run_in(top, &["add", "staged"]);
    let before = fixture.checkout_fingerprint();
    let index = fs::read(fixture.root().join(".git/worktrees/one/index")).unwrap();

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
    assert_eq!((diff.lines, diff.files, diff.truncated), (diff.patch.lines().count(), 4, false));
    assert_eq!(fs::read(fixture.root().join(".git/worktrees/one/index")).unwrap(), index);
    assert_eq!(fixture.checkout_fingerprint(), before);

    let head = worktree.commit_all("rest").unwrap().head;
    assert_eq!(worktree.diff(&base).unwrap(), diff, "committing changes nothing");
    assert_eq!(worktree.diff_between(&base, &head.commit).unwrap(), diff);
}

#[test]
fn no_change_is_an_empty_diff() {
    let fixture = GitFixture::new();
    let diff = fixture.worktree("one").diff(&fixture.head()).unwrap();
    assert_eq!(diff.files, 0);
    assert_eq!((diff.stat.as_str(), diff.patch.as_str(), diff.lines), ("", "", 0));
}

#[test]
fn five_hundred_lines_are_inline_and_one_more_is_not() {
    let fixture = GitFixture::new();
    let worktree = fixture.worktree("one");
    // For a new file, git prints six lines before its content.
    for (content, inline) in [(494, true), (495, false)] {
        write(worktree.path(), "new", lines(content));
        let diff = worktree.diff(&fixture.head()).unwrap();
        let context = DiffContext { stat: &diff.stat, diff: &diff.patch, ..DiffContext::default() };
        assert_eq!((diff.lines, context.is_inline()), (content + 6, inline));
    }
}

#[test]
fn binary_and_huge_files_are_named() {
    let fixture = GitFixture::new();
    let base = fixture.head();
    let worktree = fixture.worktree("one");
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
    let fixture = GitFixture::new();
    let worktree = fixture.worktree("one");
    let digest = |content: &[u8]| {
        write(worktree.path(), "a.bin", content);
        worktree.diff(&fixture.head()).unwrap().digest
    };
    let (one, two, again) = (digest(b"\0one"), digest(b"\0two"), digest(b"\0one"));
    assert_ne!(one, two);
    assert_eq!(one, again);
    assert_eq!(one.len(), 64);
}

#[test]
fn a_huge_file_is_named_but_not_shown() {
    let fixture = GitFixture::new();
    let worktree = fixture.worktree("one");
    let sparse = File::create(worktree.path().join("huge")).unwrap();
    sparse.set_len(300_000_000).unwrap();
    let diff = worktree.diff(&fixture.head()).unwrap();
    assert_eq!(left_out(&diff), [("huge", OmissionReason::Huge { bytes: 300_000_000 })]);
    assert_eq!(diff.patch, "");
}

#[test]
fn a_read_only_diff_writes_nothing_and_skips_huge_files() {
    let fixture = GitFixture::new();
    let base = fixture.head();
    let worktree = fixture.worktree("one");
    write(worktree.path(), "README.md", "changed\n");
    write(worktree.path(), "new.txt", "new\n");
    write(worktree.path(), "a.bin", b"\0\x01\x02");
    let objects = || fixture.run(&["count-objects", "-v"]);
    let before = objects();
    let seen = worktree.preview_diff(&base).unwrap();
    assert_eq!(objects(), before, "looking");
    assert_eq!(seen, worktree.diff(&base).unwrap());
    assert_ne!(objects(), before, "a review");

    // A sparse file larger than memory: the diff must not read it.
    File::create(worktree.path().join("huge")).unwrap().set_len(1 << 38).unwrap();
    File::create(worktree.path().join("README.md")).unwrap().set_len(1 << 38).unwrap();
    let seen = worktree.preview_diff(&base).unwrap();
    let huge = OmissionReason::Huge { bytes: 1 << 38 };
    assert_eq!(left_out(&seen), [("a.bin", OmissionReason::Binary), ("README.md", huge), ("huge", huge)]);
    assert!(seen.patch.contains("+new") && seen.stat.contains("huge | 274877906944 bytes"), "{}", seen.stat);

    fs::remove_file(worktree.path().join("new.txt")).unwrap();
    fs::remove_file(worktree.path().join("a.bin")).unwrap();
    let seen = worktree.preview_diff(&base).unwrap();
    assert_eq!((seen.patch.as_str(), seen.files), ("", 2));
}

#[test]
fn attributes_cannot_mark_code_as_binary() {
    let fixture = GitFixture::new();
    let worktree = fixture.worktree("one");
    write(worktree.path(), ".gitattributes", "* -diff binary\n");
    write(worktree.path(), "evil.rs", "evil\n");
    assert_eq!(left_out(&worktree.diff(&fixture.head()).unwrap()), []);
    worktree.commit_all("x").unwrap();
    assert!(worktree.diff(&fixture.head()).unwrap().patch.contains("+evil"));
}

#[test]
fn renames_modes_links_and_types() {
    let fixture = GitFixture::new();
    fixture.write("long", lines(20));
    fixture.write("plain", "to be a link\n");
    fixture.commit("more");
    let base = fixture.head();
    let worktree = fixture.worktree("one");
    let top = worktree.path();
    fs::rename(top.join("long"), top.join("new\tname")).unwrap();
    fs::remove_file(top.join("plain")).unwrap();
    std::os::unix::fs::symlink("README.md", top.join("plain")).unwrap();
    write(top, "z.bin", b"\0");
    let diff = worktree.diff(&base).unwrap();
    assert_eq!(left_out(&diff), [("z.bin", OmissionReason::Binary)], "{}", diff.patch);
    assert!(diff.patch.contains("rename from long"));
    assert!(diff.patch.contains("deleted file mode 100644") && diff.patch.contains("new file mode 120000"));
}

#[test]
fn a_merge_with_conflicts_is_shown_as_the_files_are() {
    let fixture = GitFixture::new();
    let worktree = fixture.worktree("one");
    write(worktree.path(), "README.md", "ours\n");
    worktree.commit_all("ours").unwrap();
    fixture.write("README.md", "theirs\n");
    fixture.commit("theirs");
    fixture.try_in(worktree.path(), &["merge", "main"]);
    assert!(worktree.diff(&fixture.head()).unwrap().patch.contains("+<<<<<<< HEAD"));
}

#[test]
fn invalid_utf_8_is_shown_with_replacement_characters() {
    let fixture = GitFixture::new();
    let worktree = fixture.worktree("one");
    write(worktree.path(), "latin1.txt", b"gr\xfcn\r\n");
    assert!(worktree.diff(&fixture.head()).unwrap().patch.contains("+gr\u{fffd}n\r\n"));
}
