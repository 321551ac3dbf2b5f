//! The redrawn progress lines of a terminal.

use jiff::{SignedDuration, Timestamp};
use signoff_core::group::RunEvent;
use signoff_core::ids::{AttemptId, RunId};
use signoff_core::machine::{Choice, Event, Policy};
use signoff_core::review::Severity::Critical;
use signoff_core::wire::{Fact, LoopFact};
use signoff_term::fit::columns;
use signoff_term::progress::{self, DisplaySize, ProgressList};

use crate::story::{Story, id, reviewed};

/// Two minutes and thirteen seconds after the last event.
fn now(story: &Story) -> Timestamp {
    story.view.last_at.expect("a fact") + SignedDuration::from_secs(133)
}

fn shown(story: &Story, width: usize) -> String {
    progress::line(&story.view.row(&id(29)).expect("a row"), now(story), width)
}

#[test]
fn a_line_says_what_a_loop_is_doing() {
    let mut story = Story::task(reviewed("plan"));
    let line = "Reading \x1b[2Jsrc/auth.rs to see how users log in today".to_owned();
    story.record(Fact::Loop(id(29), LoopFact::Said { attempt: AttemptId(1), line }));
    let mut lines = vec![shown(&story, 100), shown(&story, 60), shown(&story, 30), shown(&story, 10)];
    let mut story = story.works();
    lines.push(shown(&story, 60));
    story = story.objects("spec", &[(Critical, "a.rs:1", "wrong")]).approves("code");
    lines.push(shown(&story, 60));
    story = story.works().objects("spec", &[(Critical, "a.rs:1", "wrong")]).approves("code").works();
    story = story.objects("spec", &[(Critical, "a.rs:1", "wrong")]).approves("code");
    lines.push(shown(&story, 60));
    story = story.person(Choice::Stop);
    lines.push(shown(&story, 60));
    insta::assert_snapshot!(lines.join("\n"), @"
    WORK     #29 Add user authentication  implement  02:43  Reading ␛[2Jsrc/auth.rs to see how users lo…
    WORK     #29 Add user authentication  implement  02:43  Rea…
    WORK     #29 Add user authent…
    WORK…
    REVIEW   #29 Add user authentication  review 1/3  $0.12  02…
    FIX 1    #29 Add user authentication  review 1/3  $0.36  02…
    ASK      #29 Add user authentication  review 3/3  $1.08  02…
    STUCK    #29 Add user authentication  review 3/3  $1.08  02…
    ");
}

#[test]
fn counted_phases_have_their_number() {
    let mut story = Story::task(reviewed("phases"));
    let mut lines = vec![shown(&story, 100)];
    for _ in 0..8 {
        story = story.works();
    }
    lines.push(shown(&story, 100));
    story = story.approves("plan").works().objects("code", &[(Critical, "a.rs:1", "wrong")]);
    lines.push(shown(&story, 100));
    insta::assert_snapshot!(lines.join("\n"), @"
    WORK     #29 Add user authentication  phase 1/9 brainstorm, iteration 1/10  02:53
    REVIEW   #29 Add user authentication  phase 3/9 plan_review 1/11, iteration 1/10  $0.96  02:33
    FIX 1    #29 Add user authentication  phase 5/9 code_review 1/11, iteration 1/10  $1.32  02:33
    ");
}

#[test]
fn a_line_never_exceeds_its_width() {
    for title in ["Add user authentication", "ユーザー認証を追加する 🚀🚀", "❤️❤️❤️ and e\u{301}\u{301}"]
    {
        let story = Story::of(reviewed("task")).plan(&[&[(29, title)]]).starts(29);
        for width in 0..80 {
            let line = shown(&story, width);
            assert!(columns(&line) <= width.max(1), "{width}: {line}");
        }
    }
}

/// A group with this number of tasks, all started.
fn many(number: u64) -> Story {
    let tasks: Vec<(u64, String)> = (1..=number).map(|task| (task, format!("Task {task}"))).collect();
    let group: Vec<(u64, &str)> = tasks.iter().map(|(task, title)| (*task, title.as_str())).collect();
    (1..=number).fold(Story::of(reviewed("loops")).plan(&[&group]), Story::starts)
}

fn list(story: &Story) -> ProgressList {
    let mut list = ProgressList::default();
    list.update_run(RunId(3), story.view.overview());
    story.view.rows().into_iter().for_each(|row| list.update_loop(RunId(3), row));
    list
}

fn drawn(story: &Story, list: &ProgressList, room: DisplaySize) -> String {
    list.lines(now(story), room).join("\n")
}

#[test]
fn lines_that_do_not_fit_are_counted() {
    let story = many(12).on(2).works().approves("general").on(3).gives_up("no").on(4).works();
    let story = story.objects("general", &[(Critical, "a.rs:1", "wrong")]);
    let mut list = list(&story);
    list.set_last_line(RunId(3), &id(5), "Reading\x1b[2J a.rs");
    list.update_loop(RunId(3), story.view.row(&id(5)).expect("a row"));
    insta::assert_snapshot!(drawn(&story, &list, DisplaySize { columns: 70, lines: 7 }), @"
    run 3  group 1/1  1 signed off, 10 at work, 1 stuck  $0.60  15:33
    WORK     #1 Task 1  implement  12:53
    FIX 1    #4 Task 4  review 1/4  $0.24  02:33
    WORK     #5 Task 5  implement  10:13  Reading␛[2J a.rs
    WORK     #6 Task 6  implement  09:33
    WORK     #7 Task 7  implement  08:53
    … and 5 more
    ");
    for (columns, lines) in [(70, 0), (70, 1), (70, 2), (9, 20), (0, 5)] {
        let shown = list.lines(now(&story), DisplaySize { columns, lines });
        assert!(shown.len() <= lines && shown.iter().all(|line| line.chars().count() <= columns.max(1)));
    }
}

#[test]
fn sixty_four_loops_are_one_screen() {
    let story = many(64);
    let shown = list(&story).lines(now(&story), DisplaySize { columns: 80, lines: 20 });
    assert_eq!((shown.len(), shown[0].as_str()), (20, "run 3  group 1/1  64 at work  55:53"));
    assert_eq!(shown[19], "… and 46 more");
}

#[test]
fn a_checkpoint_shows_in_the_row_of_the_loop_it_looks_at() {
    let mut story = many(2);
    let since_checkpoint = [(id(1), 9), (id(2), 0)].into_iter().collect();
    story.run(RunEvent::AttemptSpent { since_checkpoint });
    let gate = || Policy::new(reviewed("loops").workflow.checkpoint());
    let story = story.serves(id(1).checkpoint(1), gate()).serves(id(2).checkpoint(1), gate());
    let mut list = list(&story);
    list.set_last_line(RunId(3), &id(2).checkpoint(1), "Looking at it");
    insta::assert_snapshot!(drawn(&story, &list, DisplaySize { columns: 80, lines: 20 }), @"
    run 3  group 1/1  2 at work  05:23
    REVIEW   #1 Task 1  checkpoint 1  04:23
    REVIEW   #2 Task 2  checkpoint 1  03:43  Looking at it
    ");
}

#[test]
fn a_run_line_shows_its_stage() {
    let room = DisplaySize { columns: 80, lines: 1 };
    let first =
        |story: &Story| drawn(story, &list(story), DisplaySize { lines: 20, ..room }).lines().next().map(str::to_owned);
    let mut story = Story::of(reviewed("loops"));
    story.run(RunEvent::Started);
    let mut told = vec![first(&story)];
    let story = many(2).on(1).works().approves("general").on(2).gives_up("no");
    told.push(first(&story));
    let story = story.then(Event::Cancelled { by: "ann".into() }).on(1).then(Event::LandingGranted);
    told.push(first(&story));
    let story = story.lands();
    told.push(first(&story));
    insta::assert_snapshot!(told.into_iter().flatten().collect::<Vec<_>>().join("\n"), @"
    run 3  planning  02:23
    run 3  group 1/1 blocked by #2  1 signed off, 1 stuck  $0.36  05:53
    run 3  group 1/1 landing #1  1 signed off, 1 cancelled  $0.36  06:43
    run 3  final review  1 done, 1 cancelled  $0.48  07:13
    ");
    // A single task needs no line for its run.
    insta::assert_snapshot!(drawn(&story, &list(&Story::task(reviewed("task"))), DisplaySize { lines: 9, ..room }), @"WORK     #29 Add user authentication  implement  06:23");
}
