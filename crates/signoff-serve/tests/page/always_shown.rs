//! Data that a page must always show: files, findings, reasons and typed form fields.

use signoff_core::machine::Reason;
use signoff_core::view::{TaskRow, TaskStatus};
use signoff_serve::page::{self, DiffText, NoticeKind, PageNotice, TaskPage, TypedFields};
use signoff_term::show::AttemptOutcome;

use crate::page::dom::{all, parse};
use crate::page::sample;
use crate::page::stories::part;

/// Builds a patch that adds these files, each with the given number of lines.
fn new_files(files: &[(&str, usize)]) -> String {
    let file = |(path, lines): &(&str, usize)| {
        let head = format!("diff --git a/{path} b/{path}\nnew file mode 100644\n--- /dev/null\n+++ b/{path}\n");
        format!("{head}@@ -0,0 +1,{lines} @@\n{}", "+line\n".repeat(*lines))
    };
    files.iter().map(file).collect()
}

fn with_patch(patch: &str) -> TaskPage {
    TaskPage { diff: Some(DiffText { patch: patch.to_owned(), ..DiffText::default() }), ..sample::task() }
}

#[test]
fn a_large_file_hides_neither_small_files_nor_findings() {
    let task = with_patch(&new_files(&[("lock", 30_000), ("src/auth.rs", 2), ("src/mail.rs", 1)]));
    insta::assert_snapshot!(part(&page::diff(&task), "summary, .file > .hint, .file > .note, td.c"), @"
    lock new +30000 −0
    Too long for a page: 30000 lines.
    src/auth.rs new +2 −0 2 findings
    open critical missing input validation: an empty password is accepted — code, spec
    fixed important two logins at once make two sessions — code
    + line
    + line
    src/mail.rs new +1 −0 1 finding
    refuted important the lock is held while the mail is sent — code
    + line
    ");
    let task = with_patch(&new_files(&[("src/auth.rs", 30_000), ("src/mail.rs", 1)]));
    insta::assert_snapshot!(part(&page::diff(&task), "summary, .file > .hint, .file > .note, td.c"), @"
    src/auth.rs new +30000 −0 2 findings
    Too long for a page: 30000 lines.
    Line 12:
    open critical missing input validation: an empty password is accepted — code, spec
    Line 14:
    fixed important two logins at once make two sessions — code
    src/mail.rs new +1 −0 1 finding
    refuted important the lock is held while the mail is sent — code
    + line
    ");
}

#[test]
fn file_modes_and_types_are_shown() {
    let patch = "diff --git a/run.sh b/run.sh\nold mode 100644\nnew mode 100755\n\
                 diff --git a/new.sh b/new.sh\nnew file mode 100755\n--- /dev/null\n+++ b/new.sh\n@@ -0,0 +1 @@\n+x\n\
                 diff --git a/way b/way\nnew file mode 120000\n--- /dev/null\n+++ b/way\n@@ -0,0 +1 @@\n+/etc\n\
                 diff --git a/old b/old\nindex 1..2 120000\n--- a/old\n+++ b/old\n@@ -1 +1 @@\n-a\n+b\n\
                 diff --git a/kept b/kept\nindex 1..2 100755\n--- a/kept\n+++ b/kept\n@@ -1 +1 @@\n-a\n+b\n\
                 diff --git a/src/auth.rs b/src/auth.rs\ndeleted file mode 100644\n--- a/src/auth.rs\n+++ /dev/null\n\
                 @@ -1 +0,0 @@\n-a\n\
                 diff --git a/src/auth.rs b/src/auth.rs\nnew file mode 120000\n--- /dev/null\n+++ b/src/auth.rs\n\
                 @@ -0,0 +1 @@\n+b\n";
    insta::assert_snapshot!(part(&page::diff(&with_patch(patch)), ".file > summary"), @"
    run.sh mode 644 → 755 +0 −0
    new.sh new executable +1 −0
    way new symlink +1 −0
    old symlink +1 −1
    kept +1 −1
    src/auth.rs deleted +0 −1
    src/auth.rs new symlink +1 −0 2 findings
    ");
}

#[test]
fn a_stuck_task_shows_its_reason_at_the_top() {
    let mut page = sample::task();
    page.report.task =
        TaskRow { reason: Some(Reason::TaskStuck), ..sample::row(29, "Add user authentication", TaskStatus::Stuck) };
    page.report.attempts.iter_mut().for_each(|attempt| attempt.detail = None);
    let last = page.report.attempts.last_mut().expect("an attempt");
    (last.outcome, last.detail) = (Some(AttemptOutcome::GaveUp), Some("there is no such table".to_owned()));
    insta::assert_snapshot!(part(&page::task(&page, None), "#head .lead, #head .bad:not(.chip)"), @"
    ! stuck the agent reports that it is stuck (task_stuck)
    there is no such table
    ");
}

#[test]
fn no_verdict_can_be_set_while_a_fix_runs() {
    let mut page = sample::task();
    page.report.task = sample::row(29, "Add user authentication", TaskStatus::InProgress);
    let offered = |page: &TaskPage| part(&page::task(page, None), "#edit > summary");
    assert_eq!(offered(&page), "Set the verdict…\n");
    page.report.is_being_written = true;
    assert_eq!(offered(&page), "");
}

#[test]
fn a_refused_form_keeps_its_fields() {
    let page = sample::task();
    let refused = |action: &str| {
        let typed =
            TypedFields { action: action.to_owned(), verdict: "NEEDS_DISCUSSION".into(), reason: "so <b>".into() };
        let (kind, message) = (NoticeKind::Refused, "no".to_owned());
        parse(&page::task(&page, Some(&PageNotice { kind, message, hint: None, typed: Some(typed) })))
    };
    let edited = refused("/tasks/29/edit");
    assert_eq!(all(&edited, "#edit[open] input[name=reason][value='so <b>']").len(), 1);
    assert_eq!(all(&edited, "#edit option[selected][value=NEEDS_DISCUSSION]").len(), 1);
    let disputed = refused("/findings/f-84289c36aa/dispute");
    assert_eq!(all(&disputed, "details[open] > form input[name=reason][value='so <b>']").len(), 1);
    assert_eq!(all(&disputed, "#edit[open], #edit [value='so <b>']").len(), 0);
}
