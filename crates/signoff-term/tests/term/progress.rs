//! Lines a terminal draws again and again.

use jiff::{SignedDuration, Timestamp};
use signoff_core::ids::AttemptId;
use signoff_core::machine::Choice;
use signoff_core::review::Severity::Critical;
use signoff_core::wire::{Fact, LoopFact};
use signoff_term::progress;

use crate::story::{Story, id, reviewed};

/// Two minutes and thirteen seconds after the last fact.
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
fn a_line_never_exceeds_its_width() {
    let story = Story::task(reviewed("task"));
    for width in 0..80 {
        assert!(shown(&story, width).chars().count() <= width.max(1), "{width}");
    }
}
