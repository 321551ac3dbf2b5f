//! Edits of single keys of a file: the new value is read back, and the rest of the file stays the same.

use proptest::prelude::*;
use signoff_core::settings::edit::{self, EditedFile, KeyChange};
use signoff_core::settings::{self, Layer, Settings};

fn set(text: &str, words: &[&str]) -> EditedFile {
    let changes: Vec<_> = words.iter().flat_map(|words| KeyChange::parse(words).unwrap()).collect();
    edit::set("signoff.toml", text, &changes).unwrap()
}

fn described(edited: &EditedFile) -> String {
    let word = |value: &Option<String>| value.clone().unwrap_or_else(|| "nothing".to_owned());
    let line =
        |changed: &edit::ChangedKey| format!("{}: {} → {}\n", changed.key, word(&changed.old), word(&changed.new));
    format!("{}---\n{}", edited.text, edited.changed.iter().map(line).collect::<String>())
}

#[test]
fn a_phase_is_edited_under_the_name_that_the_file_uses() {
    let words = ["presets.phases.phase.code_review.model=sonnet", "presets.phases.phase.plan.model=opus"];
    insta::assert_snapshot!(described(&set("[presets.phases.phase.5]\nmodel = \"haiku\"\n", &words)), @r#"
    [presets.phases.phase.5]
    model = "sonnet"

    [presets.phases.phase.plan]
    model = "opus"
    ---
    presets.phases.phase.5.model: "haiku" → "sonnet"
    presets.phases.phase.plan.model: nothing → "opus"
    "#);
    let words = ["phases.3.model=sonnet"];
    insta::assert_snapshot!(described(&set("presets.phases.phase.plan_review = { timeout = \"5m\" }\n", &words)), @r#"
    presets.phases.phase.plan_review = { timeout = "5m", model = "sonnet" }
    ---
    presets.phases.phase.plan_review.model: nothing → "sonnet"
    "#);
}

#[test]
fn variables_of_agents_are_hidden_in_every_form() {
    let words = [
        r#"agents.d={kind="command",command=["x"],env={TOKEN="hunter7"}}"#,
        r#"agents.e.env={TOKEN="hunter7",OTHER="hunter7"}"#,
        r#"agents.f.env.TOKEN=hunter7"#,
    ];
    let edited = set("", &words);
    assert_eq!(edited.text.matches("hunter7").count(), 4, "{}", edited.text);
    insta::assert_snapshot!(described(&edited).split("---").last().unwrap().trim(), @r#"
    agents.d: nothing → {kind="command",command=["x"],env={TOKEN="(hidden)"}}
    agents.e.env: nothing → (hidden)
    agents.f.env.TOKEN: nothing → (hidden)
    "#);
    let whole = set("", &[r#"agents={d={env={TOKEN="hunter7"}}}"#]);
    insta::assert_snapshot!(described(&whole).split("---").last().unwrap().trim(), @r#"agents: nothing → {d={env={TOKEN="(hidden)"}}}"#);
    let again = described(&set(&whole.text, &[r#"agents={d={env={TOKEN="hunter8"}}}"#]));
    assert!(!again.split("---").last().unwrap().contains("hunter"), "{again}");
}

fn read(text: &str) -> Settings {
    settings::read(&[Layer::repository("signoff.toml", text)], &[], &[]).unwrap()
}

const FILE: &str = r#"# Our project.
# Ask Ann before changing anything.

jobs   = 2     # two are enough

[agents.claude]
model = "opus"
# args = ["--fast"]

# How strict we are.
[gate]
# three rounds
max_cycles = 3 # not more
fail_on = 'HIGH'

# The end.
"#;

#[test]
fn a_value_is_edited_in_place_and_its_comments_stay() {
    insta::assert_snapshot!(described(&set(FILE, &["jobs=8", "gate.fail_on=LOW"])), @r#"
    # Our project.
    # Ask Ann before changing anything.

    jobs   = 8     # two are enough

    [agents.claude]
    model = "opus"
    # args = ["--fast"]

    # How strict we are.
    [gate]
    # three rounds
    max_cycles = 3 # not more
    fail_on = "LOW"

    # The end.
    ---
    jobs: 2 → 8
    gate.fail_on: 'HIGH' → "LOW"
    "#);
}

#[test]
fn setting_one_bound_removes_the_other() {
    insta::assert_snapshot!(described(&set(FILE, &["gate.max_fixes=5"])), @r#"
    # Our project.
    # Ask Ann before changing anything.

    jobs   = 2     # two are enough

    [agents.claude]
    model = "opus"
    # args = ["--fast"]

    # How strict we are.
    [gate]
    fail_on = 'HIGH'
    # three rounds
    max_fixes = 5 # not more

    # The end.
    ---
    gate.max_cycles: 3 → nothing
    gate.max_fixes: nothing → 5
    "#);
}

#[test]
fn a_new_table_is_appended_and_comments_stay() {
    let words = ["presets.phases.gates.code_review.max_fixes=5", "presets.phases.gates.test.max_fixes=1"];
    insta::assert_snapshot!(described(&set(FILE, &words)), @r#"
    # Our project.
    # Ask Ann before changing anything.

    jobs   = 2     # two are enough

    [agents.claude]
    model = "opus"
    # args = ["--fast"]

    # How strict we are.
    [gate]
    # three rounds
    max_cycles = 3 # not more
    fail_on = 'HIGH'

    # The end.

    [presets.phases.gates.code_review]
    max_fixes = 5

    [presets.phases.gates.test]
    max_fixes = 1
    ---
    presets.phases.gates.code_review.max_fixes: nothing → 5
    presets.phases.gates.test.max_fixes: nothing → 1
    "#);
}

#[test]
fn a_new_table_follows_its_siblings() {
    let file = "[presets.phases]\nmax_passes = 3\n# max_attempts = 9\n\n# What we run.\n[checks]\ntest = \"make\"\n";
    insta::assert_snapshot!(described(&set(file, &["presets.phases.gates.test.max_fixes=1"])), @r#"
    [presets.phases]
    max_passes = 3
    # max_attempts = 9

    [presets.phases.gates.test]
    max_fixes = 1

    # What we run.
    [checks]
    test = "make"
    ---
    presets.phases.gates.test.max_fixes: nothing → 1
    "#);
}

#[test]
fn the_first_key_follows_the_file_comment() {
    let file = "# Our project.\n\n# Who works.\n[agents.claude]\n";
    insta::assert_snapshot!(described(&set(file, &["jobs=8", "preset=phases"])), @r#"
    # Our project.

    jobs = 8
    preset = "phases"

    # Who works.
    [agents.claude]
    ---
    jobs: nothing → 8
    preset: nothing → "phases"
    "#);
    insta::assert_snapshot!(described(&set("# Our project.\n", &["jobs=8"])), @"
    # Our project.

    jobs = 8
    ---
    jobs: nothing → 8
    ");
    insta::assert_snapshot!(described(&set("", &["agents.mine.command=[\"./a\", 'b']", "agents.mine.kind=command"])), @r#"
    [agents.mine]
    command = ["./a", 'b']
    kind = "command"
    ---
    agents.mine.command: nothing → ["./a", 'b']
    agents.mine.kind: nothing → "command"
    "#);
}

#[test]
fn dotted_keys_inline_tables_and_quoted_names_are_edited_in_place() {
    let file =
        "agents.claude.model = \"opus\"\nlimits = { attempt = \"30m\" } # enough\n[checks]\n\"a.b\" = \"make\"\n";
    let words =
        ["agents.claude.timeout=5m", "limits.silence=1m", "checks.\"a.b\"=make test", "limits.run.max_tokens=5"];
    insta::assert_snapshot!(described(&set(file, &words)), @r#"
    agents.claude.model = "opus"
    agents.claude.timeout = "5m"
    limits = { attempt = "30m", silence = "1m", run = { max_tokens = 5 } } # enough
    [checks]
    "a.b" = "make test"
    ---
    agents.claude.timeout: nothing → "5m"
    limits.silence: nothing → "1m"
    checks."a.b": "make" → "make test"
    limits.run.max_tokens: nothing → 5
    "#);
}

#[test]
fn an_equal_value_is_no_change() {
    let edited = set(FILE, &["jobs=2"]);
    assert_eq!((edited.text.as_str(), edited.changed.len()), (FILE, 0));
}

#[test]
fn line_endings_and_byte_order_mark_stay() {
    let edited = set("\u{feff}# ours\r\njobs = 2\r\n", &["jobs=3", "gate.max_cycles=2"]);
    assert_eq!(edited.text, "\u{feff}# ours\r\njobs = 3\r\n\r\n[gate]\r\nmax_cycles = 2\r\n");
}

#[test]
fn removing_a_table_keeps_the_rest() {
    let file = "jobs = 2\n\n# about presets\n[presets.loops]\neffort = \"low\"\n# effort = \"high\"\n\n# ours\n[presets.phases]\n\
                max_passes = 3\n[presets.phases.gates.test]\nmax_fixes = 2\n\n# What we run.\n[checks]\ntest = \"make\"\n";
    insta::assert_snapshot!(described(&edit::remove("signoff.toml", file, &["presets", "phases"]).unwrap()), @r#"
    jobs = 2

    # about presets
    [presets.loops]
    effort = "low"
    # effort = "high"

    # What we run.
    [checks]
    test = "make"
    ---
    presets.phases.max_passes: 3 → nothing
    presets.phases.gates.test.max_fixes: 2 → nothing
    "#);
    let inline = "presets = { phases = { max_passes = 3 }, loops = { effort = \"low\" } }\n";
    insta::assert_snapshot!(described(&edit::remove("signoff.toml", inline, &["presets", "phases"]).unwrap()), @r#"
    presets = { loops = { effort = "low" } }
    ---
    presets.phases.max_passes: 3 → nothing
    "#);
    assert!(edit::remove("signoff.toml", FILE, &["presets", "phases"]).unwrap().changed.is_empty());
}

#[test]
fn invalid_assignments_are_refused() {
    let typed = |words: &str| KeyChange::parse(words).unwrap_err();
    insta::assert_snapshot!(typed("jobs"), @"there is no `=` in `jobs`: expected KEY=VALUE, for example jobs=8");
    insta::assert_snapshot!(typed("a..b=3"), @"`a..b` is not a key: write it as in the file, with dots between its tables");
    insta::assert_snapshot!(typed("=3"), @"`` is not a key: write it as in the file, with dots between its tables");
    insta::assert_snapshot!(typed("agents.mine.command=[\"./a\""), @r#"`["./a"` is not TOML: a quote or a bracket is missing"#);
    let refused =
        |file: &str, words: &str| edit::set("signoff.toml", file, &KeyChange::parse(words).unwrap()).unwrap_err();
    insta::assert_snapshot!(refused(FILE, "gate=3"), @"gate: `gate` is a table: set one of its keys");
    insta::assert_snapshot!(refused(FILE, "jobs.many=3"), @"jobs.many: `jobs` is not a table here: change it in the file");
    insta::assert_snapshot!(refused("[[a]]\nb = 1\n", "a.b=3"), @"a.b: `a` is not a table here: change it in the file");
    insta::assert_snapshot!(refused("jobs = \n", "jobs=3"), @r#"signoff.toml:1: this is not TOML: texts must be quoted; expected lines such as jobs = 4, preset = "task" or [gate]"#);
}

#[test]
fn key_at_finds_the_key_of_a_line() {
    let edited = set("jobs = 2\n", &["gate.max_cycles=x", "checks.test=make"]);
    let keys: Vec<_> = (1..=7).map(|line| edited.key_at(line).unwrap_or_default()).collect();
    assert_eq!(keys, ["", "", "gate.max_cycles", "gate.max_cycles", "", "checks.test", "checks.test"]);
}

/// Keys with valid values, and the resulting rows.
fn changes() -> impl Strategy<Value = Vec<(&'static str, String)>> {
    let one = prop_oneof![
        (1..1000u32).prop_map(|jobs| ("jobs", jobs.to_string())),
        any::<bool>().prop_map(|switch| ("sandbox", switch.to_string())),
        (0..50u32).prop_map(|fixes| ("presets.phases.gates.code_review.max_fixes", fixes.to_string())),
        (1..50u32).prop_map(|cycles| ("presets.phases.gates.test.max_cycles", cycles.to_string())),
        prop_oneof![Just("LOW"), Just("NONE")]
            .prop_map(|bar| ("presets.phases.gates.plan_review.fail_on", bar.to_owned())),
        "[a-z ]{1,9}x".prop_map(|command| ("checks.test", command.trim().to_owned())),
        "[a-z0-9-]{0,9}x".prop_map(|model| ("agents.claude.model", model)),
    ];
    proptest::collection::vec(one, 1..6)
}

proptest! {
    #[test]
    fn set_values_are_read_back_and_comments_stay(changes in changes(), file in 0..4usize) {
        let file = ["", "# only this\n", FILE, "agents.claude.model = \"a\" # b\n[checks]\n# c\ntest = \"d\"\n"][file];
        let words: Vec<_> = changes.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let edited = set(file, &words.iter().map(String::as_str).collect::<Vec<_>>());
        let rows = read(&edited.text).origins();
        for (index, (key, value)) in changes.iter().enumerate() {
            if changes[index + 1..].iter().any(|(later, _)| later == key) {
                continue;
            }
            let row = rows.iter().find(|row| row.key == *key).unwrap();
            prop_assert_eq!(row.text().trim_matches('"').to_owned(), value.clone(), "{}", edited.text);
        }
        for comment in file.lines().filter_map(|line| line.split_once('#').map(|(_, comment)| comment)) {
            prop_assert!(edited.text.contains(&format!("#{comment}")), "{}", edited.text);
        }
    }

    #[test]
    fn setting_the_same_again_changes_nothing(changes in changes()) {
        let words: Vec<_> = changes.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let words: Vec<_> = words.iter().map(String::as_str).collect();
        let once = set(FILE, &words);
        let last: Vec<_> = words.iter().enumerate().filter(|(index, word)| {
            let key = word.split('=').next();
            !words[index + 1..].iter().any(|later| later.split('=').next() == key)
        }).map(|(_, word)| *word).collect();
        let again = set(&once.text, &last);
        prop_assert_eq!(&again.text, &once.text);
        prop_assert!(again.changed.is_empty());
    }
}
