//! Recovery: the process is killed at every recorded fact and at every end of an attempt, and the next process reaches
//! the same end as one that was never killed.

use serde_json::json;
use signoff_engine::dispatcher::RunLoopOptions;
use signoff_testkit::agent_script::{AgentScript, ScriptRule};
use signoff_testkit::story::{RunLoopEnd, Story};

use crate::dispatcher::groups::{developers, planners};
use crate::dispatcher::scripts::{APPROVED, approves, changes_requested, developer, strict_reviewer};

/// More kills than any story has facts.
const MOST_KILLS: usize = 500;

/// A story that can be killed and resumed.
struct KilledStory {
    new: fn() -> Story,
    start: fn(&Story) -> RunLoopEnd,
}

/// Everything that must be equal however often the process was killed.
pub fn ending(story: &Story) -> String {
    let branches = story.tasks().into_iter().filter_map(|row| row.branch).chain(["signoff/run-1".to_owned()]);
    let files = |branch: String| {
        let tip = story.repository(|repository| repository.tip(&branch));
        tip.map(|_| format!("{branch}: {:?}", story.files(&branch)))
    };
    let files: Vec<String> = branches.filter_map(files).collect();
    format!("{}\n{}\n{}", story.run_status(1), story.summary(), files.join("\n"))
}

impl KilledStory {
    fn ending_without_kill(&self) -> String {
        let story = (self.new)();
        assert!(matches!((self.start)(&story), RunLoopEnd::Ended(_)));
        ending(&story)
    }

    /// Resumes a killed story until it ends.
    fn resume(&self, story: &Story, place: &str) {
        if story.store_is_empty() {
            // Nothing was recorded: the user types the command again.
            (self.start)(story);
        } else {
            story.resume();
        }
        assert_eq!(story.executor.problems(), [""; 0], "killed at {place}");
    }

    /// Kills the process once at each recorded fact. Returns how often it was killed.
    fn killed_at_every_fact(&self) -> usize {
        let expected = self.ending_without_kill();
        for fact in 1..MOST_KILLS {
            let mut story = (self.new)();
            story.kill_after(fact);
            let RunLoopEnd::Killed = (self.start)(&story) else { return fact - 1 };
            story.never_kill();
            self.resume(&story, &format!("fact {fact}"));
            assert_eq!(ending(&story), expected, "killed at fact {fact}");
        }
        panic!("the story never ends");
    }

    /// Kills the process once at each end of an attempt, before the end is recorded.
    fn killed_at_every_end(&self) -> usize {
        let expected = self.ending_without_kill();
        for end in 1..MOST_KILLS {
            let story = (self.new)();
            story.executor.kill_switch().arm(end);
            let RunLoopEnd::Killed = (self.start)(&story) else { return end - 1 };
            self.resume(&story, &format!("end {end}"));
            assert_eq!(ending(&story), expected, "killed at end {end}");
        }
        panic!("the story never ends");
    }

    /// Kills every process after a few facts, until one ends before that.
    fn killed_again_and_again(&self, facts: usize) {
        let expected = self.ending_without_kill();
        let mut story = (self.new)();
        story.kill_after(facts);
        let mut end = (self.start)(&story);
        for _ in 0..MOST_KILLS {
            if let RunLoopEnd::Ended(_) = end {
                assert_eq!(ending(&story), expected, "killed after every {facts} facts");
                return;
            }
            end = if story.store_is_empty() { (self.start)(&story) } else { story.try_resume() };
        }
        panic!("the story never ends");
    }
}

fn work(story: &Story) -> RunLoopEnd {
    story.try_work(2, RunLoopOptions::default())
}

/// Two tasks with reviews and fixes.
const QUEUE: KilledStory = KilledStory {
    new: || {
        let story = Story::new(|script| {
            let fixes = ScriptRule::role("fix").cycle(1).write("auth.txt", "login\nfixed 1\n").say("Fixed.\n");
            let again = ScriptRule::role("fix").cycle(2).write("auth.txt", "login\nfixed 1\nfixed 2\n").say("Fixed.\n");
            strict_reviewer(developer(script.rule(fixes).rule(again)))
        });
        story.add("Log in");
        story.add("Log out");
        story
    },
    start: work,
};

/// A specification that is planned, worked in groups, landed and reviewed as a whole.
const GROUPS: KilledStory = KilledStory {
    new: || {
        let refused = ScriptRule::role("review").task("2").cycle(1).say(&changes_requested("the session stays open"));
        let whole = ScriptRule::role("review")
            .phase("final_review")
            .cycle(1)
            .say(&changes_requested("nothing ties them together"));
        let fixes = ScriptRule::role("fix").task("2").write("task-2.txt", "work\nfixed\n").say("Fixed.\n");
        let glue = ScriptRule::role("fix").phase("final_review").write("glue.txt", "glue\n").say("Fixed.\n");
        Story::new(|script| approves(developers(planners(script).rule(refused).rule(whole).rule(fixes).rule(glue))))
    },
    start: |story| story.try_run_spec(None, 2),
};

/// Two tasks on one file: the second one is sent back with a conflict.
const CONFLICT: KilledStory = KilledStory {
    new: || {
        let tasks = r#"{"tasks": [{"id": "a", "title": "A"}, {"id": "b", "title": "B"}]}"#;
        let works = |task: &str| {
            ScriptRule::role("implement").task(task).write("shared.txt", &format!("{task}\n")).say("TASK_COMPLETE\n")
        };
        let merges = ScriptRule::role("fix").write("shared.txt", "1\n2\n").say("Both.\n");
        Story::new(|script| {
            let script = script.rule(ScriptRule::role("enumerate").say(tasks));
            let script = script.rule(ScriptRule::role("plan").say(r#"{"groups": [["a", "b"]]}"#));
            approves(script.rule(works("1")).rule(works("2")).rule(merges))
        })
    },
    start: |story| story.try_run_spec(None, 1),
};

/// Findings in three files are fixed in parallel.
const PARALLEL_FIXES: KilledStory = KilledStory {
    new: || {
        let fixer = |own: &str| {
            let rule = ScriptRule::role("fix").prompt_contains(&format!("the word of {own}"));
            rule.write(&format!("{own}.txt"), &format!("one\nword of {own}\n")).say("Fixed.\n")
        };
        let wants = "- a.txt:1 lacks the word of a\n- b.txt:1 lacks the word of b\n- c.txt:1 lacks the word of c\n\n\
                     **Verdict: CHANGES_REQUESTED**\n";
        let implement = ["a.txt", "b.txt", "c.txt"]
            .into_iter()
            .fold(ScriptRule::role("implement"), |rule, file| rule.write(file, "one\n"));
        let story = Story::configured("[gate]\nparallel_fixes = true\n", |script: AgentScript| {
            let script = script.rule(implement.say("Done.\n")).rule(fixer("a")).rule(fixer("b")).rule(fixer("c"));
            approves(script.rule(ScriptRule::role("review").cycle(1).say(wants)))
        });
        story.add("Three files");
        story
    },
    start: work,
};

/// A rate-limited agent waits, and its fallback is tried first.
const RATE_LIMIT: KilledStory = KilledStory {
    new: || {
        let tables = "[roles]\nimplement = \"one\"\nreview = \"scripted\"\n[agents.one]\nkind = \"command\"\ncommand = \
                      [\"one\"]\nfallback = \"two\"\n[agents.two]\nkind = \"command\"\ncommand = [\"two\"]\n";
        let story = Story::configured(&format!("[limits]\nbackoff = \"0s\"\n{tables}"), |script| {
            let limited = |call| ScriptRule::role("implement").call(call).usage(json!({"cost_usd": 0.1})).exit(75);
            let works = ScriptRule::role("implement").write("a.txt", "hi\n");
            script.rule(limited(1)).rule(limited(2)).rule(works).rule(ScriptRule::role("review").say(APPROVED))
        });
        story.add("Try");
        story
    },
    start: work,
};

#[test]
fn a_queue_resumes_after_a_kill_at_any_fact() {
    assert!(QUEUE.killed_at_every_fact() > 20);
}

#[test]
fn a_queue_resumes_after_a_kill_at_the_end_of_any_attempt() {
    assert_eq!(QUEUE.killed_at_every_end(), 12);
}

#[test]
fn a_queue_resumes_however_often_it_is_killed() {
    for facts in [3, 4, 5, 7] {
        QUEUE.killed_again_and_again(facts);
    }
}

#[test]
fn a_run_of_groups_resumes_after_a_kill_at_any_fact() {
    assert!(GROUPS.killed_at_every_fact() > 60);
}

#[test]
fn a_run_of_groups_resumes_after_a_kill_at_the_end_of_any_attempt() {
    assert!(GROUPS.killed_at_every_end() > 15);
}

#[test]
fn a_run_of_groups_resumes_however_often_it_is_killed() {
    for facts in [4, 6, 9] {
        GROUPS.killed_again_and_again(facts);
    }
}

#[test]
fn a_conflict_resumes_after_a_kill_at_any_fact() {
    assert!(CONFLICT.killed_at_every_fact() > 30);
    assert!(CONFLICT.killed_at_every_end() > 10);
}

#[test]
fn parallel_fixes_resume_after_a_kill_at_any_fact() {
    assert!(PARALLEL_FIXES.killed_at_every_fact() > 10);
    assert!(PARALLEL_FIXES.killed_at_every_end() > 5);
}

#[test]
fn a_rate_limit_resumes_after_a_kill_at_any_fact() {
    assert!(RATE_LIMIT.killed_at_every_fact() > 8);
    assert!(RATE_LIMIT.killed_at_every_end() > 3);
}
