//! Properties that hold for all agent answers and kill points.

use proptest::prelude::*;
use signoff_core::machine::OutcomeKind;
use signoff_testkit::agent_script::{AgentScript, ScriptRule};
use signoff_testkit::story::{RunLoopEnd, Story};

use crate::dispatcher::checkpoints::at_checkpoint;
use crate::dispatcher::recovery::ending;
use crate::dispatcher::scripts::{APPROVED, approves, changes_requested};

/// How an implementer ends.
#[derive(Debug, Clone, Copy)]
enum ImplementerBehavior {
    Works,
    GivesUp,
    Fails,
    ChangesNothing,
}

/// How a review of one cycle ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReviewerBehavior {
    Approves,
    AsksForChanges,
    GivesUnreadableAnswer,
    AsksForDiscussion,
    Fails,
}

/// The behavior of one task's agents: the implementer, then the reviewer in its cycles.
type TaskStory = (ImplementerBehavior, [ReviewerBehavior; 3]);

fn task_story() -> impl Strategy<Value = TaskStory> {
    let implements = prop_oneof![
        6 => Just(ImplementerBehavior::Works),
        1 => Just(ImplementerBehavior::GivesUp),
        1 => Just(ImplementerBehavior::Fails),
        1 => Just(ImplementerBehavior::ChangesNothing),
    ];
    let reviews = || {
        prop_oneof![
            4 => Just(ReviewerBehavior::Approves),
            4 => Just(ReviewerBehavior::AsksForChanges),
            1 => Just(ReviewerBehavior::GivesUnreadableAnswer),
            1 => Just(ReviewerBehavior::AsksForDiscussion),
            1 => Just(ReviewerBehavior::Fails),
        ]
    };
    (implements, [reviews(), reviews(), reviews()])
}

fn implement(task: &str, implements: ImplementerBehavior) -> ScriptRule {
    let rule = ScriptRule::role("implement").task(task);
    match implements {
        ImplementerBehavior::Works => rule.write("task-{task}.txt", "work\n").say("TASK_COMPLETE\n"),
        ImplementerBehavior::GivesUp => rule.say("TASK_STUCK: no such API\n"),
        ImplementerBehavior::Fails => rule.exit(1),
        ImplementerBehavior::ChangesNothing => rule.say("TASK_COMPLETE\n"),
    }
}

fn review(task: &str, cycle: u32, reviews: ReviewerBehavior) -> ScriptRule {
    let rule = ScriptRule::role("review").task(task).cycle(cycle);
    match reviews {
        ReviewerBehavior::Approves => rule.say(APPROVED),
        ReviewerBehavior::AsksForChanges => rule.say(&changes_requested(&format!("task {task} lacks thing {cycle}"))),
        ReviewerBehavior::GivesUnreadableAnswer => rule.say("Mumble.\n"),
        ReviewerBehavior::AsksForDiscussion => rule.say("Is this meant?\n\n**Verdict: NEEDS_DISCUSSION**\n"),
        ReviewerBehavior::Fails => rule.exit(3),
    }
}

/// Two tasks in one group.
fn script(script: AgentScript, tasks: &[TaskStory; 2]) -> AgentScript {
    let listed = r#"{"tasks": [{"id": "a", "title": "A"}, {"id": "b", "title": "B"}]}"#;
    let mut script = script
        .rule(ScriptRule::role("enumerate").say(listed))
        .rule(ScriptRule::role("plan").say(r#"{"groups": [["a", "b"]]}"#));
    for (task, (implements, reviews)) in ["1", "2"].into_iter().zip(tasks) {
        script = script.rule(implement(task, *implements));
        for (cycle, reviews) in (1..).zip(reviews) {
            script = script.rule(review(task, cycle, *reviews));
            let fixed = format!("work\nfixed {cycle}\n");
            script = script.rule(ScriptRule::role("fix").task(task).cycle(cycle).write("task-{task}.txt", &fixed));
        }
    }
    approves(script)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, max_shrink_iters: 60, ..ProptestConfig::default() })]

    /// Only work whose last review approved it is approved, and only approved work lands.
    #[test]
    fn nothing_lands_without_an_approval(tasks in [task_story(), task_story()]) {
        let story = Story::new(|empty| script(empty, &tasks));
        story.run_spec(None, 2);
        let landed = story.file_names("signoff/run-1");
        for (row, (_, reviews)) in story.tasks().iter().zip(&tasks) {
            let is_approved = row.outcome == Some(OutcomeKind::Approved);
            let last = usize::try_from(row.review_cycle).ok().and_then(|cycle| reviews.get(cycle.checked_sub(1)?));
            prop_assert!(!is_approved || last.is_none_or(|last| *last == ReviewerBehavior::Approves), "{row:?}");
            prop_assert!(!landed.contains(&format!("task-{}.txt", row.id)) || is_approved, "{row:?}");
        }
    }

    /// A run that is killed once ends like one that is not. When a checkpoint comes depends on the progress of both
    /// tasks, so checkpoint reviews find nothing here.
    #[test]
    fn a_kill_changes_no_result(tasks in [task_story(), task_story()], kill in 1..60_usize) {
        let agents = |empty: AgentScript| script(empty.rule(at_checkpoint().say(APPROVED)), &tasks);
        let without_kill = Story::new(agents);
        without_kill.run_spec(None, 2);
        let mut story = Story::new(agents);
        story.kill_after(kill);
        if let RunLoopEnd::Killed = story.try_run_spec(None, 2) {
            story.never_kill();
            story.resume();
        }
        prop_assert_eq!(ending(&story), ending(&without_kill));
    }
}
