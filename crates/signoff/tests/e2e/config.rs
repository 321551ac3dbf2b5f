//! `signoff config`: every setting with its origin, and errors with their position.

use crate::test_env;

#[test]
fn every_setting_is_shown_with_its_origin() {
    let env = test_env();
    env.write("signoff.toml", "jobs = 2\n\n[agents.claude]\nmodel = \"opus\"\n\n[gate]\nfail_on = \"HIGH\"\n");
    env.shell("git init -q; mkdir -p ~/.config/signoff below; echo 'sandbox = false' > ~/.config/signoff/config.toml");
    insta::assert_snapshot!(env.shell("cd below && SIGNOFF_PRESET=task SIGNOFF_TASK_ID=7 signoff config --show"), @r#"
    exit 0
    --- stdout
    preset = "task"                                               # SIGNOFF_PRESET
    jobs = 2                                                      # signoff.toml:1
    store = "sqlite"                                              # built in
    no_ask = false                                                # built in
    landing = "merge"                                             # built in
    sessions = "retry"                                            # built in
    sandbox = false                                               # ~/.config/signoff/config.toml:1
    sandbox_writers = true                                        # built in
    sandbox_write = ["caches"]                                    # built in
    sandbox_network = "open"                                      # built in
    agents.claude.model = "opus"                                  # signoff.toml:4
    agents.claude.args = []                                       # built in
    agents.claude.pass = []                                       # built in
    gate.fail_on = "HIGH"                                         # signoff.toml:7
    defaults.auto_review = true                                   # built in
    defaults.max_review_cycles = 3                                # built in
    limits.attempt = "1h"                                         # built in
    limits.silence = "10m"                                        # built in
    limits.grace = "5s"                                           # built in
    limits.backoff = "30s"                                        # built in
    limits.backoff_max = "15m"                                    # built in
    limits.max_rate_limits = 20                                   # built in
    worktree.copy = []                                            # built in
    worktree.directory = ".signoff/worktrees"                     # built in
    notify.done = []                                              # built in
    notify.stuck = ["bell"]                                       # built in
    notify.question = ["bell"]                                    # built in
    notify.budget = ["bell"]                                      # built in
    presets.task.gates.review.enabled = false                     # preset task
    presets.task.gates.review.reviewers = ["general"]             # preset task
    presets.task.gates.review.fail_on = "HIGH"                    # signoff.toml:7
    presets.task.gates.review.on_failure = "mini-loop"            # preset task
    presets.task.gates.review.max_cycles = 3                      # preset task
    presets.task.gates.review.on_exhausted = "stop"               # preset task
    presets.task.gates.review.exhausted_as = "attention"          # preset task
    presets.task.gates.review.on_unclear = ["retry", "request-changes"]  # preset task
    presets.task.gates.review.on_reviewer_failure = "fail"        # preset task
    presets.task.gates.review.on_fixer_failure = "fail"           # preset task
    presets.task.gates.review.on_implementer_failure = "fail"     # preset task
    presets.task.gates.review.on_discussion = "stop"              # preset task
    presets.task.gates.review.author_output = false               # preset task
    presets.task.gates.review.parallel_fixes = false              # preset task
    presets.task.gates.review.review_timeout = "10m"              # preset task
    presets.task.gates.review.fix_timeout = "30m"                 # preset task
    presets.task.gates.review.rereview = "full"                   # preset task
    presets.task.gates.review.depth = "standard"                  # preset task
    presets.task.gates.review.max_same_finding = 0                # preset task
    presets.task.gates.review.max_noop_fixes = 0                  # preset task
    "#);
}

#[test]
fn settings_can_be_read_by_programs() {
    let env = test_env();
    env.write("signoff.toml", "jobs = 2\n");
    let shown = env.run(&["config", "--json"]).json();
    assert_eq!(shown["version"], 1);
    let settings = shown["settings"].as_array().unwrap();
    let find = |key: &str| settings.iter().find(|row| row["key"] == key).unwrap();
    insta::assert_snapshot!(find("jobs"), @r#"{"key":"jobs","value":2,"origin":{"from":"repository","file":"signoff.toml","line":1}}"#);
    insta::assert_snapshot!(find("store"), @r#"{"key":"store","value":"sqlite","origin":{"from":"default"}}"#);
    insta::assert_snapshot!(find("presets.task.gates.review.fail_on"), @r#"{"key":"presets.task.gates.review.fail_on","value":"LOW","origin":{"from":"preset","name":"task"}}"#);
}

#[test]
fn the_persons_file_can_be_elsewhere() {
    let env = test_env();
    env.write("elsewhere/signoff/config.toml", "jobs = 9\n");
    let shown = env.shell("XDG_CONFIG_HOME=$PWD/elsewhere signoff config | grep ^jobs");
    insta::assert_snapshot!(shown, @"
    exit 0
    --- stdout
    jobs = 9                                                      # [ROOT]/work/elsewhere/signoff/config.toml:1
    ");
    let relative = env.shell("XDG_CONFIG_HOME=elsewhere signoff config | grep ^jobs");
    insta::assert_snapshot!(relative, @"
    exit 0
    --- stdout
    jobs = 4                                                      # built in
    ");
}

#[test]
fn a_mistake_is_wrong_usage_and_names_its_position() {
    let env = test_env();
    env.write("signoff.toml", "jobs = 2\n\n[gate]\nmax_cycels = 3\n");
    insta::assert_snapshot!(env.run(&["config"]), @"
    exit 2
    --- stderr
    error: unknown key `max_cycels` in a gate: did you mean `max_cycles`?
      --> signoff.toml:4
    hint: fix the file, then check it with `signoff config`
    ");
    env.write("signoff.toml", b"# caf\xe9\n");
    insta::assert_snapshot!(env.run(&["config"]), @"
    exit 2
    --- stderr
    error: signoff.toml is not UTF-8 text
      --> signoff.toml:1
    hint: save it as UTF-8
    ");
    env.write("signoff.toml", "jobs = 2\n");
    insta::assert_snapshot!(env.shell("SIGNOFF_JOBS=many signoff config"), @r#"
    exit 2
    --- stderr
    error: `jobs` is "many": expected a whole number from 1 to 1000
      --> SIGNOFF_JOBS
    hint: give SIGNOFF_JOBS another value, or leave it out
    "#);
    insta::assert_snapshot!(env.shell("rm signoff.toml; mkdir signoff.toml; signoff config"), @"
    exit 2
    --- stderr
    error: [ROOT]/work/signoff.toml is not a regular file
      --> [ROOT]/work/signoff.toml
    hint: replace it with a text file, or remove it
    ");
    insta::assert_snapshot!(
        env.shell("rmdir signoff.toml; mkdir -p ~/.config/signoff; echo 'job = 1' > ~/.config/signoff/config.toml; signoff config"),
        @"
    exit 2
    --- stderr
    error: unknown key `job` in the configuration: did you mean `jobs`?
      --> ~/.config/signoff/config.toml:1
    hint: fix the file, then check it with `signoff config`
    "
    );
}
