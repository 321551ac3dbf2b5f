//! The `signoff.toml` of a new project.

use std::fmt::Write;

use signoff_core::config::AgentKind;

use signoff_term::json::Check;

const HEAD: &str = "\
# How work is done and signed off in this repository.
# `signoff config` shows every setting that holds, and where it comes from.

preset = \"task\"                      # implement, review, fix and review again until signed off
jobs = 4                             # tasks at once
";

const NO_AGENT: &str = "
# No agent was found on PATH. Any program will do: the prompt comes on stdin, its answer goes to stdout.
# [agents.mine]
# kind = \"command\"
# command = [\"./agent.sh\"]
# timeout = \"30m\"

# [roles]
# implement = \"mine\"
";

const GATE: &str = "
[defaults]
auto_review = true                   # every task is reviewed; false: only those added with --auto-review

[gate]
reviewers = [\"spec\", \"code\"]         # both at once, on the same commit
fail_on = \"MEDIUM\"                   # LOW, MEDIUM, HIGH, NONE: the least severity that has to be fixed
max_cycles = 3                       # reviews; one less are fixes
on_unclear = [\"retry\", \"ask\"]        # an answer that cannot be read
on_reviewer_failure = [\"retry\", \"ask\"]
rereview = \"scoped\"                  # the fix first, then once the whole
max_same_finding = 3                 # a finding that comes back so often stops the task
max_noop_fixes = 1                   # so does a fix that changes nothing
";

const LIMITS: &str = "
[limits]
silence = \"10m\"                      # an agent that says nothing for so long is ended
# max_cost_usd = 20.0                # for each task; [limits.run] for all of them
";

/// The whole file.
pub fn text(agents: &[AgentKind], checks: &[Check]) -> String {
    [HEAD, &people(agents), GATE, &commands(checks), LIMITS].concat()
}

/// Who works and who reviews. Where there are two, the code is read by the one that did not write it.
fn people(agents: &[AgentKind]) -> String {
    let mut out = String::new();
    let Some(first) = agents.first() else {
        return [NO_AGENT, &reviewer("spec", None), &reviewer("code", None)].concat();
    };
    for agent in agents {
        let word = agent.word();
        let _ = write!(out, "\n[agents.{word}]\nkind = \"{word}\"\n");
    }
    let role = format!("implement = \"{}\"", first.word());
    let _ = write!(out, "\n[roles]\n{role:<36} # a role that is not named here is done by this one\n");
    out + &reviewer("spec", Some(*first)) + &reviewer("code", agents.get(1).or(Some(first)).copied())
}

fn reviewer(kind: &str, agent: Option<AgentKind>) -> String {
    let agent = agent.map(|agent| format!("agent = \"{}\"\n", agent.word())).unwrap_or_default();
    format!("\n[reviewers.{kind}]\nkind = \"{kind}\"\n{agent}")
}

fn commands(checks: &[Check]) -> String {
    if checks.is_empty() {
        return "\n# [checks]                           # commands that judge the work by their exit code\n# test = \"make test\"\n".to_owned();
    }
    let mut out =
        "\n[checks]                             # commands that judge the work by their exit code\n"
            .to_owned();
    for check in checks {
        let _ = writeln!(out, "{} = \"{}\"", check.name, check.command);
    }
    out
}

#[cfg(test)]
mod tests {
    use signoff_core::config::{Layer, TaskFlags, read};
    use signoff_core::task::TaskSpec;
    use signoff_core::workflow::new_project;

    use super::*;

    #[test]
    fn whatever_was_found_the_file_can_be_read_and_says_what_a_new_project_does() {
        let found = [AgentKind::Claude, AgentKind::Codex, AgentKind::Copilot];
        let checks = [Check { name: "test", command: "go test ./...".to_owned() }];
        for agents in 0..=found.len() {
            for checks in [&checks[..], &[]] {
                let text = text(&found[..agents], checks);
                let settings = read(&[Layer::repository("signoff.toml", &text)], &[], &[])
                    .unwrap_or_else(|error| panic!("{error}\n{text}"));
                let workflow =
                    settings.task_workflow(&TaskSpec::of("Add login"), &TaskFlags::default()).unwrap();
                let known = new_project().unwrap();
                assert_eq!((workflow.phases, workflow.reviewers), (known.phases, known.reviewers));
                assert_eq!((settings.agents().len(), settings.checks().len()), (agents, checks.len()));
            }
        }
    }

    #[test]
    fn the_code_is_read_by_the_agent_that_did_not_write_it() {
        insta::assert_snapshot!(people(&[AgentKind::Claude, AgentKind::Codex]), @r#"
        [agents.claude]
        kind = "claude"

        [agents.codex]
        kind = "codex"

        [roles]
        implement = "claude"                 # a role that is not named here is done by this one

        [reviewers.spec]
        kind = "spec"
        agent = "claude"

        [reviewers.code]
        kind = "code"
        agent = "codex"
        "#);
    }
}
