//! Files of other programs: the TOML they become, where each value comes from, and the messages about
//! mistakes in them.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use signoff_core::policy::{Bound, OnExhausted, OnFailure};
use signoff_core::review::FailThreshold;
use signoff_core::settings::foreign::{ForeignFile, ForeignFormat, merged, translate};
use signoff_core::settings::{ConfigError, Layer, MAX_FILE_BYTES, Settings, read};
use signoff_core::workflow::{PhaseKind, Workflow, preset};

const ITERATE: &str = include_str!("../../testdata/config-foreign/iterate-config.json");

const HOME: &str = "~/.claude/iterate-config.json";
const HERE: &str = ".claude/iterate-config.local.json";

/// The TOML a file becomes.
fn toml(format: ForeignFormat, text: &str) -> String {
    let translated = translate(format, "file", text).unwrap_or_else(|error| panic!("{error}"));
    translated.layer.text().to_owned()
}

/// What two files about phases become, the one at home and the project's.
fn phases(home: &str, here: &str) -> Layer {
    let files = [ForeignFile { name: HOME, text: home }, ForeignFile { name: HERE, text: here }];
    merged(&files).unwrap_or_else(|error| panic!("{error}")).layer
}

fn settings(layers: &[Layer]) -> Settings {
    read(layers, &[], &[]).unwrap_or_else(|error| panic!("{error}"))
}

/// What does not come from the program itself, each with its origin.
fn written(settings: &Settings) -> String {
    let mut out = String::new();
    for row in settings.origins() {
        let origin = row.origin.to_string();
        if origin != "built in" && !origin.starts_with("preset ") {
            writeln!(out, "{} = {}  # {origin}", row.key, row.value).expect("written");
        }
    }
    out
}

#[test]
fn phases_become_tables() {
    insta::assert_snapshot!(toml(ForeignFormat::Iterate, ITERATE), @r#"
    [presets.phases]
    fail_on = "LOW"
    max_fixes = 10
    on_exhausted = "stop"
    parallel_fixes = true

    [presets.phases.phase.1]
    model = "inherit"
    parallel = true
    parallel_model = "inherit"

    [presets.phases.phase.2]
    model = "inherit"
    parallel = true
    parallel_model = "inherit"

    [presets.phases.gates.plan_review]
    on_failure = "restart"
    fail_on = "LOW"
    max_fixes = 10
    parallel_fixes = true

    [presets.phases.phase.3]
    tool = "mcp__codex__codex"

    [presets.phases.phase.4]
    model = "inherit"
    parallel = false

    [presets.phases.gates.code_review]
    on_failure = "mini-loop"
    fail_on = "LOW"
    max_fixes = 10
    parallel_fixes = true

    [presets.phases.phase.5]
    model = "inherit"

    [presets.phases.gates.test]
    on_failure = "restart"
    max_fixes = 10

    [presets.phases.phase.6]
    model = "none"

    [presets.phases.phase.7]
    model = "inherit"
    parallel = false

    [presets.phases.gates.final_review]
    on_failure = "restart"
    fail_on = "LOW"
    max_fixes = 10
    parallel_fixes = true

    [presets.phases.phase.8]
    tool = "mcp__codex__codex"

    [presets.phases.phase.9]
    tool = "mcp__codex-high__codex"
    "#);
}

#[test]
fn every_value_has_the_line_it_is_written_in() {
    let home = r#"{
  "version": 2,
  "reviewDefaults": { "maxRetries": 3 },
  "phases": {
    "1": {
      "model": "opus",
      "parallel": false
    },
    "5": { "failOnSeverity": "HIGH",
           "onMaxRetries": "ask" }
  }
}"#;
    let here = r#"{
  "version": 2,
  "phases": {
    "1": {
      "model": "inherit"
    },
    "3": { "tool": "mcp__codex__codex", "maxRetries": null },
    "6": { "model": null }
  }
}"#;
    insta::assert_snapshot!(written(&settings(&[phases(home, here)])), @r#"
    presets.phases.gates.code_review.fail_on = "HIGH"  # ~/.claude/iterate-config.json:9
    presets.phases.gates.code_review.on_exhausted = "ask"  # ~/.claude/iterate-config.json:10
    presets.phases.gates.plan_review.max_fixes = "unlimited"  # .claude/iterate-config.local.json:7
    presets.phases.phase.1.model = "inherit"  # .claude/iterate-config.local.json:5
    presets.phases.phase.1.parallel = false  # ~/.claude/iterate-config.json:7
    presets.phases.phase.3.tool = "mcp__codex__codex"  # .claude/iterate-config.local.json:7
    presets.phases.phase.6.model = "none"  # .claude/iterate-config.local.json:8
    presets.phases.max_fixes = 3  # ~/.claude/iterate-config.json:3
    "#);
}

#[test]
fn the_file_as_it_is_documented_says_what_the_preset_says_anyway() {
    let translated = settings(&[translate(ForeignFormat::Iterate, HERE, ITERATE).unwrap().layer]);
    let translated = translated.workflow("phases").unwrap();
    let shipped = preset("phases").unwrap();
    let judges = |workflow: &Workflow| -> Vec<_> { workflow.phases.iter().map(|phase| phase.kind.clone()).collect() };
    assert_eq!(judges(&translated), judges(&shipped));
    let tools: Vec<_> = translated.phases.iter().filter_map(|phase| phase.tool.as_deref()).collect();
    assert_eq!(tools, ["mcp__codex__codex", "mcp__codex__codex", "mcp__codex-high__codex"]);
    assert!(translated.phases.iter().all(|phase| phase.model.is_none() && phase.parallel_model.is_none()));
    let lite = translated.in_mode("lite").unwrap();
    assert!(lite.phases.iter().all(|phase| phase.tool.is_none()), "lite: the main agent reviews");
}

/// `failOnSeverity` of phase 5 under every combination of who says anything: the defaults at home, the phase at home,
/// the project's defaults, the project's phase.
#[test]
fn phases_inherit_what_no_file_sets_for_them() {
    let file = |defaults: Option<&str>, phase: Option<&str>| {
        let defaults = defaults.map(|word| format!(r#", "reviewDefaults": {{ "failOnSeverity": "{word}" }}"#));
        let phase = phase.map(|word| format!(r#", "phases": {{ "5": {{ "failOnSeverity": "{word}" }} }}"#));
        format!(r#"{{ "version": 2{}{} }}"#, defaults.unwrap_or_default(), phase.unwrap_or_default())
    };
    let mut table = String::new();
    for number in 0..16_u32 {
        let said = |bit: u32, word: &'static str| (number & bit != 0).then_some(word);
        let home = file(said(1, "NONE"), said(2, "MEDIUM"));
        let here = file(said(4, "HIGH"), said(8, "LOW"));
        let settings = settings(&[phases(&home, &here)]);
        let workflow = settings.workflow("phases").unwrap();
        let bar = |name: &str| {
            let phase = workflow.phases.iter().find(|phase| phase.name == name).unwrap();
            phase.policy().unwrap().gate.fail_on
        };
        let marks = [(1, "home: all NONE"), (2, "home: 5 MEDIUM"), (4, "here: all HIGH"), (8, "here: 5 LOW")]
            .map(|(bit, word)| said(bit, word).unwrap_or("-"));
        let [a, b, c, d] = marks;
        let (five, eight) = (bar("code_review"), bar("final_review"));
        writeln!(table, "{a:14} | {b:14} | {c:14} | {d:11} → 5 {five:?}, 8 {eight:?}").unwrap();
    }
    insta::assert_snapshot!(table, @"
    -              | -              | -              | -           → 5 Low, 8 Low
    home: all NONE | -              | -              | -           → 5 None, 8 None
    -              | home: 5 MEDIUM | -              | -           → 5 Medium, 8 Low
    home: all NONE | home: 5 MEDIUM | -              | -           → 5 Medium, 8 None
    -              | -              | here: all HIGH | -           → 5 High, 8 High
    home: all NONE | -              | here: all HIGH | -           → 5 High, 8 High
    -              | home: 5 MEDIUM | here: all HIGH | -           → 5 Medium, 8 High
    home: all NONE | home: 5 MEDIUM | here: all HIGH | -           → 5 Medium, 8 High
    -              | -              | -              | here: 5 LOW → 5 Low, 8 Low
    home: all NONE | -              | -              | here: 5 LOW → 5 Low, 8 None
    -              | home: 5 MEDIUM | -              | here: 5 LOW → 5 Low, 8 Low
    home: all NONE | home: 5 MEDIUM | -              | here: 5 LOW → 5 Low, 8 None
    -              | -              | here: all HIGH | here: 5 LOW → 5 Low, 8 High
    home: all NONE | -              | here: all HIGH | here: 5 LOW → 5 Low, 8 High
    -              | home: 5 MEDIUM | here: all HIGH | here: 5 LOW → 5 Low, 8 High
    home: all NONE | home: 5 MEDIUM | here: all HIGH | here: 5 LOW → 5 Low, 8 High
    ");
}

#[test]
fn every_word_of_a_policy_arrives_at_its_gate() {
    let text = r#"{ "version": 2,
  "reviewDefaults": { "failOnSeverity": "MEDIUM", "maxRetries": null, "onMaxRetries": "ask", "parallelFixes": false },
  "phases": {
    "3": { "onFailure": "stop" },
    "5": { "onFailure": "proceed", "maxRetries": 0, "onMaxRetries": "restart" },
    "6": { "onFailure": "mini-loop", "maxRetries": 2, "parallelFixes": true },
    "9": { "onFailure": "mini-loop", "failOnSeverity": "NONE", "onMaxRetries": "proceed" }
  } }"#;
    let workflow = settings(&[phases(r#"{ "version": 2 }"#, text)]).workflow("phases").unwrap();
    let gate = |name: &str| {
        let phase = workflow.phases.iter().find(|phase| phase.name == name).unwrap();
        phase.policy().unwrap().gate.clone()
    };
    let (plan, code, test, last) = (gate("plan_review"), gate("code_review"), gate("test"), gate("codex_final"));
    assert_eq!((plan.on_failure, plan.fail_on, plan.bound), (OnFailure::Stop, FailThreshold::Medium, Bound::Unlimited));
    assert_eq!((plan.on_exhausted, plan.parallel_fixes), (OnExhausted::Ask, false));
    assert_eq!((code.on_failure, code.bound), (OnFailure::Proceed, Bound::MaxFixes(0)));
    assert_eq!(code.on_exhausted, OnExhausted::Restart);
    assert_eq!((test.on_failure, test.bound), (OnFailure::MiniLoop, Bound::MaxFixes(2)));
    assert_eq!((test.fail_on, test.parallel_fixes), (FailThreshold::Low, true));
    assert_eq!((last.on_failure, last.fail_on), (OnFailure::MiniLoop, FailThreshold::None));
    assert_eq!((last.bound, last.on_exhausted), (Bound::Unlimited, OnExhausted::Proceed));
    let own = workflow.phases.iter().find(|phase| phase.name == "implement_review").unwrap();
    assert!(own.is_off(), "no gate at each item is configured");
}

#[test]
fn who_works_alone_and_who_has_helpers() {
    let text = r#"{ "version": 2, "phases": {
    "1": { "parallel": false }, "2": { "parallel": true, "parallelModel": "haiku" }, "7": { "parallel": true, "model": "opus" }
  } }"#;
    let workflow = settings(&[phases(r#"{ "version": 2 }"#, text)]).workflow("phases").unwrap();
    let mut models = String::new();
    for phase in &workflow.phases {
        if let PhaseKind::Agent { researchers, .. } = &phase.kind {
            writeln!(models, "{}: {researchers} {:?} {:?}", phase.name, phase.parallel_model, phase.model).unwrap();
        }
    }
    insta::assert_snapshot!(models, @r#"
    brainstorm: 0 None None
    plan: 3 Some("haiku") None
    implement: 0 None None
    simplify: 3 None Some("opus")
    "#);
}

#[test]
fn a_later_file_that_names_a_model_means_it_instead_of_the_tool() {
    let tool = r#"{ "version": 2, "phases": { "3": { "tool": "mcp__codex__codex" } } }"#;
    let model = r#"{ "version": 2, "phases": { "3": { "model": "opus" } } }"#;
    insta::assert_snapshot!(phases(tool, model).text(), @r#"
    [presets.phases.phase.3]
    model = "opus"
    "#);
    insta::assert_snapshot!(phases(model, tool).text(), @r#"
    [presets.phases.phase.3]
    tool = "mcp__codex__codex"
    "#);
}

#[test]
fn such_files_rank_between_the_persons_and_the_repositorys() {
    let text =
        r#"{ "version": 2, "reviewDefaults": { "failOnSeverity": "HIGH", "maxRetries": 2, "parallelFixes": false } }"#;
    let person = Layer::person("mine.toml", "[presets.phases]\nfail_on = \"NONE\"\nmax_fixes = 1\nmax_passes = 4\n");
    let repository = Layer::repository("signoff.toml", "[presets.phases]\nmax_cycles = 7\n");
    insta::assert_snapshot!(written(&settings(&[person, phases("{\"version\": 2}", text), repository])), @r#"
    presets.phases.max_passes = 4  # mine.toml:4
    presets.phases.fail_on = "HIGH"  # .claude/iterate-config.local.json:1
    presets.phases.max_cycles = 7  # signoff.toml:2
    presets.phases.parallel_fixes = false  # .claude/iterate-config.local.json:1
    "#);
}

#[test]
fn task_types_become_tables() {
    let text = "\
# gza.yaml
project_name: mine
defaults: &ours
  auto_review: no
  max_review_cycles: 3

task_types:
  implement:
    auto_review: true      # Enable by default for implement tasks
    max_review_cycles: 5
    model: opus
    review_model: \"sonnet\"
    timeout_minutes: 60
    review_timeout_minutes: 10  # Per review cycle
    improve_timeout_minutes: 30
  improve: *ours
provider: claude
";
    let translated = translate(ForeignFormat::Gza, "gza.yaml", text).unwrap();
    insta::assert_snapshot!(translated.layer.text(), @r#"
    [defaults]
    auto_review = false
    max_review_cycles = 3

    [task_types.implement]
    auto_review = true
    max_review_cycles = 5
    model = "opus"
    review_model = "sonnet"
    timeout_minutes = 60
    review_timeout_minutes = 10
    improve_timeout_minutes = 30

    [task_types.improve]
    auto_review = false
    max_review_cycles = 3
    "#);
    insta::assert_snapshot!(translated.notes.join("\n"), @"
    `project_name` is ignored: not a signoff setting
    `provider` is ignored: not a signoff setting
    ");
    insta::assert_snapshot!(written(&settings(&[translated.layer])), @r#"
    defaults.auto_review = false  # gza.yaml:4
    defaults.max_review_cycles = 3  # gza.yaml:5
    task_types.implement.auto_review = true  # gza.yaml:9
    task_types.implement.max_review_cycles = 5  # gza.yaml:10
    task_types.implement.model = "opus"  # gza.yaml:11
    task_types.implement.review_model = "sonnet"  # gza.yaml:12
    task_types.implement.timeout_minutes = 60  # gza.yaml:13
    task_types.implement.review_timeout_minutes = 10  # gza.yaml:14
    task_types.implement.improve_timeout_minutes = 30  # gza.yaml:15
    task_types.improve.auto_review = false  # gza.yaml:4
    task_types.improve.max_review_cycles = 3  # gza.yaml:5
    presets.task.gates.review.max_cycles = 3  # gza.yaml:5
    "#);
}

#[test]
fn files_that_say_nothing_become_nothing() {
    for text in ["", "# nothing\n", "defaults:\n", "---\n", "project: x\n", "task_types: {}\n", "\u{feff}"] {
        let layer = translate(ForeignFormat::Gza, "gza.yaml", text).unwrap().layer;
        assert_eq!(written(&settings(&[layer])), "", "{text:?}");
    }
    assert_eq!(toml(ForeignFormat::Iterate, "\u{feff}{ \"version\": 2 }"), "");
    assert_eq!(toml(ForeignFormat::Slots, "# nothing\n"), "");
}

#[test]
fn the_slots_own_keys_stay_as_they_are() {
    let text = "parallelAgents = 3\nreviewEnabled = true\nreviewMaxFixAttempts = 3\n\n\
                developerPromptPath = \".ai_agents/prompts/developer.md\"\n\
                reviewerPromptPath = '''.ai_agents/prompts/\"reviewer\".md'''\n[provider]\nname = \"x\"\n";
    let translated = translate(ForeignFormat::Slots, "config.toml", text).unwrap();
    insta::assert_snapshot!(translated.layer.text(), @r#"
    reviewEnabled = true
    reviewMaxFixAttempts = 3
    developerPromptPath = ".ai_agents/prompts/developer.md"
    reviewerPromptPath = ".ai_agents/prompts/\"reviewer\".md"
    "#);
    insta::assert_snapshot!(translated.notes.join("\n"), @"
    `parallelAgents` is ignored: not a signoff setting
    `provider` is ignored: not a signoff setting
    ");
    insta::assert_snapshot!(written(&settings(&[translated.layer])), @r#"
    reviewEnabled = true  # config.toml:2
    reviewMaxFixAttempts = 3  # config.toml:3
    developerPromptPath = ".ai_agents/prompts/developer.md"  # config.toml:5
    reviewerPromptPath = ".ai_agents/prompts/\"reviewer\".md"  # config.toml:6
    "#);
}

#[test]
fn what_a_file_is() {
    let of = ForeignFormat::detect;
    assert_eq!(of("gza.yaml", ""), Some(ForeignFormat::Gza));
    assert_eq!(of("conf/GZA.YML", ""), Some(ForeignFormat::Gza));
    assert_eq!(of("slots.toml", ""), Some(ForeignFormat::Slots));
    assert_eq!(of(HERE, ""), Some(ForeignFormat::Iterate));
    assert_eq!(of("iterate-config.local.json.v1.bak", "{}"), Some(ForeignFormat::Iterate));
    assert_eq!(of("-", " \n{}"), Some(ForeignFormat::Iterate));
    assert_eq!((of("-", "jobs = 3"), of("notes.md", "# x")), (None, None));
}

#[test]
fn the_first_version_is_read_as_the_second() {
    let old = "{\n    \"phases\": {\n        \"3\": { \"tool\": \"mcp__codex__codex\" },\n        \"4\": { \"model\": \"opus\" }\n    }\n}\n";
    let translated = translate(ForeignFormat::Iterate, HERE, old).unwrap();
    insta::assert_snapshot!(translated.layer.text(), @r#"
    [presets.phases.phase.3]
    tool = "mcp__codex__codex"

    [presets.phases.phase.4]
    model = "opus"
    "#);
    insta::assert_snapshot!(translated.notes.join("\n"), @".claude/iterate-config.local.json is of version 1: it is read as version 2");
    insta::assert_snapshot!(translated.migrated.unwrap(), @r#"
    {
        "version": 2,
        "phases": {
            "3": { "tool": "mcp__codex__codex" },
            "4": { "model": "opus" }
        }
    }
    "#);
}

#[test]
fn a_file_is_brought_up_to_date_and_else_left_as_it_was() {
    let renewed = |text: &str| merged(&[ForeignFile { name: HERE, text }]).unwrap().migrated;
    assert_eq!(renewed(ITERATE), None);
    assert_eq!(renewed("{}").as_deref(), Some("{ \"version\": 2 }"));
    assert_eq!(
        renewed("{ \"version\" : 1 , \"phases\": {} }\r\n").as_deref(),
        Some("{ \"version\" : 2 , \"phases\": {} }\r\n")
    );
    assert_eq!(renewed("\u{feff}{\"phases\":{}}").as_deref(), Some("{\"version\": 2,\"phases\":{}}"));
    for text in ["{}", "{\"phases\": {\"4\": {\"model\": \"a \\\"b\\\"\"}}}", "{\n\t\"version\": 1\n}"] {
        let new = renewed(text).unwrap();
        assert_eq!(toml(ForeignFormat::Iterate, &new), toml(ForeignFormat::Iterate, text), "{text}");
        assert_eq!(renewed(&new), None, "{text}");
    }
}

/// How it is said what to write instead.
const INSTEAD: [&str; 5] = ["expected ", "did you mean ", "the phases are ", "leave it out", "write it once"];

/// `testdata/config-foreign/invalid`: one mistake each.
#[test]
fn every_mistake_is_reported_in_the_words_of_its_file() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/config-foreign/invalid");
    let mut names: Vec<_> =
        fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert!(names.len() > 60, "{}", names.len());
    let mut out = String::new();
    for name in names {
        let text = fs::read_to_string(directory.join(&name)).unwrap();
        let format = ForeignFormat::detect(&name, &text).unwrap();
        let message = match translate(format, &name, &text) {
            Err(ConfigError::File { file, line, message }) => {
                assert!(file == name && line <= text.lines().count().max(1), "{file}:{line}");
                format!("{line}: {message}")
            }
            other => panic!("{name}: {other:?}"),
        };
        let unreadable = message.contains("this is not ");
        assert!(unreadable || INSTEAD.iter().any(|words| message.contains(words)), "{name}: {message}");
        assert_eq!(message.lines().count(), 1, "{message}");
        writeln!(out, "{name}:{message}").unwrap();
    }
    insta::assert_snapshot!(out);
}

#[test]
fn what_is_too_long_is_not_read() {
    let long = format!("{{ \"version\": 2 {} }}", " ".repeat(MAX_FILE_BYTES));
    let error = translate(ForeignFormat::Iterate, HERE, &long).unwrap_err();
    insta::assert_snapshot!(error, @".claude/iterate-config.local.json:1: the file has 1000017 bytes: expected at most 1000000");
    let keys = (0..100_000).fold(String::new(), |mut keys, number| {
        write!(keys, ",\n\"k{number}\": {number}").unwrap();
        keys
    });
    let error =
        translate(ForeignFormat::Iterate, HERE, &format!("{{ \"version\": 2{} }}", &keys[..900_000])).unwrap_err();
    assert!(error.to_string().starts_with(".claude/iterate-config.local.json:"), "{error}");
    for deep in ["[", "{\"a\":"] {
        let text = format!("{{ \"version\": 2, \"phases\": {}", deep.repeat(150_000));
        assert!(translate(ForeignFormat::Iterate, HERE, &text).is_err());
        assert!(translate(ForeignFormat::Gza, "gza.yaml", &text).is_err());
    }
}
