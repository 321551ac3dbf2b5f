//! The precedence of layers, and the origin of each value.

use std::fmt::Write;

use signoff_core::policy::TimeSpan;
use signoff_core::settings::{Flag, LandingMethod, Layer, Sandbox, Settings, read};

use crate::config::configured;

/// All settings that are not built in.
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

fn variables(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn without_a_file_the_defaults_apply() {
    let settings = read(&[], &[], &[]).unwrap();
    assert_eq!((settings.preset(), settings.jobs(), settings.check_store()), ("task", 4, Ok(())));
    assert_eq!((settings.no_ask(), settings.sandbox()), (false, Sandbox::On));
    assert_eq!(settings.landing(), LandingMethod::Merge);
    assert_eq!(settings.review_workspace(), None);
    let limits = settings.limits();
    assert_eq!((limits.attempt, limits.silence), (TimeSpan::minutes(60), TimeSpan::minutes(10)));
    assert_eq!((limits.grace.seconds, limits.task.max_cost_micro_usd), (5, None));
    assert_eq!(settings.worktree_directory(), ".signoff/worktrees");
}

#[test]
fn each_layer_wins_over_the_ones_before_it() {
    let person = Layer::person(
        "~/.config/signoff/config.toml",
        "jobs = 2\npreset = \"plan\"\nsandbox = false\nlanding = \"rebase\"\n",
    );
    let repository =
        Layer::repository("signoff.toml", "# ours\njobs = 3\npreset = \"loops\"\nstore = \"postgres://db/x\"\n");
    let environment =
        variables(&[("SIGNOFF_JOBS", "5"), ("SIGNOFF_NO_ASK", "1"), ("HOME", "/root"), ("SIGNOFF_STORE", "sqlite")]);
    let flags = [Flag { name: "--jobs", key: "jobs", value: "6".to_owned() }];
    let settings = read(&[person, repository], &environment, &flags).unwrap();
    let rows: Vec<_> = written(&settings).lines().map(str::to_owned).collect();
    insta::assert_snapshot!(rows.join("\n"), @r#"
    preset = "loops"  # signoff.toml:3
    jobs = 6  # --jobs
    store = "sqlite"  # SIGNOFF_STORE
    no_ask = true  # SIGNOFF_NO_ASK
    landing = "rebase"  # ~/.config/signoff/config.toml:4
    sandbox = false  # ~/.config/signoff/config.toml:3
    "#);
}

#[test]
fn tables_are_merged_key_by_key() {
    let person = Layer::person(
        "mine.toml",
        "\
[agents.claude]
model = \"opus\"
args = [\"--verbose\"]

[reviewers.code]
agent = \"claude\"

[gate]
max_cycles = 7
fail_on = \"HIGH\"

[checks]
lint = \"make lint\"
test = \"make test\"
",
    );
    let repository = Layer::repository(
        "signoff.toml",
        "\
[agents.claude]
model = \"sonnet\"
env = { KEY = \"secret\" }

[reviewers.code]
contract = \"xml\"

[gate]
max_fixes = 2

[checks]
lint = \"cargo clippy\"
",
    );
    let settings = read(&[person, repository], &[], &[]).unwrap();
    insta::assert_snapshot!(written(&settings), @r#"
    agents.claude.model = "sonnet"  # signoff.toml:2
    agents.claude.args = ["--verbose"]  # mine.toml:3
    agents.claude.env.KEY = "(set)"  # signoff.toml:3
    reviewers.code.agent = "claude"  # mine.toml:6
    reviewers.code.contract = "xml"  # signoff.toml:6
    gate.fail_on = "HIGH"  # mine.toml:10
    gate.max_fixes = 2  # signoff.toml:9
    checks.lint = "cargo clippy"  # signoff.toml:12
    checks.test = "make test"  # mine.toml:14
    presets.task.gates.review.fail_on = "HIGH"  # mine.toml:10
    presets.task.gates.review.max_fixes = 2  # signoff.toml:9
    "#);
    assert_eq!(settings.checks(), [("lint", "cargo clippy"), ("test", "make test")]);
    assert_eq!(settings.agent("claude").unwrap().env["KEY"], "secret");
}

#[test]
fn agent_variables_set_nothing() {
    let given: Vec<_> =
        signoff_core::settings::AGENT_VARIABLES.iter().map(|name| ((*name).to_owned(), "3".to_owned())).collect();
    let settings = read(&[], &given, &[]).unwrap();
    assert_eq!(written(&settings), "");
    let foreign = variables(&[("SIGNOFF_SOMETHING_OF_A_LATER_VERSION", "x"), ("JOBS", "7"), ("SIGNOFF_STORE", "")]);
    assert_eq!(written(&read(&[], &foreign, &[]).unwrap()), "");
}

#[test]
fn every_variable_reaches_its_setting() {
    let environment = variables(&[
        ("SIGNOFF_PRESET", "plan"),
        ("SIGNOFF_JOBS", "9"),
        ("SIGNOFF_STORE", "postgres://me:secret@db/signoff"),
        ("SIGNOFF_NO_ASK", "true"),
        ("SIGNOFF_LANDING", "rebase"),
        ("SIGNOFF_REVIEW_WORKSPACE", "copy"),
        ("SIGNOFF_SANDBOX", "0"),
    ]);
    insta::assert_snapshot!(written(&read(&[], &environment, &[]).unwrap()), @r#"
    preset = "plan"  # SIGNOFF_PRESET
    jobs = 9  # SIGNOFF_JOBS
    store = "postgres://me:…@db/signoff"  # SIGNOFF_STORE
    no_ask = true  # SIGNOFF_NO_ASK
    landing = "rebase"  # SIGNOFF_LANDING
    review_workspace = "copy"  # SIGNOFF_REVIEW_WORKSPACE
    sandbox = false  # SIGNOFF_SANDBOX
    "#);
}

#[test]
fn limits_become_caps() {
    let settings = configured(
        "[limits]\nmax_cost_usd = 0.5\nmax_minutes = 90\nsilence = \"90s\"\n[limits.run]\nmax_cost_usd = 20\nmax_tokens = 5_000_000\n",
    );
    let limits = settings.limits();
    assert_eq!(
        (limits.task.max_cost_micro_usd, limits.task.max_tokens, limits.task.max_minutes),
        (Some(500_000), None, Some(90))
    );
    assert_eq!((limits.run.max_cost_micro_usd, limits.run.max_tokens), (Some(20_000_000), Some(5_000_000)));
    assert_eq!(limits.silence.seconds, 90);
}

#[test]
fn a_file_saved_on_windows_is_read() {
    let settings = configured("\u{feff}jobs = 2\r\npreset = \"plan\"\r\n");
    insta::assert_snapshot!(written(&settings), @r#"
    preset = "plan"  # signoff.toml:2
    jobs = 2  # signoff.toml:1
    "#);
}

/// `signoff config` lists every gate of the preset in use, including defaults.
#[test]
fn the_gates_of_the_preset_in_use_are_listed() {
    let settings = configured(
        "[gate]\nfail_on = \"HIGH\"\nmax_cycles = \"unlimited\"\n[presets.task.gates.review]\ndepth = \"deep\"\n",
    );
    let rows = settings.origins();
    let shown: Vec<_> = rows
        .iter()
        .filter(|row| row.key.starts_with("presets."))
        .map(|row| format!("{} = {}  # {}", row.key, row.value, row.origin))
        .collect();
    insta::assert_snapshot!(shown.join("\n"), @r#"
    presets.task.gates.review.depth = "deep"  # signoff.toml:5
    presets.task.gates.review.enabled = false  # preset task
    presets.task.gates.review.reviewers = ["general"]  # preset task
    presets.task.gates.review.fail_on = "HIGH"  # signoff.toml:2
    presets.task.gates.review.on_failure = "mini-loop"  # preset task
    presets.task.gates.review.max_fixes = "unlimited"  # signoff.toml:3
    presets.task.gates.review.on_exhausted = "stop"  # preset task
    presets.task.gates.review.exhausted_as = "attention"  # preset task
    presets.task.gates.review.on_unclear = ["retry","request-changes"]  # preset task
    presets.task.gates.review.on_reviewer_failure = "fail"  # preset task
    presets.task.gates.review.on_fixer_failure = "fail"  # preset task
    presets.task.gates.review.on_implementer_failure = "fail"  # preset task
    presets.task.gates.review.on_discussion = "stop"  # preset task
    presets.task.gates.review.author_output = false  # preset task
    presets.task.gates.review.parallel_fixes = false  # preset task
    presets.task.gates.review.review_timeout = "10m"  # preset task
    presets.task.gates.review.fix_timeout = "30m"  # preset task
    presets.task.gates.review.rereview = "full"  # preset task
    presets.task.gates.review.max_same_finding = 0  # preset task
    presets.task.gates.review.max_noop_fixes = 0  # preset task
    "#);
}

#[test]
fn a_repository_does_not_loosen_the_sandbox() {
    let person = |text: &str| Layer::person("~/.config/signoff/config.toml", text);
    let loose = Layer::repository(
        "signoff.toml",
        "sandbox = false\nsandbox_writers = false\nsandbox_write = [\"/srv\", \"caches\"]\n",
    );
    let sandbox_rows = |layers: &[Layer], environment: &[(&str, &str)]| {
        let settings = read(layers, &variables(environment), &[]).unwrap();
        let rows = settings.origins().into_iter().filter(|row| row.key.starts_with("sandbox"));
        rows.map(|row| format!("{} = {}  # {}", row.key, row.value, row.origin)).collect::<Vec<_>>().join("\n")
    };
    let required = person("# mine\nsandbox = \"required\"\n");
    insta::assert_snapshot!(sandbox_rows(&[required.clone(), loose.clone()], &[]), @r#"
    sandbox = "required"  # ~/.config/signoff/config.toml:2
    sandbox_writers = true  # built in
    sandbox_write = ["caches"]  # built in
    sandbox_network = "open"  # built in
    "#);
    // The stricter value applies, whichever layer sets it.
    let strict = Layer::repository("signoff.toml", "sandbox = true\nsandbox_write = []\n");
    insta::assert_snapshot!(sandbox_rows(&[required.clone(), strict], &[]), @r#"
    sandbox = "required"  # ~/.config/signoff/config.toml:2
    sandbox_writers = true  # built in
    sandbox_write = []  # signoff.toml:2
    sandbox_network = "open"  # built in
    "#);
    // Of a longer list, only the allowed entries.
    let other = person("sandbox = \"required\"\nsandbox_write = [\"caches\", \"~/.sbt\"]\n");
    insta::assert_snapshot!(sandbox_rows(&[other, loose.clone()], &[]), @r#"
    sandbox = "required"  # ~/.config/signoff/config.toml:1
    sandbox_writers = true  # built in
    sandbox_write = ["caches"]  # signoff.toml:3
    sandbox_network = "open"  # built in
    "#);
    // The person may override it by variable or flag.
    let variables = [("SIGNOFF_SANDBOX", "false"), ("SIGNOFF_SANDBOX_WRITERS", "false")];
    insta::assert_snapshot!(sandbox_rows(&[required, loose.clone()], &variables), @r#"
    sandbox = false  # SIGNOFF_SANDBOX
    sandbox_writers = false  # SIGNOFF_SANDBOX_WRITERS
    sandbox_write = ["caches"]  # built in
    sandbox_network = "open"  # built in
    "#);
    insta::assert_snapshot!(sandbox_rows(&[person("sandbox = true\n"), loose.clone()], &[]), @r#"
    sandbox = true  # ~/.config/signoff/config.toml:1
    sandbox_writers = false  # signoff.toml:2
    sandbox_write = ["/srv","caches"]  # signoff.toml:3
    sandbox_network = "open"  # built in
    "#);
    // Without a setting of the person, the repository's applies.
    insta::assert_snapshot!(sandbox_rows(&[loose], &[]), @r#"
    sandbox = false  # signoff.toml:1
    sandbox_writers = false  # signoff.toml:2
    sandbox_write = ["/srv","caches"]  # signoff.toml:3
    sandbox_network = "open"  # built in
    "#);
}

/// A layer that sets the address of a channel sets all of it: secrets of another layer are not sent to it.
#[test]
fn a_channel_with_another_address_is_another_channel() {
    const KEY: &str = "tok-1a2b3c4d5e6f7a8b";
    let person = || {
        let text = format!(
            "[notify.channels.team]\nkind = \"webhook\"\nurl_env = \"TEAM_URL\"\nformat = \"slack\"\nheaders = {{ X-Token = \"{KEY}\" }}\n"
        );
        Layer::person("config.toml", text)
    };
    let over = |text: &str| {
        let text = format!("[notify.channels.team]\n{text}\n");
        read(&[person(), Layer::repository("signoff.toml", text)], &[], &[])
    };
    let shown = |text: &str| match over(text) {
        Ok(settings) => {
            let secrets = settings.channel_secrets(|_| None);
            assert!(secrets.contains(&KEY.to_owned()), "what the person wrote stays a secret: {secrets:?}");
            assert_eq!(settings.channel_variables().last(), Some(&"TEAM_URL"));
            written(&settings)
        }
        Err(error) => error.to_string(),
    };
    insta::assert_snapshot!(shown("kind = \"webhook\"\nurl = \"http://127.0.0.1:1/x\""), @r#"
    notify.channels.team.kind = "webhook"  # signoff.toml:2
    notify.channels.team.url = "http://127.0.0.1:1/…"  # signoff.toml:3
    "#);
    insta::assert_snapshot!(shown("kind = \"webhook\"\nurl_env = \"OTHER\""), @r#"
    notify.channels.team.kind = "webhook"  # signoff.toml:2
    notify.channels.team.url_env = "OTHER"  # signoff.toml:3
    "#);
    insta::assert_snapshot!(shown("kind = \"command\"\ncommand = [\"./tell.sh\"]"), @r#"
    notify.channels.team.kind = "command"  # signoff.toml:2
    notify.channels.team.command = ["./tell.sh"]  # signoff.toml:3
    "#);
    insta::assert_snapshot!(shown("url = \"http://127.0.0.1:1/x\""), @"signoff.toml:1: the channel `team` has no `kind`: expected bell, desktop, webhook or command");
    insta::assert_snapshot!(shown("headers = { X-More = \"1\" }"), @r#"
    notify.channels.team.kind = "webhook"  # config.toml:2
    notify.channels.team.url_env = "TEAM_URL"  # config.toml:3
    notify.channels.team.format = "slack"  # config.toml:4
    notify.channels.team.headers.X-More = "(set)"  # signoff.toml:2
    notify.channels.team.headers.X-Token = "(set)"  # config.toml:5
    "#);
}
