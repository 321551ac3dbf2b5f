//! Assigning agents to jobs.

use signoff_core::settings::{
    AssignedReviewer, AssignedWriter, ConfigError, Layer, PhaseContext, ReviewWorkspace, Settings, TaskFlags, read,
};
use signoff_core::task::{TaskSpec, TaskType};
use signoff_core::workflow::{Phase, Role};

use crate::config::configured;

/// Queries one phase of a task's workflow.
struct AssignmentQuery<'a> {
    settings: &'a Settings,
    task: TaskSpec,
    flags: TaskFlags,
}

impl<'a> AssignmentQuery<'a> {
    fn new(settings: &'a Settings) -> Self {
        Self { settings, task: TaskSpec::from_text("Add login"), flags: TaskFlags::default() }
    }

    fn at<T>(&self, phase: &str, ask: impl FnOnce(PhaseContext<'_>) -> T) -> T {
        let workflow = self.settings.task_workflow(&self.task, &self.flags).expect("a workflow");
        let phases: Vec<Phase> = workflow.phases.clone();
        let phase = phases.iter().find(|listed| listed.name == phase).expect(phase);
        ask(PhaseContext { workflow: &workflow, phase, task: &self.task })
    }

    fn writer(&self, role: Role, phase: &str) -> Result<AssignedWriter, ConfigError> {
        self.at(phase, |context| self.settings.writer(role, context, 0))
    }

    fn reviewer(&self, name: &str) -> Result<AssignedReviewer, ConfigError> {
        self.at("review", |context| self.settings.reviewer(&name.into(), context, 0))
    }
}

fn summary(assigned: &AssignedWriter) -> String {
    let model = assigned.model.as_deref().unwrap_or("-");
    format!("{} {model} {}", assigned.agent.name, assigned.timeout)
}

fn review_summary(assigned: &AssignedReviewer) -> String {
    let model = assigned.model.as_deref().unwrap_or("-");
    format!("{} {model} {} {}", assigned.agent.name, assigned.timeout, assigned.contract.into_str())
}

const TWO: &str = "\
[agents.claude]
model = \"opus\"

[agents.mine]
kind = \"command\"
command = [\"./agent.sh\"]
";

#[test]
fn the_only_agent_has_every_role() {
    let settings = configured("[agents.claude]\n[agents.tests]\nkind = \"checks\"\n");
    let query = AssignmentQuery::new(&settings);
    assert_eq!(summary(&query.writer(Role::Implement, "implement").unwrap()), "claude - 1h");
    assert_eq!(summary(&query.writer(Role::Fix, "review").unwrap()), "claude - 30m");
    assert_eq!(review_summary(&query.reviewer("general").unwrap()), "claude - 10m markdown");
}

#[test]
fn a_missing_role_falls_back_to_implement() {
    let settings = configured(&format!("{TWO}[roles]\nimplement = \"claude\"\nfix = \"mine\"\n"));
    let query = AssignmentQuery::new(&settings);
    let agent = |role| query.writer(role, "implement").unwrap().agent.name;
    assert_eq!(agent(Role::Fix), "mine");
    for role in [Role::Implement, Role::Enumerate, Role::Plan, Role::Brainstorm, Role::Simplify] {
        assert_eq!(agent(role), "claude", "{}", role.into_str());
    }
    assert_eq!(query.reviewer("general").unwrap().agent.name, "claude");
}

#[test]
fn a_reviewer_has_its_own_agent_or_that_of_the_role() {
    let settings = configured(&format!("{TWO}[roles]\nimplement = \"claude\"\nreview = \"mine\"\n"));
    assert_eq!(AssignmentQuery::new(&settings).reviewer("general").unwrap().agent.name, "mine");
    let settings = configured(&format!(
        "review_workspace = \"shared\"\n{TWO}[roles]\nimplement = \"mine\"\nreview = \"mine\"\n[reviewers.general]\nagent = \"claude\"\n\
         review_workspace = \"copy\"\nrequire_nonce = true\nprompt = \"ours.md\"\ncontract = \"auto\"\n"
    ));
    let assigned = AssignmentQuery::new(&settings).reviewer("general").unwrap();
    assert_eq!((assigned.agent.name.as_str(), assigned.workspace), ("claude", Some(ReviewWorkspace::Copy)));
    assert_eq!((assigned.require_nonce, assigned.prompt.as_deref()), (true, Some("ours.md")));
    assert_eq!(assigned.contract.into_str(), "auto");
}

#[test]
fn built_in_agents_require_the_nonce_unless_configured_otherwise() {
    let required = |more: &str, agent: &str| {
        let text = format!(
            "{TWO}[roles]\nimplement = \"mine\"\nreview = \"mine\"\n{more}\n[reviewers.general]\nagent = \"{agent}\"\n"
        );
        let settings = configured(&text);
        AssignmentQuery::new(&settings).reviewer("general").unwrap().require_nonce
    };
    assert!(required("", "claude") && !required("", "mine"));
    assert!(!required("[gate]\nrequire_nonce = false", "claude"));
    assert!(required("[gate]\nrequire_nonce = true", "mine"));
    let own = "[gate]\nrequire_nonce = true\n[reviewers.general]\nrequire_nonce = false\nagent = \"claude\"\n";
    let settings = configured(&format!("{TWO}[roles]\nimplement = \"mine\"\nreview = \"mine\"\n{own}"));
    assert!(!AssignmentQuery::new(&settings).reviewer("general").unwrap().require_nonce);
    let tool = "[reviewers.general]\ncontract = \"tool\"\nagent = \"claude\"\n";
    let settings = configured(&format!("{TWO}[roles]\nimplement = \"mine\"\nreview = \"mine\"\n{tool}"));
    assert!(!AssignmentQuery::new(&settings).reviewer("general").unwrap().require_nonce);
}

#[test]
fn the_most_specific_model_wins() {
    let base = "[agents.claude]\nmodel = \"of-agent\"\n";
    let of_type = "[task_types.implement]\nmodel = \"of-type\"\nreview_model = \"of-reviews\"\n[task_types.review]\nmodel = \"of-review-tasks\"\n";
    let of_reviewer = "[reviewers.general]\nmodel = \"of-reviewer\"\n";
    let models = |text: String, model: Option<&str>, kind: TaskType| {
        let settings = configured(&text);
        let mut query = AssignmentQuery::new(&settings);
        query.task.model = model.map(str::to_owned);
        query.task.kind = kind;
        let writer = query.at("review", |context| settings.writer(Role::Fix, context, 0)).unwrap().model.unwrap();
        (writer, query.reviewer("general").unwrap().model.unwrap())
    };
    let pair = |writer: &str, reviewer: &str| (writer.to_owned(), reviewer.to_owned());
    let implement = TaskType::Implement;
    assert_eq!(models(base.to_owned(), None, implement), pair("of-agent", "of-agent"));
    assert_eq!(models(base.to_owned() + of_type, None, implement), pair("of-type", "of-reviews"));
    assert_eq!(models(base.to_owned() + of_type, Some("of-task"), implement), pair("of-task", "of-reviews"));
    assert_eq!(
        models(base.to_owned() + of_type + of_reviewer, Some("of-task"), implement),
        pair("of-task", "of-reviewer")
    );
    assert_eq!(models(base.to_owned() + of_type, None, TaskType::Review).1, "of-review-tasks");
    assert_eq!(models(base.to_owned() + of_type, Some("of-task"), TaskType::Review).1, "of-task");
}

/// A setting of a person overrides the preset; the most specific one wins.
#[test]
fn the_most_specific_timeout_wins() {
    let times = |text: &str| {
        let settings = configured(&format!(
            "{text}\n[agents.claude]\n{}",
            if text.contains("#agent") { "timeout = \"45m\"\n" } else { "" }
        ));
        let query = AssignmentQuery::new(&settings);
        let implement = query.writer(Role::Implement, "implement").unwrap().timeout;
        let fix = query.writer(Role::Fix, "review").unwrap().timeout;
        format!("{implement} {fix} {}", query.reviewer("general").unwrap().timeout)
    };
    assert_eq!(times(""), "1h 30m 10m", "the preset's");
    assert_eq!(times("[limits]\nattempt = \"2h\""), "2h 2h 2h");
    assert_eq!(times("#agent\n[limits]\nattempt = \"2h\""), "45m 45m 45m");
    assert_eq!(times("#agent\n[gate]\nreview_timeout = \"3m\"\nfix_timeout = \"7m\""), "45m 7m 3m");
    assert_eq!(
        times(
            "#agent\n[task_types.implement]\ntimeout_minutes = 61\nreview_timeout_minutes = 4\nimprove_timeout_minutes = 8"
        ),
        "61m 8m 4m"
    );
    assert_eq!(times("[gate]\nreview_timeout = \"3m\"\n[reviewers.general]\ntimeout = \"1m\""), "1h 30m 1m");
    assert_eq!(
        times("preset = \"plan\"\n[reviewers.general]\nkind = \"general\"\n[gate]\nreviewers = [\"general\"]"),
        "1h 1h 3m"
    );
}

#[test]
fn all_keys_of_an_agent_are_read() {
    let settings = configured(
        "[agents.mine]\nkind = \"command\"\ncommand = [\"./agent.sh\", \"--fast\"]\nargs = [\"-q\", \"\"]\nenv = { A = \"1\", B = \"\" }\n\
         timeout = \"30m\"\nfallback = \"claude\"\n[agents.claude]\n",
    );
    insta::assert_debug_snapshot!(settings.agent("mine").unwrap(), @r#"
    AgentConfig {
        name: "mine",
        kind: Command,
        command: [
            "./agent.sh",
            "--fast",
        ],
        args: [
            "-q",
            "",
        ],
        env: {
            "A": "1",
            "B": "",
        },
        pass: [],
        model: None,
        timeout: Some(
            TimeSpan {
                seconds: 1800,
            },
        ),
        fallback: Some(
            "claude",
        ),
        provider: "mine",
        max_agents: None,
    }
    "#);
    assert_eq!(settings.agent("missing"), None);
}

#[test]
fn without_an_agent_there_is_an_error() {
    let settings = configured("[agents.tests]\nkind = \"checks\"\n");
    assert_eq!(AssignmentQuery::new(&settings).writer(Role::Fix, "review"), Err(ConfigError::NoAgent));
    assert_eq!(AssignmentQuery::new(&settings).reviewer("general").unwrap_err(), ConfigError::NoAgent);
}

#[test]
fn several_agents_without_a_role_are_an_error() {
    let settings = configured(TWO);
    insta::assert_snapshot!(AssignmentQuery::new(&settings).writer(Role::Fix, "review").unwrap_err(), @"no agent is assigned to the role `fix`: set `[roles] fix` to one of claude, mine");
}

#[test]
fn an_improvement_has_the_timeout_of_a_fix() {
    let time = |text: &str| {
        let settings = configured(&format!("{text}\n[agents.claude]\ntimeout = \"45m\"\n"));
        let mut query = AssignmentQuery::new(&settings);
        query.task.kind = TaskType::Improve;
        query.writer(Role::Fix, "improve").unwrap().timeout.to_string()
    };
    assert_eq!(time(""), "45m");
    assert_eq!(time("[gate]\nfix_timeout = \"7m\""), "7m");
    assert_eq!(time("[task_types.improve]\nimprove_timeout_minutes = 8"), "8m");
    assert_eq!(time("[gate]\nfix_timeout = \"7m\"\n[task_types.improve]\ntimeout_minutes = 9"), "9m");
}

/// A role's model overrides the agent's and is overridden by the phase's; it is dropped with the role's agent.
#[test]
fn a_role_can_have_a_model() {
    let agents = "[agents.claude]\nmodel = \"of-agent\"\n[agents.other]\nkind = \"claude\"\n";
    let models = |roles: &str, more: &str| {
        let settings = configured(&format!("{agents}[roles]\n{roles}\n{more}"));
        let query = AssignmentQuery::new(&settings);
        let fixer = query.at("review", |context| settings.writer(Role::Fix, context, 0)).unwrap();
        let reviewer = query.reviewer("general").unwrap();
        let shown = |agent: &str, model: Option<String>| format!("{agent} {}", model.unwrap_or("-".to_owned()));
        [shown(&fixer.agent.name, fixer.model), shown(&reviewer.agent.name, reviewer.model)].join(", ")
    };
    let implement = "implement = { agent = \"claude\", model = \"big\" }";
    assert_eq!(models("implement = \"claude\"", ""), "claude of-agent, claude of-agent");
    assert_eq!(models(implement, ""), "claude big, claude big");
    let fix = |written: &str| format!("{implement}\nfix = {written}");
    assert_eq!(models(&fix("{ agent = \"claude\", model = \"small\" }"), ""), "claude small, claude big");
    assert_eq!(models(&fix("{ model = \"small\" }"), ""), "claude small, claude big");
    assert_eq!(models(&fix("\"other\""), ""), "other -, claude big");
    assert_eq!(models(&fix("{ agent = \"other\" }"), ""), "other -, claude big");
    let review = format!("{implement}\nreview = {{ model = \"sharp\" }}");
    assert_eq!(models(&review, ""), "claude big, claude sharp");
    assert_eq!(models(&review, "[reviewers.general]\nagent = \"other\"\n"), "claude big, other -");
    assert_eq!(models(&review, "[reviewers.general]\nmodel = \"own\"\n"), "claude big, claude own");
    let of_type = "[task_types.implement]\nmodel = \"of-type\"\nreview_model = \"of-reviews\"\n";
    assert_eq!(models(&review, of_type), "claude of-type, claude of-reviews");
}

/// A later file that names an agent drops the earlier agent's model.
#[test]
fn roles_are_merged_layer_by_layer() {
    let person = "[agents.claude]\n[agents.other]\nkind = \"claude\"\n[roles]\nfix = { agent = \"claude\", model = \"small\" }\n";
    let shown = |repository: &str| {
        let layers = [Layer::person("config.toml", person), Layer::repository("signoff.toml", repository)];
        let rows = read(&layers, &[], &[]).unwrap().origins();
        let roles = rows.iter().filter(|row| row.key.starts_with("roles."));
        roles.map(|row| format!("{} = {} # {}\n", row.key, row.text(), row.origin)).collect::<String>()
    };
    insta::assert_snapshot!(shown(""), @r#"
    roles.fix.agent = "claude" # config.toml:5
    roles.fix.model = "small" # config.toml:5
    "#);
    insta::assert_snapshot!(shown("[roles.fix]\nmodel = \"tiny\"\n"), @r#"
    roles.fix.agent = "claude" # config.toml:5
    roles.fix.model = "tiny" # signoff.toml:2
    "#);
    insta::assert_snapshot!(shown("[roles]\nfix = \"other\"\n"), @r#"roles.fix = "other" # signoff.toml:2"#);
}

#[test]
fn researchers_can_have_a_model() {
    let settings = configured(
        r#"preset = "mine"
[workflows.mine]
phases = [
  { name = "think", kind = "agent", role = "brainstorm", researchers = 2, model = "sonnet", parallel_model = "haiku" },
  { name = "plan", kind = "agent", role = "plan", researchers = 2, model = "sonnet" },
  { name = "work", kind = "agent", researchers = 2 },
]
[agents.claude]
model = "opus"
"#,
    );
    let query = AssignmentQuery::new(&settings);
    let researcher =
        |role, phase| query.at(phase, |context| settings.researcher(role, context, 0)).expect("an agent").model;
    assert_eq!(researcher(Role::Brainstorm, "think").as_deref(), Some("haiku"));
    assert_eq!(researcher(Role::Plan, "plan").as_deref(), Some("sonnet"));
    assert_eq!(researcher(Role::Implement, "work").as_deref(), Some("opus"));
    assert_eq!(query.writer(Role::Brainstorm, "think").expect("an agent").model.as_deref(), Some("sonnet"));
}
