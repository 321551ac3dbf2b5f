//! `signoff init`: the files it writes, and what it detects in a project.

use std::fs;

use signoff_testkit::{ProgramOutput, TestEnv};

use crate::test_env;

/// Runs the command in a repository with only these agents on the PATH.
fn init(env: &TestEnv, agents: &[&str], arguments: &str) -> ProgramOutput {
    for agent in agents {
        env.write(&format!("../agents/{agent}"), "#!/bin/sh\n");
    }
    env.shell(&format!(
        "git init -q; mkdir -p ../agents; chmod +x ../agents/* 2>/dev/null; \
         signoff=$(command -v signoff); PATH=$PWD/../agents \"$signoff\" init {arguments}"
    ))
}

fn read(env: &TestEnv, name: &str) -> String {
    fs::read_to_string(env.work().join(name)).expect(name)
}

#[test]
fn a_new_project_gets_its_files() {
    let env = test_env();
    env.write("Cargo.toml", "[package]\n");
    insta::assert_snapshot!(init(&env, &["claude", "codex", "cargo"], ""), @"
    exit 0
    --- stdout
    wrote signoff.toml
    wrote .signoff/.gitignore
    wrote .signoff/signoff.schema.json
    agent claude: not logged in
    agent codex: not logged in
    check test: cargo test
    next: `signoff agents --check` checks them; `signoff config` shows every setting
    ");
    insta::assert_snapshot!(read(&env, "signoff.toml"), @r#"
    #:schema ./.signoff/signoff.schema.json

    # How signoff works in this repository. Missing keys use built-in defaults; `#` lines are examples. `signoff config`
    # shows every effective setting, and where it comes from.

    preset = "task"                      # how tasks are worked: task, slots, plan, loops, phases, or one of your own
    jobs = 4                             # maximum number of tasks in parallel
    # no_ask = true                      # a question stops its task instead of waiting for an answer
    # landing = "rebase"                 # commits land on top of the branch, without a merge commit

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

    # Which tasks are reviewed, unless the task sets it.
    [defaults]
    auto_review = true                   # every task; false: only those added with --auto-review

    # The gate: which reviewers must approve, and what happens otherwise.
    [gate]
    reviewers = ["spec", "code", "checks"] # all at once, on the same commit; checks: the commands below
    fail_on = "MEDIUM"                   # the lowest severity that must be fixed: LOW, MEDIUM, HIGH, NONE
    max_cycles = 3                       # maximum reviews (one less are fixes)
    on_unclear = ["retry", "ask"]        # an answer that cannot be read
    on_reviewer_failure = ["retry", "ask"]
    rereview = "scoped"                  # review the fix, then the whole change once; "full": the whole change each time
    max_same_finding = 3                 # stop after a finding was reported this often
    max_noop_fixes = 1                   # stop after this many fixes without changes
    # on_exhausted = "ask"               # after the last review: stop, ask, restart, proceed
    # review_timeout = "10m"

    # The same keys for one preset, and for one of its gates.
    # [presets.loops]
    # effort = "high"                    # low, medium, high, max

    # [presets.loops.gates.final_review]
    # max_fixes = 1

    # Checks: commands that judge the work by their exit code.
    [checks]
    test = "cargo test"

    # Limits: a task that reaches one pauses, and can continue with a higher one.
    [limits]
    silence = "10m"                      # stop an agent without output for this long
    # attempt = "60m"                    # maximum duration of one run of an agent
    # max_cost_usd = 20.0                # for each task
    # max_tokens = 1000000

    # [limits.run]                       # for all tasks of a run together
    # max_cost_usd = 100.0

    # Prices: dollars per million tokens, for models that report no cost and are missing from the built-in list.
    # [prices."mine:7b"]
    # input = 0.1
    # output = 0.4

    # Prompts: files that replace the built-in prompts, one for each role.
    # [prompts]
    # implement = "docs/how-we-work.md"

    # Worktrees: untracked files that every task needs.
    # [worktree]
    # copy = [".env"]

    # A workflow of your own, with the same keys as presets (`signoff workflow show task`).
    # [workflows.quick]
    # phases = [
    #   { name = "implement", kind = "agent" },
    #   { name = "look", kind = "gate", reviewers = ["code"], max_cycles = 1 },
    # ]
    "#);
    insta::assert_snapshot!(env.shell("signoff config | grep -v -e 'built in' -e 'preset task'"), @r#"
    exit 0
    --- stdout
    preset = "task"                                               # signoff.toml:6
    jobs = 4                                                      # signoff.toml:7
    agents.claude.kind = "claude"                                 # signoff.toml:13
    agents.codex.kind = "codex"                                   # signoff.toml:18
    roles.implement = "claude"                                    # signoff.toml:29
    reviewers.code.kind = "code"                                  # signoff.toml:38
    reviewers.code.agent = "codex"                                # signoff.toml:39
    reviewers.spec.kind = "spec"                                  # signoff.toml:34
    reviewers.spec.agent = "claude"                               # signoff.toml:35
    gate.reviewers = ["spec", "code", "checks"]                   # signoff.toml:49
    gate.fail_on = "MEDIUM"                                       # signoff.toml:50
    gate.max_cycles = 3                                           # signoff.toml:51
    gate.on_unclear = ["retry", "ask"]                            # signoff.toml:52
    gate.on_reviewer_failure = ["retry", "ask"]                   # signoff.toml:53
    gate.rereview = "scoped"                                      # signoff.toml:54
    gate.max_same_finding = 3                                     # signoff.toml:55
    gate.max_noop_fixes = 1                                       # signoff.toml:56
    defaults.auto_review = true                                   # signoff.toml:45
    limits.silence = "10m"                                        # signoff.toml:73
    checks.test = "cargo test"                                    # signoff.toml:69
    presets.task.gates.review.enabled = true                      # signoff.toml:45
    presets.task.gates.review.reviewers = ["spec", "code", "checks"]  # signoff.toml:49
    presets.task.gates.review.fail_on = "MEDIUM"                  # signoff.toml:50
    presets.task.gates.review.max_cycles = 3                      # signoff.toml:51
    presets.task.gates.review.on_unclear = ["retry", "ask"]       # signoff.toml:52
    presets.task.gates.review.on_reviewer_failure = ["retry", "ask"]  # signoff.toml:53
    presets.task.gates.review.rereview = "scoped"                 # signoff.toml:54
    presets.task.gates.review.max_same_finding = 3                # signoff.toml:55
    presets.task.gates.review.max_noop_fixes = 1                  # signoff.toml:56
    "#);
}

#[test]
fn the_programs_own_files_are_ignored_but_prompts_are_shared() {
    let env = test_env();
    init(&env, &["claude"], "");
    env.shell("mkdir -p .signoff/prompts/deep .signoff/reviews; touch .signoff/signoff.db .signoff/reviews/a.md .signoff/prompts/review.md .signoff/prompts/deep/x.md");
    insta::assert_snapshot!(env.shell("git status --short -uall"), @"
    exit 0
    --- stdout
    ?? .signoff/prompts/deep/x.md
    ?? .signoff/prompts/review.md
    ?? signoff.toml
    ");
}

#[test]
fn without_an_agent_it_prints_what_to_do() {
    let env = test_env();
    insta::assert_snapshot!(init(&env, &[], ""), @"
    exit 0
    --- stdout
    wrote signoff.toml
    wrote .signoff/.gitignore
    wrote .signoff/signoff.schema.json
    no usable agent on PATH (looked for claude, codex, gemini, opencode, qwen, copilot)
    next: install one and run `signoff init --force`, or describe yours in signoff.toml
    ");
    assert_eq!(env.run(&["config"]).code, Some(0));
    assert!(read(&env, "signoff.toml").contains("# [agents.mine]\n# kind = \"command\""));
}

#[test]
fn nothing_is_overwritten() {
    let env = test_env();
    env.write("signoff.toml", "jobs = 2\n");
    env.write(".signoff/.gitignore", "mine\n");
    insta::assert_snapshot!(init(&env, &["claude"], ""), @"
    exit 2
    --- stderr
    error: signoff.toml already exists
      --> signoff.toml
    hint: `signoff config` shows the settings in effect; `signoff init --force` writes a new one and keeps the old one beside it
    ");
    assert_eq!(
        (read(&env, "signoff.toml"), read(&env, ".signoff/.gitignore")),
        ("jobs = 2\n".to_owned(), "mine\n".to_owned())
    );
    insta::assert_snapshot!(init(&env, &["claude"], "--force"), @"
    exit 0
    --- stdout
    kept the old signoff.toml as signoff.toml.bak
    wrote signoff.toml
    wrote .signoff/signoff.schema.json
    kept the existing .signoff/.gitignore
    agent claude: not logged in
    next: `signoff agents --check` checks them; `signoff config` shows every setting
    ");
    assert_eq!(read(&env, "signoff.toml.bak"), "jobs = 2\n");
    let again = init(&env, &["claude"], "--force --json").json();
    assert_eq!(again["backup"], "signoff.toml.bak2");
    assert_eq!(read(&env, "signoff.toml.bak"), "jobs = 2\n");
}

#[test]
fn json_output_lists_files_and_checks() {
    let env = test_env();
    env.write("Makefile", "test: build\n\tgo test\nlint:=x\n");
    env.write("go.mod", "module x\n");
    insta::assert_snapshot!(init(&env, &["gemini", "make", "go"], "--json"), @r#"
    exit 0
    --- stdout
    {
      "version": 1,
      "written": [
        "signoff.toml",
        ".signoff/.gitignore",
        ".signoff/signoff.schema.json"
      ],
      "kept": [],
      "backup": null,
      "agents": [
        "gemini"
      ],
      "checks": [
        {
          "name": "test",
          "command": "make test"
        },
        {
          "name": "lint",
          "command": "go vet ./..."
        }
      ],
      "found": []
    }
    "#);
}

#[test]
fn the_checks_of_a_project_are_detected() {
    let found = |files: &[(&str, &str)]| {
        let env = test_env();
        for (name, text) in files {
            env.write(name, text);
        }
        let tools = ["make", "cargo", "npm", "pnpm", "pytest", "go"];
        let checks = init(&env, &tools, "--json").json()["checks"].clone();
        let line = |check: &serde_json::Value| {
            format!("{}: {}", check["name"].as_str().unwrap(), check["command"].as_str().unwrap())
        };
        checks.as_array().unwrap().iter().map(line).collect::<Vec<_>>().join("; ")
    };
    assert_eq!(found(&[]), "");
    assert_eq!(found(&[("Makefile", "lint :\n\tx\ntests:\n")]), "lint: make lint");
    assert_eq!(found(&[("Makefile", "all check: x\n\ttest: y\n")]), "check: make check");
    assert_eq!(found(&[("Makefile", "test:: x\ncheck: test\nlint ::= z\n")]), "test: make test");
    assert_eq!(found(&[("Makefile/x", "test:\n"), ("go.mod/x", "")]), "");
    assert_eq!(found(&[("Cargo.toml", "")]), "test: cargo test");
    assert_eq!(
        found(&[("package.json", r#"{"scripts":{"test":"vitest","lint":"eslint ."}}"#)]),
        "test: npm run test; lint: npm run lint"
    );
    assert_eq!(
        found(&[("package.json", r#"{"scripts":{"test":"x"}}"#), ("pnpm-lock.yaml", "")]),
        "test: pnpm run test"
    );
    assert_eq!(found(&[("package.json", r#"{"scripts":{"test":"echo \"Error: no test specified\" && exit 1"}}"#)]), "");
    assert_eq!(found(&[("package.json", "{ broken")]), "");
    assert_eq!(found(&[("pyproject.toml", "[tool.pytest.ini_options]\n")]), "test: pytest");
    for (file, text) in [
        ("setup.cfg", "[metadata]\n[tool:pytest]\n"),
        ("tox.ini", "[tox]\n[pytest]\n"),
        ("pytest.ini", ""),
        ("tests/test_a.py", ""),
        ("tests/a_test.py", ""),
        ("test/test_a.py", ""),
        ("test_a.py", ""),
    ] {
        assert_eq!(found(&[(file, text)]), "test: pytest", "{file}");
    }
    for file in ["tests/a.py", "latest_a.py", "src/deep/test_a.py", "test_a.py/x"] {
        assert_eq!(found(&[(file, "")]), "", "{file}");
    }
    assert_eq!(found(&[("go.mod", "")]), "test: go test ./...; lint: go vet ./...");
}

#[test]
fn every_tool_of_a_project_has_a_check_and_a_makefile_overrides_them() {
    let env = test_env();
    let tools = ["make", "cargo", "npm", "pytest", "go", "claude"];
    for (name, text) in [
        ("Cargo.toml", ""),
        ("package.json", r#"{"scripts":{"test":"x","lint":"y"}}"#),
        ("conftest.py", ""),
        ("go.mod", ""),
    ] {
        env.write(name, text);
    }
    insta::assert_snapshot!(init(&env, &tools, ""), @"
    exit 0
    --- stdout
    wrote signoff.toml
    wrote .signoff/.gitignore
    wrote .signoff/signoff.schema.json
    agent claude: not logged in
    check test: cargo test
    check test-npm: npm run test
    check lint: npm run lint
    check test-pytest: pytest
    check test-go: go test ./...
    check lint-go: go vet ./...
    next: `signoff agents --check` checks them; `signoff config` shows every setting
    ");
    let config = env.run(&["config"]).stdout;
    assert!(config.contains("test-pytest"), "{config}");
    env.write("Makefile", "check:\n\ttrue\n");
    insta::assert_snapshot!(init(&env, &tools, "--force"), @"
    exit 0
    --- stdout
    kept the old signoff.toml as signoff.toml.bak
    wrote signoff.toml
    wrote .signoff/signoff.schema.json
    kept the existing .signoff/.gitignore
    agent claude: not logged in
    check check: make check
    check lint: npm run lint
    check lint-go: go vet ./...
    next: `signoff agents --check` checks them; `signoff config` shows every setting
    ");
}

#[test]
fn a_tool_that_is_not_installed_adds_no_check() {
    let env = test_env();
    env.write("go.mod", "module x\n");
    env.write("Cargo.toml", "");
    insta::assert_snapshot!(init(&env, &["claude", "cargo"], ""), @"
    exit 0
    --- stdout
    wrote signoff.toml
    wrote .signoff/.gitignore
    wrote .signoff/signoff.schema.json
    agent claude: not logged in
    check test: cargo test
    no check: found go.mod, but `go` is not installed
    next: `signoff agents --check` checks them; `signoff config` shows every setting
    ");
}

#[test]
fn outside_a_repository_it_fails() {
    insta::assert_snapshot!(test_env().run(&["init"]), @"
    exit 2
    --- stderr
    error: this is not a git repository
    hint: run `git init` first
    ");
}

#[test]
fn in_a_subdirectory_it_prepares_the_root_of_the_repository() {
    let env = test_env();
    let messages =
        env.shell("git init -q; mkdir -p a/b; cd a/b; signoff init -q --json >/dev/null; ls -A; cd ../..; ls -A");
    insta::assert_snapshot!(messages, @"
    exit 0
    --- stdout
    .git
    .signoff
    a
    signoff.toml
    ");
}

/// The target of a link is not overwritten.
#[test]
fn a_link_in_place_of_the_schema_is_replaced() {
    let env = test_env();
    env.write("mine.json", "mine\n");
    env.shell("mkdir .signoff && ln -s ../mine.json .signoff/signoff.schema.json");
    assert_eq!(init(&env, &[], "--force").code, Some(0));
    assert_eq!(read(&env, "mine.json"), "mine\n");
    assert!(read(&env, ".signoff/signoff.schema.json").starts_with('{'));
}

/// Settings in another program's file are left out: `signoff.toml` would override them.
#[test]
fn settings_of_other_programs_files_are_not_overridden() {
    let env = test_env();
    env.write("gza.yaml", "defaults:\n  auto_review: false\n  max_review_cycles: 7\n");
    insta::assert_snapshot!(init(&env, &["claude"], ""), @"
    exit 0
    --- stdout
    wrote signoff.toml
    wrote .signoff/.gitignore
    wrote .signoff/signoff.schema.json
    agent claude: not logged in
    found gza.yaml: its settings apply too
    next: `signoff agents --check` checks them; `signoff config` shows every setting
    ");
    insta::assert_snapshot!(env.shell("grep -e auto_review -e '^# max_cycles' signoff.toml; signoff config | grep gza"), @"
    exit 0
    --- stdout
    # auto_review = true                 # set by gza.yaml:2; uncomment to override
    # max_cycles = 3                     # set by gza.yaml:3; uncomment to override
    defaults.auto_review = false                                  # gza.yaml:2
    defaults.max_review_cycles = 7                                # gza.yaml:3
    presets.task.gates.review.max_cycles = 7                      # gza.yaml:3
    ");
}
