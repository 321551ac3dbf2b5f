//! Scripted agents that several end-to-end tests share.

use signoff_testkit::agent_script::{AgentScript, ScriptRule};

/// The file that agents write.
pub const FEATURE: &str = "auth.txt";

pub const APPROVED: &str = "All is well.\n\n**Verdict: APPROVED**\n";

/// A review that requests changes, with one finding.
pub fn changes(reason: &str) -> String {
    format!("- auth.txt:1 {reason}\n\n**Verdict: CHANGES_REQUESTED**\n")
}

/// Adds an unrelated commit to the branch of run 1.
pub const FOREIGN: &str = "tip=$(git rev-parse signoff/run-1) && \
    blob=$(echo evil | git hash-object -w --stdin) && \
    tree=$( (git ls-tree $tip; printf '100644 blob %s\\tevil.txt\\n' $blob) | git mktree) && \
    git update-ref refs/heads/signoff/run-1 $(git commit-tree -p $tip -m Evil $tree)";

/// A developer that implements and fixes as requested.
pub fn developer(script: AgentScript) -> AgentScript {
    script
        .rule(ScriptRule::role("implement").write(FEATURE, "login\n").say("Done.\n"))
        .rule(ScriptRule::role("fix").append(FEATURE, "fixed {cycle}\n").say("Fixed.\n"))
}

/// A reviewer that approves at the third review.
pub fn strict_reviewer(script: AgentScript) -> AgentScript {
    script
        .rule(ScriptRule::role("review").cycle(1).say(&changes("missing input validation")))
        .rule(ScriptRule::role("review").cycle(2).say(&changes("add rate limiting")))
        .rule(ScriptRule::role("review").say(APPROVED))
}

/// A reviewer's answer in XML without findings.
pub fn clean(reviewer: &str) -> String {
    format!(
        "<{reviewer}-review>\n<verdict>APPROVED</verdict>\n<confidence>high</confidence>\n<issues></issues>\n\
         <summary>Fine.</summary>\n</{reviewer}-review>\n"
    )
}

/// A reviewer's answer in XML with one finding at a line of the feature.
pub fn issue(reviewer: &str, line: u32, severity: &str, description: &str) -> String {
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
pub fn sees(reviewer: &str, answer: &str) -> ScriptRule {
    ScriptRule::role("review").reviewer(reviewer).say(answer)
}

/// Both reviewers of a plan find nothing.
pub fn approving_agent(script: AgentScript) -> AgentScript {
    script.rule(sees("spec", &clean("spec"))).rule(sees("code", &clean("code")))
}
