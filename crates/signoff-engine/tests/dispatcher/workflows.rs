//! Custom workflows: phases, reviewers with their own prompts, and models for roles.

use signoff_testkit::agent_script::ScriptRule;
use signoff_testkit::story::{ScriptedCall, Story};

use crate::dispatcher::scripts::{developer, lines, strict_reviewer};

const OWN: &str = "\
preset = \"careful\"

[roles]
implement = { agent = \"scripted\", model = \"big\" }
fix = { model = \"small\" }
simplify = \"scripted\"

[reviewers.privacy]
kind = \"security\"
prompt = \"docs/privacy.md\"
model = \"sharp\"
contract = \"markdown\"

[reviewers.style]
kind = \"code\"
contract = \"markdown\"

[prompts]
review = \"docs/style.md\"
simplify = \"docs/simplify.md\"

[workflows.careful]
description = \"write it, make it simple, have it read by two\"

[[workflows.careful.phases]]
name = \"write\"
kind = \"agent\"

[[workflows.careful.phases]]
name = \"tidy\"
kind = \"agent\"
role = \"simplify\"

[[workflows.careful.phases]]
name = \"read\"
kind = \"gate\"
reviewers = [\"privacy\", \"style\"]
fail_on = \"LOW\"
max_cycles = 2
";

const GUARD: &str = "You guard what people want to keep to themselves.";
const COLLEAGUE: &str = "You read like our most careful colleague.";

#[test]
fn a_custom_workflow_runs_until_approval() {
    let (story, project) = Story::with_files(OWN, |script| {
        let finds = ScriptRule::role("review").reviewer("privacy").cycle(1);
        script
            .rule(ScriptRule::role("implement").write("a.txt", "name: Ann\n").say("Written.\n"))
            .rule(ScriptRule::role("simplify").say("It is simple.\n"))
            .rule(finds.say("- a.txt:1 **HIGH** a name of a person\n\n**Verdict: CHANGES_REQUESTED**\n"))
            .rule(ScriptRule::role("review").say("**Verdict: APPROVED**\n"))
            .rule(ScriptRule::role("fix").write("a.txt", "name: somebody\n").say("Fixed.\n"))
    });
    project.write("docs/privacy.md", &format!("{GUARD}\n"));
    project.write("docs/style.md", &format!("{COLLEAGUE}\n"));
    project.write("docs/simplify.md", "Leave out what nobody misses.\n");
    story.add("Keep names");
    story.work();
    insta::assert_snapshot!(lines(&story), @"
    Running task #1: Keep names
      [1/2] Implementing...
      [1/2] Implementation complete
      [1/2] Simplifying...
      [1/2] Simplification complete
      [1/2] Running review...
      [1/2] Review: CHANGES_REQUESTED - a name of a person
        Review Results:
          Style Review: APPROVED
          Privacy Review: ISSUES

        Issues to Fix (1):

          1. [Privacy Critical] a.txt:1
             a name of a person

        Action: Fix issues and re-run reviews
      [2/2] Improving...
      [2/2] Running review...
      [2/2] Review: APPROVED
        Review Results:
          Style Review: APPROVED
          Privacy Review: APPROVED

        Action: Proceed
    ✓ Task #1 completed (APPROVED after 2 cycles)
    ");
    // The reviewers of one round run in parallel.
    let model = |call: &ScriptedCall| format!("{} {} {}: {}", call.phase, call.role, call.reviewer, call.model);
    let mut models: Vec<String> = story.calls().iter().map(model).collect();
    models.sort_unstable();
    insta::assert_snapshot!(models.join("\n"), @"
    read fix : small
    read review privacy: sharp
    read review privacy: sharp
    read review style: big
    read review style: big
    tidy simplify : 
    write implement : big
    ");
    let openings = |role: &str, reviewer: &str| -> Vec<String> {
        let calls = story.calls_as(role).into_iter().filter(|call| call.reviewer == reviewer);
        calls.map(|call| call.prompt.lines().next().unwrap_or_default().to_owned()).collect()
    };
    assert_eq!(openings("review", "privacy"), [GUARD, GUARD]);
    assert_eq!(openings("review", "style"), [COLLEAGUE, COLLEAGUE]);
    assert_eq!(openings("simplify", ""), ["Leave out what nobody misses."]);
}

const TWO_GATES: &str = "\
preset = \"twice\"

[reviewers.early]
kind = \"code\"
contract = \"markdown\"

[reviewers.late]
kind = \"code\"
contract = \"markdown\"

[workflows.twice]

[[workflows.twice.phases]]
name = \"write\"
kind = \"agent\"

[[workflows.twice.phases]]
name = \"first\"
kind = \"gate\"
reviewers = [\"early\"]
fail_on = \"LOW\"
on_failure = \"proceed\"

[[workflows.twice.phases]]
name = \"second\"
kind = \"gate\"
reviewers = [\"late\"]
fail_on = \"LOW\"
max_cycles = 2
";

/// A finding that a gate only notes is not passed to the next gate, and the gate's review file is unchanged.
#[test]
fn each_gate_has_its_own_review() {
    let finds = |text: &str| format!("- a.txt:1 **HIGH** {text}\n\n**Verdict: CHANGES_REQUESTED**\n");
    let story = Story::configured(TWO_GATES, |script| {
        script
            .rule(ScriptRule::role("implement").write("a.txt", "a\n").say("Written.\n"))
            .rule(ScriptRule::role("review").reviewer("early").say(&finds("rewrite it all")))
            .rule(ScriptRule::role("review").reviewer("late").cycle(1).say(&finds("a typo")))
            .rule(ScriptRule::role("review").say("**Verdict: APPROVED**\n"))
            .rule(ScriptRule::role("fix").write("a.txt", "b\n").say("Fixed.\n"))
    });
    story.add("Twice");
    story.work();
    let line = |name: &String| {
        let text = story.review(name);
        let verdict = text.lines().find(|line| line.contains("Verdict:")).unwrap_or_default().to_owned();
        let named = ["rewrite it all", "a typo"].into_iter().filter(|words| text.contains(words));
        let named: Vec<&str> = named.collect();
        format!("{}: {verdict} {}", &name[9..], named.join(", "))
    };
    insta::assert_snapshot!(story.reviews().iter().map(line).collect::<Vec<_>>().join("\n"), @"
    task-1-p1-first-review-1.md: **Verdict: CHANGES_REQUESTED** rewrite it all
    task-1-p1-second-review-1.md: **Verdict: CHANGES_REQUESTED** a typo
    task-1-p1-second-review-2.md: **Verdict: APPROVED** 
    ");
    let fixes = story.calls_as("fix");
    let [fix] = fixes.as_slice() else { panic!("there is one fix, not {}", fixes.len()) };
    assert!(fix.prompt.contains("a typo") && !fix.prompt.contains("rewrite it all"), "{}", fix.prompt);
}

#[test]
fn every_review_judges_the_whole_change() {
    let (story, _project) = Story::with_files("", |script| strict_reviewer(developer(script)));
    story.add("Add user authentication");
    story.work();
    let last = story.calls_as("review").pop().expect("a review").prompt;
    for line in ["+login", "+fixed 1", "+fixed 2"] {
        assert!(last.contains(line), "{line} is not in\n{last}");
    }
}
