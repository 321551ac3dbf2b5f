//! Scripted agents that several stories share. The same as in the end-to-end tests.

use signoff_core::ids::RunId;
use signoff_core::view::RunState;
use signoff_term::line::{LineNaming, LineRenderer};
use signoff_testkit::agent_script::{AgentScript, ScriptRule};
use signoff_testkit::story::{ScriptedCall, Story};

/// The lines that the program prints about run 1.
pub fn lines(story: &Story) -> String {
    lines_after(story, 0)
}

/// The lines that a program prints about run 1 if it resumes the run after this number of facts.
pub fn lines_after(story: &Story, replayed: usize) -> String {
    let (mut state, mut renderer) = (RunState::default(), LineRenderer::new(LineNaming::WhenNeeded));
    let mut printed = Vec::new();
    for (number, recorded) in story.log(RunId(1)).into_iter().enumerate() {
        if number > 0 && number == replayed {
            printed.extend(renderer.caught_up());
        }
        let transition = state.apply(recorded);
        if number < replayed {
            renderer.replay(&transition);
        } else {
            printed.extend(renderer.apply(&transition));
        }
    }
    printed.join("\n")
}

/// The calls in their order, as `role reviewer task cycle`. Parallel reviewers are sorted by name.
pub fn call_list(story: &Story) -> String {
    let line = |call: ScriptedCall| {
        let reviewer = if call.reviewer.is_empty() { String::new() } else { format!(" {}", call.reviewer) };
        format!("{}{reviewer} task {} cycle {}", call.role, call.task, call.cycle)
    };
    let mut lines: Vec<String> = story.calls().into_iter().map(line).collect();
    let is_review = |line: &String| line.starts_with("review");
    lines.chunk_by_mut(|one, other| is_review(one) && is_review(other)).for_each(<[String]>::sort);
    lines.join("\n")
}

/// The file that agents write.
pub const FEATURE: &str = "auth.txt";

pub const APPROVED: &str = "All is well.\n\n**Verdict: APPROVED**\n";

/// A review that requests changes, with one finding.
pub fn changes_requested(reason: &str) -> String {
    format!("- auth.txt:1 {reason}\n\n**Verdict: CHANGES_REQUESTED**\n")
}

/// A developer that implements and fixes as requested.
pub fn developer(script: AgentScript) -> AgentScript {
    script
        .rule(ScriptRule::role("implement").write(FEATURE, "login\n").say("Done.\n"))
        .rule(ScriptRule::role("fix").append(FEATURE, "fixed {cycle}\n").say("Fixed.\n"))
}

/// A reviewer that approves at the third review.
pub fn strict_reviewer(script: AgentScript) -> AgentScript {
    script
        .rule(ScriptRule::role("review").cycle(1).say(&changes_requested("missing input validation")))
        .rule(ScriptRule::role("review").cycle(2).say(&changes_requested("add rate limiting")))
        .rule(ScriptRule::role("review").say(APPROVED))
}

/// A reviewer's answer in XML without findings.
pub fn xml_approval(reviewer: &str) -> String {
    format!(
        "<{reviewer}-review>\n<verdict>APPROVED</verdict>\n<confidence>high</confidence>\n<issues></issues>\n\
         <summary>Fine.</summary>\n</{reviewer}-review>\n"
    )
}

/// A reviewer's answer in XML with one finding at a line of the feature.
pub fn xml_finding(reviewer: &str, line: u32, severity: &str, description: &str) -> String {
    let (kind, more) = if reviewer == "spec" {
        ("missing_requirement", "<requirement>Support OAuth 2.0 login</requirement>")
    } else {
        ("bug", "<fix>Do it right</fix>")
    };
    format!(
        "<{reviewer}-review>\n<verdict>ISSUES</verdict>\n<confidence>high</confidence>\n<issues>\n\
         <issue type=\"{kind}\" severity=\"{severity}\">\n<location file=\"auth.txt\" line=\"{line}\"/>\n\
         <description>{description}</description>\n{more}\n</issue>\n</issues>\n<summary>Not yet.</summary>\n\
         </{reviewer}-review>\n"
    )
}

/// The rule of one reviewer of a plan.
pub fn reviewer_answers(reviewer: &str, answer: &str) -> ScriptRule {
    ScriptRule::role("review").reviewer(reviewer).say(answer)
}

/// Both reviewers of a plan find nothing.
pub fn both_reviewers_approve(script: AgentScript) -> AgentScript {
    script.rule(reviewer_answers("spec", &xml_approval("spec"))).rule(reviewer_answers("code", &xml_approval("code")))
}

/// A reviewer that approves everything.
pub fn approves(script: AgentScript) -> AgentScript {
    script.rule(ScriptRule::role("review").say(APPROVED))
}

/// Writes a file outside of all worktrees, and waits for others.
pub fn wait_for_others(rule: ScriptRule, own: &str, others: &[&str]) -> ScriptRule {
    let rule = rule.write(&format!("/met/{own}"), "");
    others.iter().fold(rule, |rule, other| rule.wait_for(&format!("/met/{other}")))
}
