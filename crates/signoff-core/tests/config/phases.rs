//! Who does a phase: agents, tools and models of its own.

use std::fmt::Write;

use signoff_core::settings::foreign::{ForeignFormat, translate};
use signoff_core::settings::{ConfigError, Layer, PhaseContext, Settings, read};
use signoff_core::task::TaskSpec;
use signoff_core::workflow::{PhaseKind, Workflow};

use crate::config::{configured, try_configured};

/// Who plays each phase of a workflow: agent, model and time; and the helpers.
fn players(settings: &Settings, workflow: &Workflow) -> String {
    let task = TaskSpec::from_text("Add login");
    let mut out = String::new();
    for phase in workflow.phases.iter().filter(|phase| !phase.is_off()) {
        let place = PhaseContext { workflow, phase, task: &task };
        let agent = match &phase.kind {
            PhaseKind::Agent { role, researchers, .. } => settings.writer(*role, place, 0).map(|assigned| {
                let helpers = format!("{researchers} × {}", phase.parallel_model.as_deref().unwrap_or("-"));
                let model = assigned.model.as_deref().unwrap_or("-");
                format!("{} {model} {} {helpers}", assigned.agent.name, assigned.timeout)
            }),
            PhaseKind::Gate(gate_policy) => settings
                .reviewer(&gate_policy.gate.reviewers[0], place, 0)
                .map(|assigned| format!("{} {}", assigned.agent.name, assigned.model.as_deref().unwrap_or("-"))),
            PhaseKind::Check(_) => continue,
        };
        writeln!(out, "{}: {}", phase.name, agent.unwrap_or_else(|error| error.to_string())).expect("written");
    }
    out
}

const AGENTS: &str = "\
[agents.claude]
model = \"opus\"
[agents.second]
kind = \"codex\"
[agents.mine]
kind = \"command\"
command = [\"./agent\"]
[roles]
implement = \"claude\"
";

#[test]
fn without_a_word_the_last_review_is_by_an_agent_of_another_kind() {
    let settings = configured(AGENTS);
    insta::assert_snapshot!(players(&settings, &settings.workflow("phases").unwrap()), @"
    brainstorm: claude opus 1h 3 × -
    plan: claude opus 1h 3 × -
    plan_review: claude opus
    implement: claude opus 1h 0 × -
    code_review: claude opus
    simplify: claude opus 1h 0 × -
    final_review: claude opus
    codex_final: second -
    ");
    let named = configured(&format!("{AGENTS}[reviewers.codex]\nagent = \"mine\"\n"));
    let agents = players(&named, &named.workflow("phases").unwrap());
    assert!(agents.ends_with("codex_final: mine -\n"), "{agents}");
    let alone = configured("[agents.claude]\n");
    let agents = players(&alone, &alone.workflow("phases").unwrap());
    assert!(agents.ends_with("codex_final: claude -\n"), "{agents}");
}

#[test]
fn phases_are_selected_by_number_or_name() {
    let settings = configured(&format!(
        "{AGENTS}
[presets.phases.phase.1]
agent = \"mine\"
researchers = 5
parallel_model = \"haiku\"
timeout = \"5m\"
[presets.phases.phase.plan]
parallel = false
model = \"sonnet\"
[presets.phases.phase.code_review]
agent = \"mine\"
model = \"small\"
[presets.phases.phase.8]
tool = \"their_tool\"
[presets.phases.phase.6]
model = \"none\"
[presets.phases.tools]
their_tool = \"second\"
"
    ));
    insta::assert_snapshot!(players(&settings, &settings.workflow("phases").unwrap()), @"
    brainstorm: mine - 5m 5 × haiku
    plan: claude sonnet 1h 0 × -
    plan_review: claude opus
    implement: claude opus 1h 0 × -
    code_review: mine small
    simplify: claude opus 1h 0 × -
    final_review: second -
    codex_final: second -
    ");
}

#[test]
fn later_layers_win_whatever_they_call_a_phase() {
    let person = Layer::person(
        "mine.toml",
        format!(
            "{AGENTS}[presets.phases.phase.plan_review]\nagent = \"mine\"\nmodel = \"small\"\n[presets.phases.phase.1]\nparallel = true\n"
        ),
    );
    let text =
        r#"{ "version": 2, "phases": { "3": { "tool": "mcp__codex__codex" }, "5": { "tool": "mcp__codex__codex" } } }"#;
    let foreign = translate(ForeignFormat::Iterate, "iterate.json", text).unwrap().layer;
    let repository = Layer::repository(
        "signoff.toml",
        "[presets.phases.phase.5]\nagent = \"claude\"\nmodel = \"inherit\"\n[presets.phases.phase.brainstorm]\nresearchers = 2\n",
    );
    let settings = read(&[person, foreign, repository], &[], &[]).unwrap();
    let agents = players(&settings, &settings.workflow("phases").unwrap());
    let of = |phase: &str| agents.lines().find(|line| line.starts_with(phase)).unwrap().to_owned();
    assert_eq!(of("plan_review"), "plan_review: second small");
    assert_eq!(of("code_review"), "code_review: claude opus");
    assert_eq!(of("brainstorm"), "brainstorm: claude opus 1h 2 × -");
}

/// What the settings say about phases, with where it was said.
fn said(settings: &Settings) -> String {
    let rows = settings.origins().into_iter().filter(|row| row.key.contains(".phase."));
    rows.map(|row| format!("{} = {} ({})\n", row.key, row.text(), row.origin)).collect()
}

#[test]
fn a_phase_is_shown_once_whatever_the_layers_call_it() {
    let person = Layer::person("mine.toml", "[presets.phases.phase.3]\nmodel = \"small\"\ntool = \"mcp__a\"\n");
    let repository = Layer::repository("signoff.toml", "[presets.phases.phase.plan_review]\nmodel = \"large\"\n");
    let settings = read(&[person, repository], &[], &[]).unwrap();
    insta::assert_snapshot!(said(&settings), @r#"
    presets.phases.phase.plan_review.tool = "mcp__a" (mine.toml:3)
    presets.phases.phase.plan_review.model = "large" (signoff.toml:2)
    "#);
    assert_eq!(
        settings.origin_of("presets.phases.phase.3.model"),
        settings.origin_of("presets.phases.phase.plan_review.model")
    );
    assert_eq!(settings.origin_of("presets.phases.phase.4.model"), None);
}

#[test]
fn one_file_calls_a_phase_by_its_number_or_by_its_name() {
    let both = |first: &str, second: &str| {
        let text =
            format!("[presets.phases.phase.{first}]\nmodel = \"a\"\n[presets.phases.phase.{second}]\nmodel = \"b\"\n");
        try_configured(&text).unwrap_err().to_string()
    };
    insta::assert_snapshot!(both("3", "plan_review"), @"signoff.toml:3: `3` and `plan_review` are the same phase: write all of it in [presets.phases.phase.3]");
    insta::assert_snapshot!(both("plan_review", "3"), @"signoff.toml:3: `plan_review` and `3` are the same phase: write all of it in [presets.phases.phase.plan_review]");
}

const TOOLS: &str = r#"{
  "version": 2,
  "phases": {
    "3": { "tool": "mcp__codex__codex" },
    "8": { "tool": "mcp__gemini__ask" },
    "9": { "tool": "mcp__codex-high__codex" }
  }
}"#;

/// The settings of a file with tools, and of one `signoff.toml`.
fn with_tools(text: &str) -> Result<Settings, ConfigError> {
    let foreign = translate(ForeignFormat::Iterate, "iterate.json", TOOLS).expect("a file that can be read").layer;
    read(&[foreign, Layer::repository("signoff.toml", text)], &[], &[])
}

#[test]
fn a_tool_that_no_agent_stands_for_is_refused_by_name_and_place() {
    let settings = with_tools("[agents.claude]\n").unwrap();
    let messages = settings.unknown_tools().iter().map(|error| format!("{error}\n")).collect::<String>();
    insta::assert_snapshot!(messages, @r#"
    iterate.json:4: phase `plan_review` names the tool `mcp__codex__codex`, which is mapped to no agent: configure an agent of kind "codex", or write `"mcp__codex__codex" = "AGENT"` in [presets.phases.tools]
    iterate.json:5: phase `final_review` names the tool `mcp__gemini__ask`, which is mapped to no agent: write `"mcp__gemini__ask" = "AGENT"` in [presets.phases.tools]
    iterate.json:6: phase `codex_final` names the tool `mcp__codex-high__codex`, which is mapped to no agent: configure an agent of kind "codex", or write `"mcp__codex-high__codex" = "AGENT"` in [presets.phases.tools]
    "#);
    let workflow = settings.workflow("phases").unwrap();
    let refused = players(&settings, &workflow);
    assert!(refused.contains("plan_review: iterate.json:4: "), "{refused}");
    let lite = workflow.in_mode("lite").unwrap();
    insta::assert_snapshot!(players(&settings, &lite), @"
    brainstorm: claude - 1h 3 × -
    plan: claude - 1h 3 × -
    plan_review: claude -
    implement: claude - 1h 0 × -
    code_review: claude -
    simplify: claude - 1h 0 × -
    final_review: claude -
    ");
}

#[test]
fn tools_are_mapped_onto_agents() {
    let settings = with_tools(&format!(
        "{AGENTS}[presets.phases.tools]\nmcp__gemini__ask = \"mine\"\n\"mcp__codex-high__codex\" = \"claude\"\n"
    ))
    .unwrap();
    assert_eq!(settings.unknown_tools(), []);
    let agents = players(&settings, &settings.workflow("phases").unwrap());
    let of = |phase: &str| agents.lines().find(|line| line.starts_with(phase)).unwrap().to_owned();
    assert_eq!(of("plan_review"), "plan_review: second -", "an agent of kind codex, untold");
    assert_eq!(of("final_review"), "final_review: mine -");
    assert_eq!(of("codex_final"), "codex_final: claude opus");
}

#[test]
fn what_cannot_be_said_about_a_phase_is_refused() {
    let wrong = [
        "[presets.phases.phase.10]\nmodel = \"x\"\n",
        "[presets.phases.phase.code_reveiw]\nmodel = \"x\"\n",
        "[presets.task.phase.3]\nmodel = \"x\"\n",
        "[presets.phases.phase.5]\nparallel = true\n",
        "[presets.phases.phase.5]\ntimeout = \"5m\"\n",
        "[presets.phases.phase.5]\nmodel = \"none\"\n",
        "[presets.phases.phase.4]\nmodel = \"none\"\n",
        "[presets.phases.phase.6]\nmodel = \"opus\"\n",
        "[presets.phases.phase.6]\nagent = \"claude\"\n",
        "[presets.phases.phase.1]\nparallel = true\nresearchers = 2\n",
        "[presets.phases.phase.3]\nagent = \"claude\"\ntool = \"x\"\n",
        "[presets.phases.phase.1]\nresearchers = 33\n",
        "[presets.phases.phase.1]\nmodle = \"opus\"\n",
        "[presets.phases.phase.1]\nagent = \"nobody\"\n",
        "[presets.phases.phase.1]\nagent = \"tests\"\n",
        "[presets.phases.phase]\n1 = \"opus\"\n",
        "[presets.phases.tools]\nx = \"nobody\"\n",
        "[presets.phases.tools]\nx = 3\n",
    ];
    let mut messages = String::new();
    for text in wrong {
        let text = format!("{text}[agents.claude]\n[agents.tests]\nkind = \"checks\"\n");
        writeln!(messages, "{}", try_configured(&text).map(drop).unwrap_err()).unwrap();
    }
    insta::assert_snapshot!(messages, @r#"
    signoff.toml:1: workflow `phases` has no phase `10`: expected one of 1 brainstorm, 2 plan, 3 plan_review, 4 implement, implement_review, 5 code_review, 6 test, 7 simplify, 8 final_review, 9 codex_final
    signoff.toml:1: workflow `phases` has no phase `code_reveiw`: did you mean `code_review`?
    signoff.toml:1: workflow `task` has no phase `3`: expected one of 1 implement, 2 review
    signoff.toml:2: `code_review` is a gate and has no `parallel`: expected it only in agent phases
    signoff.toml:2: `code_review` is a gate and has no `timeout`: write `review_timeout` in its gate's table
    signoff.toml:2: `model` is "none", but `code_review` is not a check: expected the name of a model or "inherit"
    signoff.toml:2: `model` is "none", but `implement` is not a check: expected the name of a model or "inherit"
    signoff.toml:2: `test` is a check, which the project's commands judge, not an agent: expected no such `model`
    signoff.toml:2: `test` is a check, which the project's commands judge, not an agent: expected no such `agent`
    signoff.toml:3: write `parallel` or `researchers`, not both
    signoff.toml:3: write `agent` or `tool`, not both
    signoff.toml:2: `researchers` is 33: expected a whole number from 0 to 32
    signoff.toml:2: unknown key `modle` in a phase: did you mean `model`?
    signoff.toml:2: `agent` names the agent `nobody`, which is not configured: expected claude or tests, or write a table [agents.nobody]
    signoff.toml:2: `agent` names `tests`, which only runs checks and can be a reviewer's `agent`: expected one of another kind
    signoff.toml:2: `1` is "opus": expected a table
    signoff.toml:2: `tools` names the agent `nobody`, which is not configured: expected claude or tests, or write a table [agents.nobody]
    signoff.toml:2: `x` is 3: expected text in quotes that is not empty
    "#);
}

/// Both bounds are one thing: the table that has the last word is named, whichever of the two it writes.
#[test]
fn a_retry_limit_is_shown_with_the_line_that_decides_it() {
    let shown = |settings: &Settings| {
        let rows = settings.phase_rows().unwrap();
        let row = rows.iter().find(|row| row.name == "Code Review").unwrap();
        let retries = row.settings.iter().find(|set| set.name == "maxRetries").unwrap();
        format!("{} {}", retries.value, retries.origin)
    };
    let gate = "[presets.phases.gates.code_review]\nmax_cycles = 4\n";
    let own = configured(&format!("[presets.phases]\nmax_fixes = 6\n{gate}"));
    assert_eq!(shown(&own), "3 signoff.toml:4");
    let json = r#"{"version": 2, "reviewDefaults": {"maxRetries": 6}}"#;
    let defaults = translate(ForeignFormat::Iterate, "iterate.json", json).unwrap().layer;
    let person = Layer::person("config.toml", gate);
    assert_eq!(shown(&read(&[person, defaults], &[], &[]).unwrap()), "3 config.toml:2");
}

/// A reviewer may be a check, also instead of a tool; an implementer may not.
#[test]
fn a_tool_of_a_review_may_be_played_by_checks() {
    let agents = "[agents.claude]\n[agents.c]\nkind = \"checks\"\n[presets.phases.tools]\nt = \"c\"\n";
    configured(&format!("{agents}[presets.phases.phase.3]\ntool = \"t\"\n"));
    let error = try_configured(&format!("{agents}[presets.phases.phase.2]\ntool = \"t\"\n")).unwrap_err();
    insta::assert_snapshot!(error, @"signoff.toml:5: `t` names `c`, which only runs checks and can be a reviewer's `agent`: expected one of another kind");
}
