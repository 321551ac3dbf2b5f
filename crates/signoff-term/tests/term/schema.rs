//! The stored schemas match the types, and the JSON output matches the schemas.

use std::fs;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde::Serialize;
use serde_json::{Value, json};
use signoff_core::group::{RunOutcome, RunStage};
use signoff_core::ledger::FindingState;
use signoff_core::notify::NotificationMessage;
use signoff_core::review::Usage;
use signoff_core::sandbox::SandboxBackend;
use signoff_core::settings::AgentKind;
use signoff_core::settings::edit::ChangedKey;
use signoff_core::state_v4::IterationState;
use signoff_core::task::TaskSpec;
use signoff_core::wire::{Fact, QUEUE, RecordedFact, TaskFact};
use signoff_term::agents::{AgentCheckReport, AgentRow, AgentsReport, FailedAnswer, LoginState};
use signoff_term::json::{
    AddReport, AnswerReport, ConfigReport, ConfigureReport, DiffReport, DisputeReport, DoctorCheck, DoctorReport,
    InitReport, LogLine, MergeReport, NotifyReport, PhasesReport, ProjectCheck, RunReport, ServeReport, StatusReport,
    VERSION, event,
};
use signoff_term::report::ReportDocument;
use signoff_term::show::TaskReport;
use signoff_term::slots::{ReadyTask, SkippedTask, SlotsReport};
use signoff_term::stats::StatsReport;

use crate::fits::{directory, fits, schema};
use crate::rows::{all, question};
use crate::show::approved;
use crate::status::run;
use crate::story::{Story, reviewed};

/// One recorded event. The content of `body` depends on `kind`.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used: the core writes events")]
struct EventLine {
    #[schemars(extend("const" = 1))]
    version: u32,
    run_id: u64,
    /// The number of the event in the log of its run.
    seq: u64,
    /// When it was recorded, UTC.
    at: String,
    /// `task.added`, `run.opened`, `loop.review_arrived`, …
    kind: String,
    /// Present in events of a loop; null in events of the run.
    #[schemars(skip_serializing_if = "Option::is_none")]
    loop_id: Option<String>,
    /// Present in events of a task.
    #[schemars(skip_serializing_if = "Option::is_none")]
    task_id: Option<u64>,
    body: Value,
}

/// The schemas of all JSON output, by file name without extension.
fn schemas() -> Vec<(&'static str, Schema)> {
    let titled = |title: &str, root: fn() -> Schema| {
        let mut schema = root();
        schema.insert("title".to_owned(), title.into());
        schema
    };
    vec![
        ("add", titled("`add --json`, version 1", printed::<AddReport>)),
        ("agents", titled("`agents --json`, version 1", printed::<AgentsReport>)),
        ("answer", titled("`answer --json`, version 1", printed::<AnswerReport>)),
        ("config", titled("`config --json`, version 1", printed::<ConfigReport>)),
        (
            "configure",
            titled("`configure --json` with `--set`, `--import` or `--reset`, version 1", printed::<ConfigureReport>),
        ),
        ("configure-show", titled("`configure --show --json`, version 1", printed::<PhasesReport>)),
        ("diff", titled("`diff --json`, version 1", printed::<DiffReport>)),
        ("dispute", titled("`dispute --json`, version 1", printed::<DisputeReport>)),
        ("doctor", titled("`doctor --json`, version 1", printed::<DoctorReport>)),
        ("event", titled("A line of `--json-events`, version 1", printed::<EventLine>)),
        ("init", titled("`init --json`, version 1", printed::<InitReport>)),
        ("land", titled("`merge --json` and `land --json`, version 1", printed::<MergeReport>)),
        ("logs", titled("A line of `logs --json`, version 1", printed::<LogLine>)),
        (
            "notification",
            titled("The body sent to webhooks and to commands on stdin, version 1", printed::<NotificationMessage>),
        ),
        ("notify", titled("`notify --json`, version 1", printed::<NotifyReport>)),
        ("report", titled("`report --format json`, version 1", printed::<ReportDocument>)),
        ("run", titled("The end of `work --json` and `run --json`, version 1", printed::<RunReport>)),
        (
            "slots",
            titled("`run beads --dry-run --json` and `run queue --dry-run --json`, version 1", printed::<SlotsReport>),
        ),
        ("state-v4", titled("`export --format state-v4`, and what `import` reads", printed::<IterationState>)),
        ("serve", titled("`serve --json`, version 1", printed::<ServeReport>)),
        ("show", titled("`show --json`, version 1", printed::<TaskReport>)),
        ("stats", titled("`stats --json`, version 1", printed::<StatsReport>)),
        ("status", titled("`status --json`, version 1", printed::<StatusReport>)),
    ]
}

/// A schema for output: every key is present, and an unknown value is null.
fn printed<T: JsonSchema>() -> Schema {
    SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<T>()
}

fn pretty(schema: &impl Serialize) -> String {
    serde_json::to_string_pretty(schema).expect("a schema is JSON") + "\n"
}

#[test]
#[expect(clippy::disallowed_methods, reason = "UPDATE_SCHEMA=1 writes the files instead of comparing them")]
fn stored_schemas_match_the_types() {
    let update = std::env::var_os("UPDATE_SCHEMA").is_some();
    let printed = schemas().into_iter().map(|(name, schema)| (name, pretty(&schema)));
    let read = ("signoff.toml", pretty(&signoff_core::settings::schema()));
    for (name, text) in printed.chain([read]) {
        let path = directory().join(format!("{name}.schema.json"));
        if update {
            fs::write(&path, &text).unwrap();
        }
        let kept = fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(kept, text, "{name}.schema.json is out of date: run this test with UPDATE_SCHEMA=1");
    }
}

#[test]
fn output_matches_the_schemas() {
    let story = Story::task(reviewed("task")).works().approves("general");
    let spec = Box::new(TaskSpec::from_text("Add login"));
    let fact = TaskFact::Added { spec, auto_review: true, max_review_cycles: Some(3) };
    let added =
        RecordedFact { run: QUEUE, fact: Fact::Task(signoff_core::ids::TaskId(1), fact), ..story.log[0].clone() };
    let done = RunStage::Done(RunOutcome::Approved);
    let mut printed = vec![
        (
            "status",
            json!(StatusReport::new(all(), vec![question("q1", 33)], vec![run(3, "running", "working", (Some(1), 2))])),
        ),
        ("status", json!(StatusReport::new(Vec::new(), Vec::new(), Vec::new()))),
        ("add", json!(AddReport::new(all().remove(0)))),
        ("run", json!(RunReport::new(Some(3), Some(&done), all(), vec![question("q1", 33)]))),
        ("run", json!(RunReport::new(None, None, Vec::new(), Vec::new()))),
        ("show", json!(approved())),
    ];
    printed.extend(of_commands());
    let events = story.log.iter().chain([&added]);
    printed.extend(events.map(|recorded| ("event", serde_json::from_str(&event(recorded)).unwrap())));
    for (name, value) in printed {
        let root = schema(name);
        if let Err(problem) = fits(&value, &root) {
            panic!("{name}{problem}\n{value:#}");
        }
    }
}

/// The output of the commands about one thing.
fn of_commands() -> Vec<(&'static str, Value)> {
    let text = || "text".to_owned();
    let settings = signoff_core::settings::read(&[], &[], &[]).expect("the built-in settings").origins();
    let checks = vec![
        DoctorCheck::passed("store", "fine"),
        DoctorCheck::warning("settings", "hm"),
        DoctorCheck::failed("agents", "no"),
    ];
    let check = ProjectCheck { name: "test".to_owned(), command: text() };
    let init = InitReport {
        version: VERSION,
        written: vec!["signoff.toml"],
        kept: Vec::new(),
        backup: None,
        agents: vec![AgentKind::Claude],
        checks: vec![check],
        missing: Vec::new(),
        agent_lines: Vec::new(),
        found: vec!["gza.yaml".to_owned()],
    };
    let diff = DiffReport {
        version: VERSION,
        task_id: 1,
        base: text(),
        branch: text(),
        stat: text(),
        diff: text(),
        left_out: vec![text()],
    };
    let line = LogLine {
        version: VERSION,
        task_id: 1,
        attempt: 2,
        role: text(),
        reviewer: None,
        agent: text(),
        cycle: 0,
        stream: "stderr",
        text: text(),
    };
    let dispute = DisputeReport { version: VERSION, finding: text(), task_id: None, state: FindingState::Refuted };
    let ready = ReadyTask { id: text(), title: text(), priority: None, auto_review: true };
    let left_out = SkippedTask { id: text(), title: text(), reason: text() };
    let slots = SlotsReport::new("bd", vec![ready], vec![left_out], vec![text()]);
    let changed = ChangedKey { key: text(), old: None, new: Some(text()) };
    let (changes, notes) = (vec![changed], vec![text()]);
    let configure = ConfigureReport { version: VERSION, file: text(), written: true, backup: None, changes, notes };
    let default_settings = signoff_core::settings::read(&[], &[], &[]);
    let phases = default_settings.and_then(|settings| settings.phase_rows()).unwrap_or_default();
    let spent = Usage { cost_micro_usd: 5, ..Usage::default() };
    let row = AgentRow {
        name: text(),
        kind: AgentKind::Claude,
        configured: true,
        program: None,
        program_version: Some(text()),
        least_version: None,
        too_old: false,
        login: LoginState::Unknown,
        login_by: None,
        model: None,
        problem: None,
        hint: None,
        note: None,
        check: Some(AgentCheckReport::new(Err(FailedAnswer { message: text(), hint: None }), spent, 3)),
    };
    vec![
        ("agents", json!(AgentsReport::new(vec![row], false, SandboxBackend::Landlock))),
        ("slots", json!(slots)),
        ("serve", json!(ServeReport { version: VERSION, url: text(), port: 7447 })),
        ("config", json!(ConfigReport::new(settings))),
        ("configure", json!(configure)),
        ("configure-show", json!(PhasesReport::new(phases))),
        ("doctor", json!(DoctorReport::new(checks, SandboxBackend::Landlock))),
        ("init", json!(init)),
        ("diff", json!(diff)),
        ("logs", json!(line)),
        ("answer", json!(AnswerReport { version: VERSION, question: text(), task_id: None, choice: text() })),
        ("dispute", json!(dispute)),
    ]
}

#[test]
fn mismatches_are_reported() {
    let root = schema("status");
    let violation = |value: Value| fits(&value, &root).unwrap_err();
    let mut document = json!(StatusReport::new(all(), Vec::new(), Vec::new()));
    document["tasks"][3]["status"] = json!("sleeping");
    insta::assert_snapshot!(violation(document.clone()), @r#"
        .tasks[3].status: "sleeping" is none of the words
    "#);
    document["tasks"][3]["status"] = json!("pending");
    document["tasks"][3]["id"] = json!("31");
    insta::assert_snapshot!(violation(document), @r#"
        .tasks[3].id: "31" is no "integer"
    "#);
    insta::assert_snapshot!(violation(json!({"version": 1, "tasks": [], "runs": []})), @": `questions` is missing");
    insta::assert_snapshot!(violation(json!({"version": 2, "tasks": [], "questions": [], "runs": []})), @".version: 2 is none of the words");
    insta::assert_snapshot!(violation(json!({"version": 1, "tasks": [], "questions": [], "runs": [], "more": 1})), @": `more` is not in the schema");
}
