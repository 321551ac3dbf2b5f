//! `signoff init`: detects agents and checks, and writes `signoff.toml`.

use std::path::Path;

use signoff_core::settings::{AgentKind, SettingRow, schema};
use signoff_engine::agent_probe::{self, AgentLogin};
use signoff_engine::detect::{self, DetectedChecks};
use signoff_term::json::{InitReport, ProjectCheck, VERSION};

use crate::host::replace::replace_own_file;
use crate::preflight::agents::{self, AgentStatus};
use crate::{CliError, CommandExit, Console, Result, host, project, settings};

/// Find the agents of this machine and write signoff.toml
///
/// Writes signoff.toml, its schema for editors and .signoff/.gitignore at the root of the repository. An existing
/// signoff.toml is not overwritten.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  signoff init")]
pub struct Args {
    /// Replace signoff.toml; a backup of the old one is kept beside it
    #[arg(long)]
    force: bool,
}

/// The contents of `.signoff/.gitignore`: only the prompts are committed.
const GITIGNORE: &str = "*\n!prompts/\n!prompts/**\n";

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<CommandExit> {
    let root = project::main_checkout()?
        .ok_or_else(|| CliError::usage("this is not a git repository").hint("run `git init` first"))?;
    let report = prepare(&root, args.force)?;
    console.print(&report, || text(&report))
}

fn prepare(root: &Path, force: bool) -> Result<InitReport> {
    let seen = agents::installed()?;
    let DetectedChecks { checks, missing } = detect::detect_checks(root, host::is_on_path);
    let checks = checks.into_iter();
    let checks = checks.map(|found| ProjectCheck { name: found.name, command: found.command }).collect();
    let file = root.join(settings::FILE);
    if !force && file.symlink_metadata().is_ok() {
        return Err(CliError::usage("signoff.toml already exists").at(settings::FILE).hint(
            "`signoff config` shows the settings in effect; `signoff init --force` writes a new one and keeps the old one beside it",
        ));
    }
    let agents = usable(&seen);
    let (found, set) = settings::foreign_settings(root)?;
    let backup = if force { host::back_up(&file)? } else { None };
    let mut report = InitReport {
        version: VERSION,
        written: Vec::new(),
        kept: Vec::new(),
        backup: backup.and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned())),
        agents,
        checks,
        missing,
        found,
        agent_lines: seen.iter().map(agent_line).collect(),
    };
    let text = config_text(&report.agents, &report.checks, &set);
    for (name, text) in [(settings::FILE, text.as_str()), (".signoff/.gitignore", GITIGNORE)] {
        let list = if host::write_new(&root.join(name), text)? { &mut report.written } else { &mut report.kept };
        list.push(name);
    }
    // The schema must match this version, so it is always replaced.
    replace_own_file(&root.join(SCHEMA), &schema_text())?;
    report.written.push(SCHEMA);
    Ok(report)
}

/// The usable agents; those known to be logged in come first.
fn usable(seen: &[AgentStatus]) -> Vec<AgentKind> {
    let mut usable: Vec<&AgentStatus> = seen.iter().filter(|status| status.problem().is_none()).collect();
    usable.sort_by_key(|status| !matches!(status.login, AgentLogin::Key(_) | AgentLogin::Stored(_)));
    usable.into_iter().map(|status| status.agent.kind).collect()
}

fn agent_line(seen: &AgentStatus) -> String {
    let row = seen.row();
    let left_out = row.problem.as_ref().map(|problem| format!("{problem}; not configured"));
    let version = row.program_version.clone().filter(|_| left_out.is_none());
    let parts: Vec<String> = [version, left_out, row.login()].into_iter().flatten().collect();
    format!("agent {}: {}", row.name, parts.join(", "))
}

/// The JSON Schema of `signoff.toml`.
pub fn schema_text() -> String {
    format!("{:#}\n", schema())
}

fn text(report: &InitReport) -> String {
    let mut lines = Vec::new();
    lines.extend(report.backup.iter().map(|name| format!("kept the old signoff.toml as {name}")));
    lines.extend(report.written.iter().map(|name| format!("wrote {name}")));
    lines.extend(report.kept.iter().map(|name| format!("kept the existing {name}")));
    lines.extend(report.agent_lines.iter().cloned());
    lines.extend(report.checks.iter().map(|check| format!("check {}: {}", check.name, check.command)));
    lines.extend(report.missing.iter().map(|message| format!("no check: {message}")));
    lines.extend(report.found.iter().map(|name| format!("found {name}: its settings apply too")));
    lines.extend(next(report));
    lines.iter().flat_map(|line| [line, "\n"]).collect()
}

/// The next step for the user.
fn next(report: &InitReport) -> Vec<String> {
    if report.agents.is_empty() {
        let programs: Vec<_> = agent_probe::KNOWN_AGENTS.iter().map(|programs| programs.program).collect();
        return vec![
            format!("no usable agent on PATH (looked for {})", programs.join(", ")),
            "next: install one and run `signoff init --force`, or describe yours in signoff.toml".to_owned(),
        ];
    }
    vec!["next: `signoff agents --check` checks them; `signoff config` shows every setting".to_owned()]
}

/// The path of the schema, as named in the file.
const SCHEMA: &str = ".signoff/signoff.schema.json";

/// The file with places to fill in: a comment for each section, and `<none>` where no agent was found.
const TEMPLATE: &str = include_str!("init/template.toml");

/// Generates the file. `set` are the settings from files of other programs.
fn config_text(agents: &[AgentKind], checks: &[ProjectCheck], set: &[SettingRow]) -> String {
    let (first, second) = (agents.first().copied(), agents.get(1).copied());
    let template: String = TEMPLATE.lines().map(|line| template_line(line, set, !checks.is_empty())).collect();
    template
        .replace("<none>", if agents.is_empty() { " None was found on PATH." } else { "" })
        .replace("# <agents>\n", &agent_sections(agents))
        .replace("# <roles>\n", &roles(first))
        .replace("# <reviewers>\n", &reviewers(first, second.or(first)))
        .replace("# <checks>\n", &check_section(checks))
}

/// Lines that would override a key of another program's file.
const OVERRIDING_LINES: [(&str, &str); 2] =
    [("defaults.auto_review", "auto_review = true"), ("defaults.max_review_cycles", "max_cycles = 3")];

/// The line that names the reviewers, without and with checks.
const REVIEWER_LINES: [&str; 2] = [
    "reviewers = [\"spec\", \"code\"]         # both at once, on the same commit",
    "reviewers = [\"spec\", \"code\", \"checks\"] # all at once, on the same commit; checks: the commands below",
];

/// A line of the template. Keys that another program's file sets are commented out.
fn template_line(line: &str, set: &[SettingRow], has_checks: bool) -> String {
    let line = if has_checks && line == REVIEWER_LINES[0] { REVIEWER_LINES[1] } else { line };
    let over = OVERRIDING_LINES.into_iter().find(|(_, start)| line.starts_with(start));
    let overridden = over.and_then(|(key, start)| Some((start, set.iter().find(|row| row.key == key)?)));
    match overridden {
        Some((start, row)) => {
            format!("{:<36} # set by {}; uncomment to override\n", format!("# {start}"), row.origin)
        }
        None => format!("{line}\n"),
    }
}

/// The sections of the agents. With two agents, the second reviews the code that the first writes.
fn agent_sections(agents: &[AgentKind]) -> String {
    let section = |agent: &AgentKind| format!("[agents.{0}]\nkind = \"{0}\"\n", agent.into_str());
    let mut sections: Vec<String> = agents.iter().map(section).collect();
    if let (Some(first), Some(agent)) = (sections.first_mut(), agents.first()) {
        *first += &example_model(Some(*agent), "the model to use");
        let fallback = agents.get(1).map(|second| format!("# fallback = \"{}\"", second.into_str()));
        first.extend(fallback.map(|line| format!("{line:<36} # fallback while it is rate limited\n")));
    }
    sections.join("\n")
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

fn example_model(agent: Option<AgentKind>, comment: &str) -> String {
    let line = format!("# model = \"{}\"", models(agent).0);
    format!("{line:<36} # {comment}\n")
}

fn roles(first: Option<AgentKind>) -> String {
    let (sign, name) = first.map_or(("# ", "mine"), |agent| ("", agent.into_str()));
    let fix = format!("# fix = {{ agent = \"{name}\", model = \"{}\" }}", models(first).1);
    format!("{sign}[roles]\n{sign}implement = \"{name}\"\n{fix} # with a model of its own\n")
}

fn reviewers(spec: Option<AgentKind>, code: Option<AgentKind>) -> String {
    let reviewer = |kind: &str, agent: Option<AgentKind>| {
        let agent = agent.map(|agent| format!("agent = \"{}\"\n", agent.into_str())).unwrap_or_default();
        format!("[reviewers.{kind}]\nkind = \"{kind}\"\n{agent}")
    };
    let model = example_model(code, "another model than the agent's");
    [&reviewer("spec", spec), "\n", &reviewer("code", code), &model].concat()
}

fn check_section(checks: &[ProjectCheck]) -> String {
    if checks.is_empty() {
        return "# [checks]\n# test = \"make test\"\n".to_owned();
    }
    let line = |check: &ProjectCheck| format!("{} = \"{}\"\n", check.name, check.command);
    ["[checks]\n".to_owned()].into_iter().chain(checks.iter().map(line)).collect()
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
                let text = config_text(&found[..agents], checks, &[]);
                let settings = read(&[Layer::repository("signoff.toml", &text)], &[], &[])
                    .unwrap_or_else(|error| panic!("{error}\n{text}"));
                let workflow =
                    settings.task_workflow(&TaskSpec::from_text("Add login"), &TaskFlags::default()).unwrap();
                let default = new_project().unwrap();
                let gate = |workflow: &Workflow| workflow.first_gate().unwrap().policy().unwrap().gate.clone();
                let (mut own, new) = (gate(&workflow), gate(&default));
                let reviewers: Vec<_> = own.reviewers.iter().map(|name| name.as_str().to_owned()).collect();
                let expected: &[&str] = if checks.is_empty() { &["spec", "code"] } else { &["spec", "code", "checks"] };
                assert_eq!(reviewers, expected);
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
        jsonschema::validate(&schema(), &json).unwrap_or_else(|error| panic!("{error}\n{text}"));
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
            let text = config_text(agents, &[], &[]);
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
        let text = config_text(&[AgentKind::Claude, AgentKind::Codex], &[], &[]);
        let sections = &text[text.find("\n# Agents").unwrap()..text.find("\n# Which tasks").unwrap()];
        insta::assert_snapshot!(sections, @r#"

        # Agents: the programs that do the work.
        [agents.claude]
        kind = "claude"
        # model = "opus"                     # the model to use
        # fallback = "codex"                 # fallback while it is rate limited

        [agents.codex]
        kind = "codex"

        # Any program can be an agent: it reads the prompt from stdin and writes its answer to stdout.
        # [agents.mine]
        # kind = "command"
        # command = ["./agent.sh"]
        # timeout = "30m"

        # Roles: which agent does what; a missing role uses `implement`. The roles are implement, fix, review, enumerate, plan,
        # brainstorm and simplify.
        [roles]
        implement = "claude"
        # fix = { agent = "claude", model = "haiku" } # with a model of its own

        # Reviewers: what each looks for (spec, code, security, tests or general), and which agent runs it.
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
