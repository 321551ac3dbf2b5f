//! Generates the `signoff.toml` of a new project.

use std::fmt::Write;

use signoff_core::settings::{AgentKind, SettingRow};

use signoff_term::json::ProjectCheck;

/// The path of the schema, as named in the file.
pub const SCHEMA: &str = ".signoff/signoff.schema.json";

const HEAD: &str = "\
#:schema ./.signoff/signoff.schema.json

# How work is done and signed off in this repository. What is left out here is built in; what stands behind a `#` is
# only an example. `signoff config` shows every setting that holds, and where it comes from.

preset = \"task\"                      # how tasks are worked: task, slots, plan, loops, phases, or one of your own
jobs = 4                             # tasks at once
# no_ask = true                      # a question stops its task instead of waiting for a person
# landing = \"rebase\"                 # signed-off work lands on top, without a merge commit
";

const AGENTS: &str = "
# Agents: the programs that do the work.
";

const NO_AGENT: &str = "
# Agents: the programs that do the work. None was found on PATH.
";

const OWN_AGENT: &str = "
# Any program will do: the prompt comes on stdin, its answer goes to stdout.
# [agents.mine]
# kind = \"command\"
# command = [\"./agent.sh\"]
# timeout = \"30m\"
";

const ROLES: &str = "
# Roles: which agent does what. One that is not named is done by `implement`. There are implement, fix, review,
# enumerate, plan, brainstorm and simplify.
";

const REVIEWERS: &str = "
# Reviewers: what each looks for (spec, code, security, tests or general), and which agent plays it.
";

const REVIEWER_MORE: &str = "\
# prompt = \"docs/how-we-review.md\"   # a prompt of your own
";

const GATE: &str = "
# Which tasks are reviewed, where they do not say so themselves.
[defaults]
auto_review = true                   # every task; false: only those added with --auto-review

# The gate: who has to sign off, and what happens until they do.
[gate]
reviewers = [\"spec\", \"code\"]         # both at once, on the same commit
fail_on = \"MEDIUM\"                   # the least severity that has to be fixed: LOW, MEDIUM, HIGH, NONE
max_cycles = 3                       # reviews; one less are fixes
on_unclear = [\"retry\", \"ask\"]        # an answer that cannot be read
on_reviewer_failure = [\"retry\", \"ask\"]
rereview = \"scoped\"                  # the fix first, then once the whole; \"full\": the whole each time
max_same_finding = 3                 # a finding that comes back so often stops the task
max_noop_fixes = 1                   # so does a fix that changes nothing
# on_exhausted = \"ask\"               # when the reviews are used up: stop, ask, restart, proceed
# review_timeout = \"10m\"

# The same words for one preset alone, and for one of its gates.
# [presets.loops]
# effort = \"high\"                    # low, medium, high, max

# [presets.loops.gates.final_review]
# max_fixes = 1
";

const CHECKS: &str = "
# Checks: commands that judge the work by their exit code.
";

const REST: &str = "
# Limits: a task that reaches one pauses, and can go on with a higher one.
[limits]
silence = \"10m\"                      # an agent that says nothing for so long is ended
# attempt = \"60m\"                    # how long one start of an agent may take
# max_cost_usd = 20.0                # for each task
# max_tokens = 1000000

# [limits.run]                       # for all tasks of a run together
# max_cost_usd = 100.0

# Prices: dollars for a million tokens, where an agent does not say what it cost and the shipped list does not know.
# [prices.\"mine:7b\"]
# input = 0.1
# output = 0.4

# Prompts: files that take the place of the built-in ones, for each role.
# [prompts]
# implement = \"docs/how-we-work.md\"

# Worktrees: files that git does not know but every task needs.
# [worktree]
# copy = [\".env\"]

# A workflow of your own, in the words the presets are written in (`signoff workflow show task`).
# [workflows.quick]
# phases = [
#   { name = \"implement\", kind = \"agent\" },
#   { name = \"look\", kind = \"gate\", reviewers = [\"code\"], max_cycles = 1 },
# ]
";

/// Generates the file. `set` are the settings from files of other programs.
pub fn text(agents: &[AgentKind], checks: &[ProjectCheck], set: &[SettingRow]) -> String {
    [HEAD, &agent_sections(agents), &gate(set, !checks.is_empty()), &check_section(checks), REST].concat()
}

/// Lines that would override a key of another program's file.
const OVERRIDING_LINES: [(&str, &str); 2] =
    [("defaults.auto_review", "auto_review = true"), ("defaults.max_review_cycles", "max_cycles = 3")];

/// The line that names the reviewers, without and with checks.
const REVIEWER_LINES: [&str; 2] = [
    "reviewers = [\"spec\", \"code\"]         # both at once, on the same commit",
    "reviewers = [\"spec\", \"code\", \"checks\"] # all at once, on the same commit; checks: the commands below",
];

/// The gate section. Keys that another program's file sets are commented out.
fn gate(set: &[SettingRow], has_checks: bool) -> String {
    let line = |line: &str| {
        let line = if has_checks && line == REVIEWER_LINES[0] { REVIEWER_LINES[1] } else { line };
        let over = OVERRIDING_LINES.into_iter().find(|(_, start)| line.starts_with(start));
        let by = over.and_then(|(key, start)| Some((start, set.iter().find(|row| row.key == key)?)));
        match by {
            Some((start, row)) => {
                format!("{:<36} # left to {}, over which it would win\n", format!("# {start}"), row.origin)
            }
            None => format!("{line}\n"),
        }
    };
    GATE.lines().map(line).collect()
}

/// The sections of agents, roles and reviewers. With two agents, the second reviews the code that the first writes.
fn agent_sections(agents: &[AgentKind]) -> String {
    let (first, second) = (agents.first().copied(), agents.get(1).copied());
    let mut out = if agents.is_empty() { NO_AGENT } else { AGENTS }.to_owned();
    for (index, agent) in agents.iter().enumerate() {
        let space = if index == 0 { "" } else { "\n" };
        let word = agent.as_str();
        let _ = write!(out, "{space}[agents.{word}]\nkind = \"{word}\"\n");
        if index == 0 {
            out += &example_model(Some(*agent), "the model it is asked to use");
            let fallback = second.map(|second| format!("# fallback = \"{}\"", second.as_str()));
            let _ = fallback.map(|line| writeln!(out, "{line:<36} # fallback while it is rate limited"));
        }
    }
    [&out, OWN_AGENT, &roles(first), &reviewers(first, second.or(first))].concat()
}

/// A large and a small model of an agent, by its own names for them.
fn models(agent: Option<AgentKind>) -> (&'static str, &'static str) {
    match agent {
        Some(AgentKind::Claude) => ("opus", "haiku"),
        Some(AgentKind::Codex) => ("gpt-6-sol", "gpt-6-luna"),
        Some(AgentKind::Gemini) => ("gemini-2.5-pro", "gemini-2.5-flash"),
        Some(AgentKind::Opencode) => ("anthropic/claude-opus-5", "anthropic/claude-haiku-4-5"),
        Some(AgentKind::Qwen) => ("qwen3-coder-plus", "qwen3-coder-flash"),
        Some(AgentKind::Copilot) => ("claude-sonnet-5", "claude-haiku-4-5"),
        Some(AgentKind::Acp | AgentKind::Command | AgentKind::Checks | AgentKind::Demo) | None => ("large", "small"),
    }
}

fn example_model(agent: Option<AgentKind>, about: &str) -> String {
    let line = format!("# model = \"{}\"", models(agent).0);
    format!("{line:<36} # {about}\n")
}

fn roles(first: Option<AgentKind>) -> String {
    let (sign, name) = first.map_or(("# ", "mine"), |agent| ("", agent.as_str()));
    let fix = format!("# fix = {{ agent = \"{name}\", model = \"{}\" }}", models(first).1);
    format!("{ROLES}{sign}[roles]\n{sign}implement = \"{name}\"\n{fix} # with a model of its own\n")
}

fn reviewers(spec: Option<AgentKind>, code: Option<AgentKind>) -> String {
    let reviewer = |kind: &str, agent: Option<AgentKind>| {
        let agent = agent.map(|agent| format!("agent = \"{}\"\n", agent.as_str())).unwrap_or_default();
        format!("[reviewers.{kind}]\nkind = \"{kind}\"\n{agent}")
    };
    let model = example_model(code, "another model than the agent's");
    [REVIEWERS, &reviewer("spec", spec), "\n", &reviewer("code", code), &model, REVIEWER_MORE].concat()
}

fn check_section(checks: &[ProjectCheck]) -> String {
    let mut out = CHECKS.to_owned();
    if checks.is_empty() {
        return out + "# [checks]\n# test = \"make test\"\n";
    }
    out += "[checks]\n";
    for check in checks {
        let _ = writeln!(out, "{} = \"{}\"", check.name, check.command);
    }
    out
}

#[cfg(test)]
mod tests {
    use signoff_core::settings::{CHECKS, Layer, TaskFlags, read};
    use signoff_core::task::TaskSpec;
    use signoff_core::workflow::{Workflow, new_project};

    use super::*;

    #[test]
    fn every_generated_file_parses_to_the_defaults_of_a_new_project() {
        let found = [AgentKind::Claude, AgentKind::Codex, AgentKind::Copilot];
        let checks = [ProjectCheck { name: "test".to_owned(), command: "go test ./...".to_owned() }];
        for agents in 0..=found.len() {
            for checks in [&checks[..], &[]] {
                let text = text(&found[..agents], checks, &[]);
                let settings = read(&[Layer::repository("signoff.toml", &text)], &[], &[])
                    .unwrap_or_else(|error| panic!("{error}\n{text}"));
                let workflow =
                    settings.task_workflow(&TaskSpec::from_text("Add login"), &TaskFlags::default()).unwrap();
                let known = new_project().unwrap();
                let gate = |workflow: &Workflow| workflow.first_gate().unwrap().policy().unwrap().gate.clone();
                let (mut own, new) = (gate(&workflow), gate(&known));
                let seats: Vec<_> = own.reviewers.iter().map(|name| name.as_str().to_owned()).collect();
                let wanted: &[&str] = if checks.is_empty() { &["spec", "code"] } else { &["spec", "code", "checks"] };
                assert_eq!(seats, wanted);
                own.reviewers.retain(|name| name.as_str() != CHECKS);
                assert_eq!(own, new);
                assert_eq!((settings.agents().len(), settings.checks().len()), (agents, checks.len()));
                check_schema(&text);
            }
        }
    }

    fn check_schema(text: &str) {
        let value: toml::Value = toml::from_str(text).unwrap();
        let json = serde_json::to_value(value).unwrap();
        jsonschema::validate(&signoff_core::settings::schema(), &json)
            .unwrap_or_else(|error| panic!("{error}\n{text}"));
    }

    /// Returns a commented-out example without its `#`.
    fn example(line: &str) -> Option<&str> {
        let rest = line.strip_prefix("# ")?;
        let key = rest.split_once(" = ").is_some_and(|(key, _)| !key.contains(' '));
        (key || rest.starts_with(['[', ']']) || rest.starts_with("  {")).then_some(rest)
    }

    /// Uncommenting an example leaves a valid file.
    #[test]
    fn the_commented_examples_are_valid() {
        for agents in [&[][..], &[AgentKind::Opencode], &[AgentKind::Claude, AgentKind::Codex]] {
            let text = text(agents, &[], &[]);
            let all: Vec<_> = text.lines().map(|line| example(line).unwrap_or(line)).collect();
            let all = all.join("\n");
            let settings = read(&[Layer::repository("signoff.toml", &all)], &[], &[])
                .unwrap_or_else(|error| panic!("{error}\n{all}"));
            assert_eq!(settings.workflow_names().last(), Some(&"quick"));
            assert_eq!(settings.agents().len(), agents.len() + 1);
            assert_eq!(settings.checks(), [("test", "make test")]);
            check_schema(&all);
            let one_by_one =
                text.lines().filter(|line| example(line).is_some_and(|line| !line.starts_with(['[', ' ', ']'])));
            assert!(one_by_one.count() >= 20);
        }
    }

    #[test]
    fn the_code_reviewer_is_the_agent_that_does_not_implement() {
        insta::assert_snapshot!(agent_sections(&[AgentKind::Claude, AgentKind::Codex]), @r#"

        # Agents: the programs that do the work.
        [agents.claude]
        kind = "claude"
        # model = "opus"                     # the model it is asked to use
        # fallback = "codex"                 # fallback while it is rate limited

        [agents.codex]
        kind = "codex"

        # Any program will do: the prompt comes on stdin, its answer goes to stdout.
        # [agents.mine]
        # kind = "command"
        # command = ["./agent.sh"]
        # timeout = "30m"

        # Roles: which agent does what. One that is not named is done by `implement`. There are implement, fix, review,
        # enumerate, plan, brainstorm and simplify.
        [roles]
        implement = "claude"
        # fix = { agent = "claude", model = "haiku" } # with a model of its own

        # Reviewers: what each looks for (spec, code, security, tests or general), and which agent plays it.
        [reviewers.spec]
        kind = "spec"
        agent = "claude"

        [reviewers.code]
        kind = "code"
        agent = "codex"
        # model = "gpt-6-sol"                # another model than the agent's
        # prompt = "docs/how-we-review.md"   # a prompt of your own
        "#);
    }
}
