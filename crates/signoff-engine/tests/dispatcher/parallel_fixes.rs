//! Parallel fixes: independent findings are fixed at the same time and combined.

use signoff_testkit::agent_script::{AgentScript, ScriptRule};
use signoff_testkit::story::{ScriptedCall, Story};

use crate::dispatcher::scripts::{approves, lines, wait_for_others};

const BRANCH: &str = "signoff/task-1-three-files";

/// All independent findings are fixed in parallel.
const AT_ONCE: &str = "[gate]\nparallel_fixes = true\n";

/// A review with a finding in each of these files.
fn review_of_files(files: &[&str]) -> String {
    let lines = files.iter().map(|file| format!("- {file} lacks the word of {}\n", &file[..1]));
    format!("{}\n**Verdict: CHANGES_REQUESTED**\n", lines.collect::<String>())
}

/// Three files, and a reviewer that requests these changes before it approves.
fn script_with_review(script: AgentScript, review: &str) -> AgentScript {
    let implement = ["a.txt", "b.txt", "c.txt"]
        .into_iter()
        .fold(ScriptRule::role("implement"), |rule, file| rule.write(file, "one\n"));
    approves(script.rule(implement.say("Done.\n")).rule(ScriptRule::role("review").cycle(1).say(review)))
}

fn three_files(script: AgentScript) -> AgentScript {
    script_with_review(script, &review_of_files(&["a.txt:1", "b.txt:1", "c.txt:1"]))
}

/// The fixer of a file, which waits until all others have started.
fn fixer(own: &str, others: &[&str]) -> ScriptRule {
    let rule = ScriptRule::role("fix").prompt_contains(&format!("the word of {own}"));
    let line = format!("one\nword of {own}\n");
    wait_for_others(rule, own, others).write(&format!("{own}.txt"), &line).say("Fixed.\n")
}

fn three_fixers(script: AgentScript) -> AgentScript {
    script.rule(fixer("a", &["b", "c"])).rule(fixer("b", &["a", "c"])).rule(fixer("c", &["a", "b"]))
}

/// One task.
fn worked(settings: &str, script: impl FnOnce(AgentScript) -> AgentScript) -> Story {
    let story = Story::configured(settings, script);
    story.add("Three files");
    story.work();
    story
}

/// The files of the branch with their lines.
fn files(story: &Story) -> [String; 3] {
    let files = story.files(BRANCH);
    ["a.txt", "b.txt", "c.txt"].map(|name| files[name].trim_end().replace('\n', ", "))
}

const ALL_FIXED: [&str; 3] = ["one, word of a", "one, word of b", "one, word of c"];

/// Whether a fixer's findings name the word of a file.
fn is_about(call: &ScriptedCall, name: &str) -> bool {
    call.prompt.contains(&format!("the word of {name}"))
}

#[test]
fn three_findings_in_three_files_are_fixed_by_three_at_once() {
    let story = worked(AT_ONCE, |script| three_fixers(three_files(script)));
    assert_eq!(story.outcome(1), "1 completed approved APPROVED - 2");
    assert_eq!(files(&story), ALL_FIXED);
    assert_eq!((story.calls_as("fix").len(), story.executor.max_concurrent()), (3, 3));
}

#[test]
fn each_fixer_gets_its_own_findings_and_a_list_of_the_others() {
    let story = worked(AT_ONCE, |script| three_fixers(three_files(script)));
    for call in story.calls_as("fix") {
        let own = ["a", "b", "c"].into_iter().filter(|name| is_about(&call, name));
        assert_eq!(own.count(), 1, "{}", call.prompt);
        assert!(call.prompt.contains("Others fix other findings at the same time"), "{}", call.prompt);
        assert!(call.prompt.contains("write a plan for every finding"), "{}", call.prompt);
    }
}

#[test]
fn two_findings_in_one_file_go_to_one_fixer() {
    let twice = "- a.txt:1 lacks the word of a\n- a.txt:3 names nobody at all\n- b.txt:1 lacks the word of b\n\n\
                 **Verdict: CHANGES_REQUESTED**\n";
    let story =
        worked(AT_ONCE, |script| script_with_review(script, twice).rule(fixer("a", &["b"])).rule(fixer("b", &["a"])));
    let calls = story.calls_as("fix");
    assert_eq!((calls.len(), story.executor.max_concurrent()), (2, 2));
    for call in calls {
        assert_eq!(call.prompt.contains("names nobody at all"), is_about(&call, "a"), "{}", call.prompt);
    }
}

#[test]
fn with_one_agent_at_a_time_fixers_run_one_after_the_other() {
    let one = format!("{AT_ONCE}[limits]\nagents_per_provider = 1\n");
    let story =
        worked(&one, |script| three_files(script).rule(fixer("a", &[])).rule(fixer("b", &[])).rule(fixer("c", &[])));
    assert_eq!(story.task(1).status.into_str(), "completed");
    assert_eq!((story.calls_as("fix").len(), story.executor.max_concurrent()), (3, 1));
    assert_eq!(files(&story), ALL_FIXED);
}

#[test]
fn a_fixer_that_changed_another_fixers_file_is_repeated_alone() {
    let overlaps = fixer("b", &["a", "c"]).write("a.txt", "one\nword of b\n");
    let story = worked(AT_ONCE, |script| {
        let again = ScriptRule::role("fix").prompt_contains("the word of b").call(4).append("b.txt", "word of b\n");
        let script = three_files(script.rule(again.say("Fixed.\n")));
        script.rule(fixer("a", &["b", "c"])).rule(overlaps).rule(fixer("c", &["a", "b"]))
    });
    assert_eq!(story.outcome(1), "1 completed approved APPROVED - 2");
    assert_eq!(files(&story), ALL_FIXED);
    insta::assert_snapshot!(lines(&story), @"
    Running task #1: Three files
      [1/3] Implementing...
      [1/3] Implementation complete
      [1/3] Running review...
      [1/3] Review: CHANGES_REQUESTED - lacks the word of a
      [2/3] Improving (3 fixes at once)...
      [2/3] Combining the fixes...
      [2/3] The fixes overlap: 2 of 3 kept, the others are repeated
      [2/3] Improving...
      [2/3] Running review...
      [2/3] Review: APPROVED
    ✓ Task #1 completed (APPROVED after 2 cycles)
    ");
    let is_shared = |call: &ScriptedCall| call.prompt.contains("Others fix other findings");
    assert_eq!(story.calls_as("fix").iter().map(is_shared).collect::<Vec<_>>(), [true, true, true, false]);
}

#[test]
fn only_the_fix_that_failed_is_repeated() {
    let asking = format!("{AT_ONCE}on_fixer_failure = [\"retry\", \"ask\"]\n");
    let story = worked(&asking, |script| {
        let fails = wait_for_others(ScriptRule::role("fix").prompt_contains("the word of c"), "c", &["a", "b"]).exit(1);
        three_files(script).rule(fixer("a", &["b", "c"])).rule(fixer("b", &["a", "c"])).rule(fails)
    });
    assert_eq!((story.task(1).status.into_str(), story.calls_as("fix").len()), ("waiting", 4));
    story.set_agent(|script| three_fixers(three_files(script)));
    story.answer(1, "retry");
    story.resume();
    assert_eq!(story.outcome(1), "1 completed approved APPROVED - 2");
    assert_eq!(files(&story), ALL_FIXED);
    assert_eq!(story.calls_as("fix").len(), 5);
}
