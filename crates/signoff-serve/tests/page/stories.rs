//! Snapshots of the text of each page.

use scraper::{ElementRef, Html};
use signoff_core::view::{TaskRow, TaskStatus};
use signoff_serve::page::{self, DiffText, HomePage, TaskPage};

use crate::page::dom::{all, parse, words};
use crate::page::sample;

/// Lists the headings and one line for each entry of a page.
fn outline(page: &Html) -> String {
    let shown = all(
        page,
        "h1, h2, .row, .question, .actions, .finding, .cycle, .note, .file > summary, figcaption, .hint, .next, .notice",
    );
    let line = |element: &ElementRef| {
        let mark = match element.value().name() {
            "h1" => "# ",
            "h2" => "## ",
            _ => "- ",
        };
        format!("{mark}{}\n", words(*element))
    };
    shown.iter().map(line).collect()
}

pub fn part(html: &str, selector: &str) -> String {
    all(&parse(html), selector).into_iter().map(|element| words(element) + "\n").collect()
}

#[test]
fn tasks_that_need_the_user_come_first() {
    insta::assert_snapshot!(outline(&parse(&page::home(&sample::home(), None))), @"
    # Overview
    ## Needs you 3
    - #31 Store sessions in Redis code gave no usable review; the others did. Retry, proceed without, or stop? Retry Proceed Stop
    - ! stuck #30 Send a mail after sign-up task_stuck $0.36 12m 30s 1h ago Retry task 30 signoff show 30, then signoff retry 30
    - signoff show 30, then signoff retry 30
    - ! completed #28 Migrate the users table MAX_CYCLES_REACHED (2 cycles) $0.36 12m 30s 1h ago Retry task 28 signoff show 28, then signoff improve 28 --review or signoff edit 28 --verdict APPROVED
    - signoff show 28, then signoff improve 28 --review or signoff edit 28 --verdict APPROVED
    ## Running 2
    - → in progress #32 Rate limits for the login endpoint (cycle 2/3) 2 open $0.36 2h 00m
    - → in progress #33 Log out everywhere (implement) $0.36 2h 00m
    ## Waiting for their turn 2
    - · pending #34 Show where one is logged in implement $0.36
    - · pending #35 Two-factor authentication with an app that the person already has implement $0.36
    ## Runs 1
    - → in progress run 3 SPEC.md 3 of 7 done, 2 at work, 1 waiting for an answer, 1 stopped ~$4.71
    ## Done 2
    - ✓ completed #29 Add user authentication APPROVED (2 cycles) $0.36 12m 30s 1h ago
    - ✓ completed #27 Rename the package APPROVED (2 cycles) $0.36 12m 30s 1h ago
    ");
}

#[test]
fn a_question_is_answered_where_it_is_read() {
    let page = parse(&page::home(&sample::home(), None));
    insta::assert_snapshot!(all(&page, "form.question")[0].html(), @r#"<form action="/questions/q4/answer" class="question" method="post"><input name="back" type="hidden" value="/"><p class="about"><a class="title" href="/tasks/31"><span class="id">#31</span> <bdi>Store sessions in Redis</bdi></a></p><p id="question-q4"><bdi>code gave no usable review; the others did. Retry, proceed without, or stop?</bdi></p><p class="choices"><button aria-describedby="question-q4" name="choice" value="retry">Retry</button> <button aria-describedby="question-q4" name="choice" value="proceed">Proceed</button> <button aria-describedby="question-q4" name="choice" value="stop">Stop</button> </p></form>"#);
}

#[test]
fn an_empty_overview_shows_how_to_add_a_task() {
    let empty = HomePage { tasks: Vec::new(), runs: Vec::new(), questions: Vec::new(), ..sample::home() };
    insta::assert_snapshot!(part(&page::home(&empty, None), "main"), @"Overview No tasks yet. Add the first one . Needs you Nothing; work is in progress.");
}

#[test]
fn waiting_tasks_without_a_process_show_how_to_start_one() {
    let shown = |tasks: &[TaskStatus], driven: bool| {
        let tasks = (1..).zip(tasks).map(|(id, status)| sample::row(id, "Log in", *status)).collect();
        let driven = if driven { [3].into() } else { Default::default() };
        let home = HomePage { tasks, driven, questions: Vec::new(), runs: Vec::new(), ..sample::home() };
        part(&page::home(&home, None), "#attention .hint").trim().to_owned()
    };
    assert_eq!(shown(&[TaskStatus::Pending], false), "No process is running: signoff work starts one.");
    assert_eq!(
        shown(&[TaskStatus::Stuck, TaskStatus::Pending], false),
        "No process is running: signoff work starts one."
    );
    assert_eq!(shown(&[TaskStatus::Pending], true), "Nothing; work is in progress.");
    assert_eq!(shown(&[TaskStatus::Completed], false), "Nothing.");
}

#[test]
fn waiting_tasks_are_not_counted_as_running() {
    use TaskStatus::{Completed, InProgress, Paused, Pending, Stuck, Waiting};
    let shown = |statuses: &[TaskStatus]| {
        let tasks = (1..).zip(statuses).map(|(id, status)| sample::row(id, "Log in", *status)).collect();
        part(&page::run(&page::RunPage { tasks, ..sample::run_page() }, None), ".progress").trim().to_owned()
    };
    assert_eq!(shown(&[Completed, Waiting]), "1 of 2 done, 1 waiting for an answer");
    assert_eq!(shown(&[InProgress, Paused, Stuck, Pending]), "0 of 4 done, 1 at work, 1 paused, 1 stopped");
}

#[test]
fn a_question_says_what_it_is_about() {
    let mut home = sample::home();
    home.tasks.iter_mut().filter(|task| task.id == 31).for_each(|task| task.open_findings = 2);
    let html = page::home(&home, None);
    assert_eq!(part(&html, ".question .about"), "#31 Store sessions in Redis 2 open findings\n");
    let page = parse(&html);
    let link = all(&page, ".question .about a + a")[0].value().attr("href").map(str::to_owned);
    let (path, place) = link.as_deref().and_then(|link| link.split_once('#')).expect("a link into a page");
    assert_eq!(path, "/tasks/31");
    let mut task = sample::task();
    task.report.task.id = 31;
    assert_eq!(all(&parse(&page::task(&task, None)), &format!("[id='{place}']")).len(), 1);
}

#[test]
fn the_title_shows_the_number_of_tasks_that_need_the_user() {
    let title = |home: &HomePage| part(&page::home(home, None), "title").trim().to_owned();
    let home = sample::home();
    assert_eq!(title(&home), "(3) Overview · shop");
    let quiet = HomePage { tasks: Vec::new(), questions: Vec::new(), ..home };
    assert_eq!(title(&quiet), "Overview · shop");
    assert_eq!(part(&page::home(&sample::home(), None), "nav [aria-current]"), "Overview\n");
}

#[test]
fn only_running_tasks_have_a_live_duration() {
    let row = |id, status| sample::row(id, "Log in", status);
    let over = sample::ended(row(1, TaskStatus::Completed), "approved", "APPROVED", "");
    let home = HomePage { tasks: vec![row(2, TaskStatus::InProgress), over], ..sample::home() };
    let page = parse(&page::home(&home, None));
    let shown = |selector: &str| all(&page, selector).into_iter().map(words).collect::<Vec<_>>();
    assert_eq!(shown("time[data-ms='7200000']"), ["2h 00m"]);
    assert_eq!(shown("time[datetime^=PT]:not([data-ms])"), ["12m 30s"]);
}

#[test]
fn the_connection_banner_has_its_texts() {
    let page = parse(&page::home(&sample::home(), None));
    let banner = all(&page, "#connection[hidden]")[0];
    assert_eq!(words(banner), "Not connected: this page may be out of date.");
    assert_eq!(
        banner.value().attr("data-refused"),
        Some("This page is out of date: open the address that `signoff serve` prints now.")
    );
    assert_eq!(banner.value().attr("data-failed"), Some("The page could not be refreshed: it may be out of date."));
}

#[test]
fn a_run_with_its_tasks() {
    insta::assert_snapshot!(outline(&parse(&page::run(&sample::run_page(), None))), @"
    # Run 3 SPEC.md
    - #31 Store sessions in Redis code gave no usable review; the others did. Retry, proceed without, or stop? Retry Proceed Stop
    ## Tasks
    - ✓ completed #27 Rename the package APPROVED (2 cycles) $0.36 12m 30s 1h ago
    - ! completed #28 Migrate the users table MAX_CYCLES_REACHED (2 cycles) $0.36 12m 30s 1h ago
    - ✓ completed #29 Add user authentication APPROVED (2 cycles) $0.36 12m 30s 1h ago
    - ! stuck #30 Send a mail after sign-up task_stuck $0.36 12m 30s 1h ago
    - ! waiting #31 Store sessions in Redis (cycle 1/3) $0.36 2h 00m
    - → in progress #32 Rate limits for the login endpoint (cycle 2/3) 2 open $0.36 2h 00m
    - → in progress #33 Log out everywhere (implement) $0.36 2h 00m
    ");
}

#[test]
fn a_task_with_all_details() {
    insta::assert_snapshot!(part(&page::task(&sample::task(), None), "h1, h2, #head, summary h3, .changed, .review, figcaption"), @"
    #29 Add user authentication
    ! completed MAX_CYCLES_REACHED (2 cycles) signoff show 29, then signoff improve 29 --review or signoff edit 29 --verdict APPROVED Type implement Branch signoff/task-29 Base c0ffee5eed Cost $2.06 27000 tokens in, 2400 out Time 12m 30s Added 2026-01-29 09:58:00 Retry task 29 Set the verdict… Verdict APPROVED CHANGES_REQUESTED MAX_CYCLES_REACHED NEEDS_DISCUSSION Why Set the verdict Cancel… Stops its agents, keeps its branch. Cancel task 29 Diff Report Run 3
    What was asked
    4 findings, 1 open
    open critical missing input validation: an empty password is accepted
    fixed important two logins at once make two sessions
    refuted important the lock is held while the mail is sent
    deferred minor the new endpoint is in no document
    3 cycles
    review 1 CHANGES REQUESTED
    3 new
    spec changes requested high confidence 41s $0.12 One requirement is not met. critical src/auth.rs:12 missing input validation: an empty password is accepted 1 minor note: src/auth.rs:30 a magic number Checked: cargo test
    code changes requested high confidence 41s $0.12 Good, but for two things. critical src/auth.rs:12 missing input validation: an empty password is accepted important src/auth.rs:14 two logins at once make two sessions minor the new endpoint is in no document Checked: cargo test
    security approved high confidence 41s $0.12 Nothing an attacker could use. Checked: cargo test
    review 2 CHANGES REQUESTED
    1 new, 1 carried, 1 fixed
    spec approved high confidence 41s $0.12 All requirements are met. Checked: cargo test
    code changes requested high confidence 41s $0.12 The race is still there. important src/auth.rs:14 two logins at once make two sessions important src/mail.rs:40 the lock is held while the mail is sent Checked: cargo test
    review 3 CHANGES REQUESTED
    1 fixed, 1 regressed
    spec approved high confidence 41s $0.12 Checked: cargo test
    code changes requested high confidence 41s $0.12 The validation is gone again. critical src/auth.rs:12 missing input validation: an empty password is accepted Checked: cargo test
    Diff
    Figures
    Findings per cycle
    Cost and time by role
    Attempts
    Decisions of people
    Transcripts
    Files kept
    ");
}

#[test]
fn a_finding_with_its_history() {
    insta::assert_snapshot!(part(&page::task(&sample::task(), None), "#t29-findings .finding"), @"
    open critical missing input validation: an empty password is accepted Where src/auth.rs:12 Kind bug Requirement R3: no empty passwords Suggestion Refuse it before hashing. Reported by code, spec Id f-84289c36aa reported in review 1 at 1a7b3c9d2e reported in review 3 at 3a7b3c9d2e The fixer says fixed at 5f0c1d2e3a : tests/auth.rs: empty_password fixed by code at 2a7b3c9d2e : approved without reporting it again in cycle 2 of pass 1 open by code at 3a7b3c9d2e : reported again in cycle 3 of pass 1 It is wrong… Why it is wrong Dispute the finding
    fixed important two logins at once make two sessions Where src/auth.rs:14 Kind bug Reported by code Id f-3848bab3b9 reported in review 1 at 1a7b3c9d2e reported in review 2 at 2a7b3c9d2e fixed by code at 3a7b3c9d2e : approved without reporting it again in cycle 3 of pass 1 It is wrong… Why it is wrong Dispute the finding
    refuted important the lock is held while the mail is sent Where src/mail.rs:40 Kind bug Reported by code Id f-77aa01bb02 reported in review 2 at 2a7b3c9d2e refuted by a person, ann at 2a7b3c9d2e : the mail is queued, not sent
    deferred minor the new endpoint is in no document Kind bug Reported by code Id f-0123456789 reported in review 1 at 1a7b3c9d2e deferred by a person, ann at 1a7b3c9d2e : when the endpoint is stable
    ");
}

#[test]
fn findings_are_shown_at_their_lines() {
    insta::assert_snapshot!(part(&page::diff(&sample::task()), "#diff > p, #diff > .note, summary, .file > .note, .file > .hint, tr"), @r"
    4 files changed, 8 insertions(+), 1 deletion(-)
    Found, but not in these files:
    deferred minor the new endpoint is in no document — code
    src/auth.rs +6 −1 2 findings
    Old line New line Text
    ⋯ impl Login {
    8 8 /// Checks who a person is.
    9 9 pub fn login(&self, name: &str, password: &str) -> Result<Session, Refused> {
    10 10 let user = self.users.find(name)?;
    11 − Ok(Session::new(user))
    11 + let hash = Hash::of(password);
    12 + if user.hash != hash {
    open critical missing input validation: an empty password is accepted — code, spec
    13 + return Err(Refused::WrongPassword);
    14 + }
    fixed important two logins at once make two sessions — code
    15 + self.sessions.open(user)
    12 16 }
    13 17 }
    14 18
    ⋯
    40 43 const LONGEST: usize = 64;
    44 + const SHORTEST: usize = 8;
    41 45
    src/mail.rs new +2 −0 1 finding
    refuted important the lock is held while the mail is sent — code
    Old line New line Text
    ⋯
    1 + //! Mails.
    2 + pub fn send() {}
    \ No newline at end of file
    logo.png +0 −0
    A binary file.
    docs/about.md renamed from docs/über.md +0 −0
    ");
}

#[test]
fn charts_have_text_descriptions() {
    insta::assert_snapshot!(part(&page::stats("shop", &sample::stats()), "h1, .lead, svg title, svg desc, .figures tr"), @"
    Statistics
    21 tasks approved, $1.51 each
    Findings by reviewer
    spec: 17 raised, 14 upheld, 1 refuted, 0 out of scope, 2 open, 0 pending. code: 47 raised, 31 upheld, 6 refuted, 3 out of scope, 4 open, 3 pending. security: 6 raised, 3 upheld, 2 refuted, 1 out of scope, 0 open, 0 pending
    Reviewer Raised Upheld Refuted Out of scope Open Pending Precision Cost
    spec 17 14 1 0 2 0 82 % $3.20
    code 47 31 6 3 4 3 70 % $5.90
    security 6 3 2 1 0 0 50 % $2.40
    Cost and time by role
    implement: $14.10, 3h 10m. review: $11.50, 1h 36m. fix: $6.02, 1h 24m. check: $0.00, 52m 00s
    Role Attempts Time Cost
    implement 24 3h 10m $14.10
    review 88 1h 36m $11.50
    fix 31 1h 24m $6.02
    check 40 52m 00s $0.00
    Cycles to approval, by tasks
    1 cycle: 6. 2 cycles: 11. 3 cycles: 4
    Name Count
    1 cycle 6
    2 cycles 11
    3 cycles 4
    Why tasks stopped
    cycles exhausted: 3. task stuck: 1. budget: 1
    Name Count
    cycles exhausted 3
    task stuck 1
    budget 1
    ");
    insta::assert_snapshot!(part(&page::task(&sample::task(), None), "svg desc"), @"
    Cycle 1: 3 new, 0 carried, 0 fixed. Cycle 2: 1 new, 1 carried, 1 fixed. Cycle 3: 0 new, 0 carried, 1 fixed, 1 regressed
    implement: $0.55, 3m 32s. review: $0.72, 4m 06s. fix: $0.55, 3m 32s
    ");
}

#[test]
fn a_report_of_a_run() {
    let task = sample::task();
    insta::assert_snapshot!(part(&page::report_file(&sample::report_head(), vec![task]), "h1, .hint > bdi, .progress, .lead, .stat, article.task > p, h2"), @"
    Run 3 SPEC.md
    shop
    1 of 1 done
    #29 Add user authentication
    ! Not approved after 2 reviews: the review cycles are used up (cycles_exhausted)
    4 findings: 1 fixed, 1 refuted, 1 deferred, 1 open
    4 files changed, 8 insertions(+), 1 deletion(-)
    What was asked
    4 findings, 1 open
    3 cycles
    cargo test
    cargo test
    cargo test
    cargo test
    cargo test
    cargo test
    cargo test
    Figures
    Attempts
    `[limits] attempt` sets the timeout
    Decisions of people
    Files kept
    ");
}

#[test]
fn error_pages_show_a_hint() {
    insta::assert_snapshot!(part(&page::error_page(404, "there is no task 99", Some("the overview lists those there are")), "title, main"), @"
    Not found · signoff
    Not found there is no task 99 the overview lists those there are To the overview
    ");
}

#[test]
fn an_interrupted_task_is_marked() {
    let mut page = sample::task();
    page.report.task = sample::row(29, "Add user authentication", TaskStatus::InProgress);
    page.next = sample::next_step(&page.report.task);
    insta::assert_snapshot!(part(&page::task(&page, None), "#head p.bad, #head .next"), @"
    No process works on it now: it was interrupted.
    signoff work 29
    ");
    page.driven = true;
    insta::assert_snapshot!(part(&page::task(&page, None), "#head p.bad, #head .next"), @"signoff work 29");
}

#[test]
fn a_question_replaces_the_next_command() {
    let mut page = sample::task();
    page.report.question = Some(sample::question());
    insta::assert_snapshot!(part(&page::task(&page, None), "#head .question, #head .next"), @"#31 code gave no usable review; the others did. Retry, proceed without, or stop? Retry Proceed Stop");
    // The question is about the task of this page.
    page.report.question.iter_mut().for_each(|question| question.task_id = Some(29));
    assert_eq!(all(&parse(&page::task(&page, None)), "#head .question").len(), 1);
    assert_eq!(all(&parse(&page::task(&page, None)), "#head .question a").len(), 0);
}

#[test]
fn a_void_approval_shows_its_reason() {
    let mut page = sample::task();
    page.report.voided = Some("signoff/task-29 has moved on to 9f8e7d6".into());
    insta::assert_snapshot!(part(&page::task(&page, None), "#head p.bad"), @"Not approved any more: signoff/task-29 has moved on to 9f8e7d6");
}

/// Lists the buttons of a task page.
fn offered(task: TaskRow) -> String {
    let mut page = sample::task();
    page.report.task = task;
    part(&page::task(&page, None), ".actions > * > summary, .actions > form")
}

#[test]
fn only_applicable_actions_are_offered() {
    let row = |status| TaskRow { outcome: None, ..sample::row(29, "Add user authentication", status) };
    let shown: String = TaskStatus::ALL
        .iter()
        .map(|&status| format!("{}: {}\n", status.into_str(), offered(row(status)).trim().replace('\n', " | ")))
        .collect();
    insta::assert_snapshot!(shown, @"
    pending: Cancel…
    in_progress: Set the verdict… | Cancel…
    waiting: Set the verdict… | Cancel…
    paused: Set the verdict… | Cancel…
    completed: Set the verdict…
    failed: Retry task 29 | Set the verdict… | Cancel…
    stuck: Retry task 29 | Set the verdict… | Cancel…
    blocked: Set the verdict… | Cancel…
    cancelled: Set the verdict…
    ");
}

#[test]
fn long_content_is_truncated() {
    let long = "x".repeat(200_000);
    let patch = format!("diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -0,0 +1,30000 @@\n{}", "+line\n".repeat(30_000));
    let mut task =
        TaskPage { spec: long.clone(), diff: Some(DiffText { patch, ..DiffText::default() }), ..sample::task() };
    task.report.ledger.iter_mut().for_each(|line| line.finding.description.clone_from(&long));
    task.transcripts.iter_mut().for_each(|transcript| transcript.tail = "ä\n".repeat(10_000));
    let html = page::task(&task, None);
    assert!(html.len() < 600_000, "{} bytes", html.len());
    insta::assert_snapshot!(part(&html, "#t29-spec .hint, #t29-diff, #t29-transcripts .hint"), @"
    … 133264 more bytes left out
    Diff 1 file, 30000 added, 0 removed The diff with its findings (30000 lines)
    … 23857 more bytes left out
    ");
    insta::assert_snapshot!(part(&page::diff(&task), "#diff .file"), @"a +30000 −0 Too long for a page: 30000 lines.");
}
