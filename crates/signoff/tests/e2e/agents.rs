//! `signoff agents`, and agents that cannot work: missing, outdated, not logged in, or with an unknown model.

mod unable;

use signoff_testkit::{ProgramOutput, TestEnv};

use crate::test_env;

/// Recorded output of real agents.
const RECORDINGS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../signoff-engine/testdata/agents");

/// Installs a program that prints its version and otherwise replays a recording of a real agent.
fn program(env: &TestEnv, name: &str, version: &str, recording: &str) {
    let script = format!(
        "#!/bin/sh\ncase \"$*\" in --version) echo '{version}'; echo asked >> \"${{0%/*}}/../asked\"; exit;; esac\n\
         cat > /dev/null\nit={RECORDINGS}/{name}/{recording}\n[ ! -f $it.stdout ] || cat $it.stdout\n\
         [ ! -f $it.stderr ] || cat $it.stderr >&2\n[ ! -f $it.code ] || read code < $it.code\nexit ${{code:-0}}\n"
    );
    env.write(&format!("../agents/{name}"), script);
}

/// Runs a script with only these programs on the PATH.
fn shell(env: &TestEnv, script: &str) -> ProgramOutput {
    let out = env.shell(&format!(
        "mkdir -p ../agents ../tmp; signoff=$(command -v signoff)\n\
         for tool in git cat sleep env sh mkdir chmod ls rm; do ln -sf \"$(command -v $tool)\" ../agents/$tool; done\n\
         for made in claude codex gemini opencode; do if [ -f ../agents/$made ]; then chmod +x ../agents/$made; fi; done\n\
         export PATH=\"$(cd ../agents && pwd)\" TMPDIR=\"$(cd ../tmp && pwd)\" SIGNOFF_TEST_SANDBOX=nobody\n\
         signoff() {{ \"$signoff\" \"$@\"; }}\n{script}"
    ));
    ProgramOutput { stdout: without_durations(&out.stdout), ..out }
}

/// Replaces durations, which differ from run to run.
fn without_durations(text: &str) -> String {
    let line = |line: &str| match line.split_once(" s, ") {
        Some((before, after)) => {
            let before = before.trim_end_matches(|char: char| char.is_ascii_digit() || char == '.');
            format!("{before}N s, {after}\n")
        }
        None => format!("{line}\n"),
    };
    text.lines().map(line).collect()
}

/// Creates a repository with this configuration.
fn configured(env: &TestEnv, settings: &str) {
    env.write("signoff.toml", settings);
    let made = shell(
        env,
        "git init -q -b main; git config user.name A; git config user.email a@example.com; \
         echo .signoff > .git/info/exclude; git add -A; git commit -qm Start",
    );
    assert_eq!(made.code, Some(0), "{made}");
}

const CLAUDE: &str = "[roles]\nimplement = \"claude\"\n\n[agents.claude]\nkind = \"claude\"\n";

#[test]
fn agents_on_the_path_are_listed_outside_of_a_repository_too() {
    let env = test_env();
    insta::assert_snapshot!(shell(&env, "signoff agents"), @"
    exit 0
    --- stdout
    no agent is configured or on PATH (looked for claude, codex, gemini, opencode, qwen, copilot)
    ✓ sandbox: reviewers: read-only; writers: own worktree only (Landlock, version 7); signoff reverts reviewers' changes
    ");
    program(&env, "claude", "2.1.325 (Claude Code)", "work");
    program(&env, "codex", "codex-cli 0.100.0", "work");
    env.write("../agents/gemini", "#!/bin/sh\necho env: node: not found >&2\nexit 127\n");
    env.write("../home/.codex/auth.json", "{}");
    insta::assert_snapshot!(shell(&env, "ANTHROPIC_API_KEY=k signoff agents; echo; ls ../tmp ../home"), @"
    exit 0
    --- stdout
    ✓ claude: 2.1.325, [ROOT]/agents/claude, logged in (key in ANTHROPIC_API_KEY), not configured
    ✗ codex: 0.100.0, [ROOT]/agents/codex, logged in (~/.codex), not configured
        version 0.100.0 is too old: it must be 0.122.0 or later
        hint: update it (`npm install -g @openai/codex@latest`, or with your package manager)
    ✗ gemini: [ROOT]/agents/gemini, not logged in, not configured
        it cannot be started: env: node: not found
        hint: check the output of `[ROOT]/agents/gemini --version`, or set [agents.gemini] command
    ✓ sandbox: reviewers: read-only; writers: own worktree only (Landlock, version 7); signoff reverts reviewers' changes

    ../home:

    ../tmp:
    ");
}

#[test]
fn configured_agents_are_listed_and_must_be_usable() {
    let env = test_env();
    program(&env, "claude", "2.1.325 (Claude Code)", "work");
    program(&env, "gemini", "who knows", "plain");
    let settings = "[agents.writer]\nkind = \"claude\"\nmodel = \"opus\"\n\n[agents.codex]\nkind = \"codex\"\n\n\
                    [agents.mine]\nkind = \"command\"\ncommand = [\"./mine.sh\"]\n\n[agents.checks]\nkind = \"checks\"\n";
    env.write("mine.sh", "#!/bin/sh\n");
    configured(&env, settings);
    insta::assert_snapshot!(shell(&env, "signoff agents"), @"
    exit 1
    --- stdout
    ✓ checks: part of signoff
    ✗ codex: not logged in
        program codex was not found
        hint: install it (`npm install -g @openai/codex`), or set [agents.codex] command in signoff.toml
    ✗ mine: kind command, [ROOT]/work/./mine.sh, login unknown
        ./mine.sh is not executable
        hint: run `chmod +x ./mine.sh`
    ! writer: kind claude, 2.1.325, [ROOT]/agents/claude, not logged in, model opus
    ! gemini: [ROOT]/agents/gemini, not logged in, not configured
        `--version` printed no version: who knows
    ✓ sandbox: reviewers: read-only; writers: own worktree only (Landlock, version 7); signoff reverts reviewers' changes
    ");
    insta::assert_snapshot!(shell(&env, "signoff agents writer"), @"
    exit 0
    --- stdout
    ! writer: kind claude, 2.1.325, [ROOT]/agents/claude, not logged in, model opus
    ✓ sandbox: reviewers: read-only; writers: own worktree only (Landlock, version 7); signoff reverts reviewers' changes
    ");
    insta::assert_snapshot!(shell(&env, "signoff agents write"), @"
    exit 2
    --- stderr
    error: there is no agent write
    hint: configured or installed: checks, codex, mine, writer, gemini
    ");
}

#[test]
fn a_check_reports_what_works_and_leaves_nothing_behind() {
    let env = test_env();
    program(&env, "claude", "2.1.325 (Claude Code)", "work");
    configured(&env, CLAUDE);
    let script = "signoff agents --check; echo exit $?; ls -a ../tmp; git status --short; ls .signoff 2> /dev/null || echo nothing";
    insta::assert_snapshot!(shell(&env, script), @"
    exit 0
    --- stdout
    ✓ claude: 2.1.325, [ROOT]/agents/claude, not logged in
        works: Done: wrote out.txt. (N s, 3300 tokens in, 180 out, $0.0126)
    ✓ sandbox: reviewers: read-only; writers: own worktree only (Landlock, version 7); signoff reverts reviewers' changes
    exit 0
    .
    ..
    nothing
    ");
    program(&env, "claude", "2.1.325 (Claude Code)", "no-login");
    insta::assert_snapshot!(shell(&env, "signoff agents --check"), @"
    exit 1
    --- stdout
    ✗ claude: 2.1.325, [ROOT]/agents/claude, not logged in
        does not work: not logged in: Not logged in · Please run /login (N s, 0 tokens in, 0 out)
        hint: log in with the agent itself, or give it its key; then `signoff agents --check claude`
    ✓ sandbox: reviewers: read-only; writers: own worktree only (Landlock, version 7); signoff reverts reviewers' changes
    ");
    program(&env, "claude", "2.1.325 (Claude Code)", "status-404");
    insta::assert_snapshot!(shell(&env, "signoff agents --check"), @"
    exit 1
    --- stdout
    ✗ claude: 2.1.325, [ROOT]/agents/claude, not logged in
        does not work: the model cannot be used: There's an issue with the selected model (claude-sonnet-4-5). It may not exist or you may not have access to it. Run --model to pick a different model. (N s, 0 tokens in, 0 out)
        hint: `[agents.claude] model` names the model
    ✓ sandbox: reviewers: read-only; writers: own worktree only (Landlock, version 7); signoff reverts reviewers' changes
    ");
    env.write("../agents/claude", "#!/bin/sh\ncase $1 in --version) echo 2.1.325; exit;; esac\nexec sleep 1000\n");
    insta::assert_snapshot!(shell(&env, "SIGNOFF_TEST_AGENT_CHECK_MS=200 signoff agents --check; ls ../tmp"), @"
    exit 0
    --- stdout
    ✗ claude: 2.1.325, [ROOT]/agents/claude, not logged in
        does not work: timed out after 200ms (N s, 0 tokens in, 0 out)
        hint: start `[ROOT]/agents/claude` by hand and send it a prompt, or read its log
    ✓ sandbox: reviewers: read-only; writers: own worktree only (Landlock, version 7); signoff reverts reviewers' changes
    ");
}

#[test]
fn an_interrupted_check_leaves_nothing_behind() {
    let env = test_env();
    env.write(
        "../agents/claude",
        "#!/bin/sh\ncase $1 in --version) echo 2.1.325; exit;; esac\necho $$ > \"${0%/*}/../begun\"\nexec sleep 1000\n",
    );
    configured(&env, CLAUDE);
    let interrupt = "mkfifo=$(PATH=/usr/bin:/bin command -v mkfifo); $mkfifo ../begun\n\
                     \"$signoff\" agents --check & own=$!\nread agent < ../begun\nkill -TERM $own; wait $own; echo exit $?\n\
                     kill -0 $agent 2> /dev/null && echo it lives; ls ../tmp";
    insta::assert_snapshot!(shell(&env, interrupt), @"
    exit 0
    --- stdout
    exit 130
    --- stderr
    error: interrupted
    ");
}

#[test]
fn checks_run_in_parallel_and_each_is_reported_when_it_is_done() {
    let env = test_env();
    program(&env, "claude", "2.1.325 (Claude Code)", "work");
    let meets = |kind: &str, version: &str, does: &str| {
        let script = format!(
            "#!/bin/sh\ncase $1 in --version) echo {version}; exit;; esac\ncat > /dev/null\n{does}\ncat {RECORDINGS}/{kind}/work.stdout\n"
        );
        env.write(&format!("../agents/{kind}"), script);
    };
    // Each waits for the other.
    meets("claude", "2.1.325", "echo x > \"${0%/*}/../there\"; read x < \"${0%/*}/../back\"");
    meets("codex", "0.166.0", "read x < \"${0%/*}/../there\"; echo x > \"${0%/*}/../back\"");
    let settings = "[agents.claude]\nkind = \"claude\"\n\n[agents.codex]\nkind = \"codex\"\nmodel = \"gpt-6-sol\"\n";
    configured(&env, settings);
    let fifos = "mkfifo=$(PATH=/usr/bin:/bin command -v mkfifo); $mkfifo ../there ../back ../out ../begun\n";
    insta::assert_snapshot!(shell(&env, &format!("{fifos}signoff agents --check")), @"
    exit 0
    --- stdout
    ✓ claude: 2.1.325, [ROOT]/agents/claude, not logged in
        works: Done: wrote out.txt. (N s, 3300 tokens in, 180 out, $0.0126)
    ✓ codex: 0.166.0, [ROOT]/agents/codex, not logged in, model gpt-6-sol
        works: Done: wrote out.txt. (N s, 3300 tokens in, 180 out, ~$0.0084)
    ✓ sandbox: reviewers: read-only; writers: own worktree only (Landlock, version 7); signoff reverts reviewers' changes
    ");
    // The first check has ended; the second has started and does not end.
    program(&env, "claude", "2.1.325 (Claude Code)", "work");
    meets("codex", "0.166.0", "echo x > \"${0%/*}/../begun\"; exec sleep 1000");
    let interrupt = "\"$signoff\" agents --check > ../out & own=$!\nexec 3< ../out\nread row <&3; echo \"$row\"\n\
                     read begun < ../begun\nkill -TERM $own; cat <&3; wait $own; echo exit $?; ls ../tmp";
    insta::assert_snapshot!(shell(&env, interrupt), @"
    exit 0
    --- stdout
    ✓ claude: 2.1.325, [ROOT]/agents/claude, not logged in
        works: Done: wrote out.txt. (N s, 3300 tokens in, 180 out, $0.0126)
    exit 130
    --- stderr
    error: interrupted
    ");
}

#[test]
fn without_configured_agents_all_installed_agents_are_checked() {
    let env = test_env();
    program(&env, "claude", "2.1.325 (Claude Code)", "work");
    program(&env, "codex", "codex-cli 0.166.0", "no-login");
    insta::assert_snapshot!(shell(&env, "signoff agents; echo exit $?; signoff agents --check"), @"
    exit 1
    --- stdout
    ! claude: 2.1.325, [ROOT]/agents/claude, not logged in, not configured
    ! codex: 0.166.0, [ROOT]/agents/codex, not logged in, not configured
    ✓ sandbox: reviewers: read-only; writers: own worktree only (Landlock, version 7); signoff reverts reviewers' changes
    exit 0
    ✓ claude: 2.1.325, [ROOT]/agents/claude, not logged in, not configured
        works: Done: wrote out.txt. (N s, 3300 tokens in, 180 out, $0.0126)
    ✗ codex: 0.166.0, [ROOT]/agents/codex, not logged in, not configured
        does not work: not logged in: Missing environment variable: `OPENAI_API_KEY`. (N s, 0 tokens in, 0 out)
        hint: log in with the agent itself, or give it its key; then `signoff agents --check codex`
    ✓ sandbox: reviewers: read-only; writers: own worktree only (Landlock, version 7); signoff reverts reviewers' changes
    ");
}

#[test]
fn an_agent_that_does_not_speak_the_protocol_is_reported() {
    let env = test_env();
    let settings = "[agents.echo]\nkind = \"acp\"\ncommand = [\"cat\"]\n\n[agents.short]\nkind = \"acp\"\n\
                    command = [\"short\"]\n\n[agents.words]\nkind = \"acp\"\ncommand = [\"words\"]\n";
    configured(&env, settings);
    env.write("../agents/short", "#!/bin/sh\n");
    env.write("../agents/words", "#!/bin/sh\necho Hello, what can I do for you?\n");
    insta::assert_snapshot!(shell(&env, "chmod +x ../agents/short ../agents/words; signoff agents --check"), @"
    exit 1
    --- stdout
    ✗ echo: kind acp, [ROOT]/agents/cat, login unknown
        does not work: it does not speak the Agent Client Protocol: it echoes its input (N s, 0 tokens in, 0 out)
        hint: set `[agents.echo] command` to the program and the arguments that enable the protocol
    ✗ short: kind acp, [ROOT]/agents/short, login unknown
        does not work: it does not speak the Agent Client Protocol: it printed nothing (N s, 0 tokens in, 0 out)
        hint: set `[agents.short] command` to the program and the arguments that enable the protocol
    ✗ words: kind acp, [ROOT]/agents/words, login unknown
        does not work: it does not speak the Agent Client Protocol: Hello, what can I do for you? (N s, 0 tokens in, 0 out)
        hint: set `[agents.words] command` to the program and the arguments that enable the protocol
    ✓ sandbox: reviewers: read-only; writers: own worktree only (Landlock, version 7); signoff reverts reviewers' changes
    ");
}

/// The check runs in an empty repository elsewhere, but uses the program of this checkout.
#[test]
fn a_program_of_the_repository_is_checked_whatever_its_kind() {
    let env = test_env();
    let settings = "[agents.acp]\nkind = \"acp\"\ncommand = [\"./tools/words\"]\n\n[agents.own]\nkind = \"command\"\n\
                    command = [\"./tools/words\"]\n";
    env.write("tools/words", "#!/bin/sh\necho Hello\n");
    configured(&env, settings);
    insta::assert_snapshot!(shell(&env, "chmod +x tools/words; signoff agents --check"), @"
    exit 1
    --- stdout
    ✗ acp: [ROOT]/work/./tools/words, login unknown
        does not work: it does not speak the Agent Client Protocol: Hello (N s, 0 tokens in, 0 out)
        hint: set `[agents.acp] command` to the program and the arguments that enable the protocol
    ✓ own: kind command, [ROOT]/work/./tools/words, login unknown
        works: Hello (N s, 0 tokens in, 0 out)
    ✓ sandbox: reviewers: read-only; writers: own worktree only (Landlock, version 7); signoff reverts reviewers' changes
    ");
}

/// A program of an npm package, which is run by `node`.
fn install_npm_package(env: &TestEnv, wants: &str) {
    let package = format!(r#"{{"version":"2.1.325","bin":{{"claude":"claude"}},"engines":{{"node":"{wants}"}}}}"#);
    env.write("../agents/package.json", package);
    env.write("../agents/claude", "#!/usr/bin/env node\nimport 'x';\n");
}

#[test]
fn a_script_whose_interpreter_is_missing_or_too_old_is_named_before_the_run() {
    let env = test_env();
    install_npm_package(&env, ">=20");
    configured(&env, CLAUDE);
    let script = "signoff agents; echo exit $?; signoff doctor > ../printed; echo exit $?\n\
                while read line; do case $line in *agents:*) echo \"$line\";; esac; done < ../printed\nsignoff work; echo exit $?";
    insta::assert_snapshot!(shell(&env, &format!("signoff add T > /dev/null; {script}")), @"
    exit 0
    --- stdout
    ✗ claude: [ROOT]/agents/claude, not logged in
        [ROOT]/agents/claude needs the interpreter node, which was not found
        hint: install node, or put it on PATH; or set [agents.claude] command
    ✓ sandbox: reviewers: read-only; writers: own worktree only (Landlock, version 7); signoff reverts reviewers' changes
    exit 1
    exit 1
    ✗ agents: agent claude: [ROOT]/agents/claude needs the interpreter node, which was not found; signoff.toml:5; hint: install node, or put it on PATH; or set [agents.claude] command
    exit 2
    --- stderr
    `signoff work` starts it
    error: agent claude: [ROOT]/agents/claude needs the interpreter node, which was not found
      --> signoff.toml:5
    hint: install node, or put it on PATH; or set [agents.claude] command
    ");
    env.write(
        "../agents/node",
        "#!/bin/sh\ncase $1 in --version) echo v18.19.1;; *) echo Node.js v18.19.1 >&2; exit 1;; esac\n",
    );
    insta::assert_snapshot!(shell(&env, &format!("chmod +x ../agents/node; {script}")), @"
    exit 0
    --- stdout
    ✗ claude: [ROOT]/agents/claude, not logged in
        it cannot be started: it needs Node.js 20.0.0 or later, and `node` is 18.19.1
        hint: check the output of `[ROOT]/agents/claude --version`, or set [agents.claude] command
    ✓ sandbox: reviewers: read-only; writers: own worktree only (Landlock, version 7); signoff reverts reviewers' changes
    exit 1
    exit 1
    ✗ agents: agent claude: it cannot be started: it needs Node.js 20.0.0 or later, and `node` is 18.19.1; signoff.toml:5; hint: check the output of `[ROOT]/agents/claude --version`, or set [agents.claude] command
    exit 2
    --- stderr
    error: agent claude: it cannot be started: it needs Node.js 20.0.0 or later, and `node` is 18.19.1
      --> signoff.toml:5
    hint: check the output of `[ROOT]/agents/claude --version`, or set [agents.claude] command
    ");
}

#[test]
fn an_agent_without_a_version_gets_a_warning_and_is_asked_only_once() {
    let env = test_env();
    env.write(
        "../agents/claude",
        "#!/bin/sh\ncase $1 in --version) echo asked >> \"${0%/*}/../asked\"; exit 1;; esac\n",
    );
    configured(&env, CLAUDE);
    let script =
        "signoff add T > /dev/null; ANTHROPIC_API_KEY=k signoff agents; signoff work > /dev/null; cat ../asked";
    insta::assert_snapshot!(shell(&env, script), @"
    exit 0
    --- stdout
    ! claude: [ROOT]/agents/claude, logged in (key in ANTHROPIC_API_KEY)
        `--version` printed no version: no output
    ✓ sandbox: reviewers: read-only; writers: own worktree only (Landlock, version 7); signoff reverts reviewers' changes
    asked
    --- stderr
    `signoff work` starts it
    warning: agent claude is probably not logged in; `signoff agents --check claude` checks it
    ");
}

#[test]
fn the_report_matches_its_schema() {
    let env = test_env();
    program(&env, "claude", "2.1.325 (Claude Code)", "work");
    program(&env, "codex", "codex-cli 0.100.0", "work");
    configured(&env, CLAUDE);
    let report = shell(&env, "signoff agents --check --json").json();
    let schema = include_str!("../../../../docs/schema/agents.schema.json");
    let schema = serde_json::from_str(schema).expect("a schema");
    jsonschema::validate(&schema, &report).unwrap_or_else(|error| panic!("{error}\n{report:#}"));
    assert_eq!((&report["ok"], &report["agents"][0]["check"]["works"]), (&true.into(), &true.into()));
    assert_eq!(report["agents"][0]["check"]["cost_is_estimated"], false);
    assert_eq!(report["agents"][1]["too_old"], true);
}

#[test]
fn init_writes_a_valid_configuration_that_uses_all_installed_agents() {
    let env = test_env();
    program(&env, "claude", "2.1.325 (Claude Code)", "work");
    program(&env, "codex", "codex-cli 0.166.0", "work");
    env.write("../home/.codex/auth.json", "{}");
    let script = "git init -q -b main; ANTHROPIC_API_KEY=k signoff init; signoff config > /dev/null; echo config $?\n\
                ANTHROPIC_API_KEY=k signoff agents --check; echo agents $?\n\
                signoff config | while read line; do case $line in roles.*|*.agent*) echo ${line%%#*};; esac; done";
    insta::assert_snapshot!(shell(&env, script), @r#"
    exit 0
    --- stdout
    wrote signoff.toml
    wrote .signoff/.gitignore
    wrote .signoff/signoff.schema.json
    agent claude: 2.1.325, logged in (key in ANTHROPIC_API_KEY)
    agent codex: 0.166.0, logged in (~/.codex)
    next: `signoff agents --check` checks them; `signoff config` shows every setting
    config 0
    ✓ claude: 2.1.325, [ROOT]/agents/claude, logged in (key in ANTHROPIC_API_KEY)
        works: Done: wrote out.txt. (N s, 3300 tokens in, 180 out, $0.0126)
    ✓ codex: 0.166.0, [ROOT]/agents/codex, logged in (~/.codex)
        works: Done: wrote out.txt. (N s, 3300 tokens in, 180 out)
    ✓ sandbox: reviewers: read-only; writers: own worktree only (Landlock, version 7); signoff reverts reviewers' changes
    agents 0
    roles.implement = "claude"
    reviewers.code.agent = "codex"
    reviewers.spec.agent = "claude"
    "#);
}

#[test]
fn without_a_login_init_uses_the_default_order_and_matching_examples() {
    let env = test_env();
    program(&env, "gemini", "0.61.0", "plain");
    program(&env, "opencode", "1.18.33", "plain");
    let script = "git init -q -b main; signoff init > /dev/null\n\
                while read line; do case $line in implement*|*model*=*) echo \"$line\";; esac; done < signoff.toml";
    insta::assert_snapshot!(shell(&env, script), @r#"
    exit 0
    --- stdout
    # model = "gemini-2.5-pro"           # the model to use
    implement = "gemini"
    # fix = { agent = "gemini", model = "gemini-2.5-flash" } # with a model of its own
    # model = "anthropic/claude-opus-5"  # another model than the agent's
    "#);
}

#[test]
fn an_agent_that_cannot_work_is_named_before_the_run() {
    let env = test_env();
    configured(&env, CLAUDE);
    let work = "signoff work; echo exit $?; signoff status";
    insta::assert_snapshot!(shell(&env, &format!("signoff add T; {work}")), @"
    exit 0
    --- stdout
    Added task #1: T
    exit 2
      · 1. implement T    pending
    --- stderr
    `signoff work` starts it
    error: agent claude: program claude was not found
      --> signoff.toml:5
    hint: install it (`npm install -g @anthropic-ai/claude-code`), or set [agents.claude] command in signoff.toml
    ");
    env.write("../agents/claude", "#!/bin/sh\necho env: node: not found >&2\nexit 127\n");
    insta::assert_snapshot!(shell(&env, work), @"
    exit 0
    --- stdout
    exit 2
      · 1. implement T    pending
    --- stderr
    error: agent claude: it cannot be started: env: node: not found
      --> signoff.toml:5
    hint: check the output of `[ROOT]/agents/claude --version`, or set [agents.claude] command
    ");
    program(&env, "claude", "2.0.0 (Claude Code)", "work");
    insta::assert_snapshot!(shell(&env, work), @"
    exit 0
    --- stdout
    exit 2
      · 1. implement T    pending
    --- stderr
    error: agent claude: version 2.0.0 is too old: it must be 2.0.44 or later
      --> signoff.toml:5
    hint: update it (`npm install -g @anthropic-ai/claude-code@latest`, or with your package manager)
    ");
    insta::assert_snapshot!(shell(&env, "chmod -x ../agents/claude; signoff work"), @"
    exit 2
    --- stderr
    error: agent claude: [ROOT]/agents/claude is not executable
      --> signoff.toml:5
    hint: run `chmod +x [ROOT]/agents/claude`
    ");
    // The version of an installed agent is asked for only once.
    program(&env, "claude", "2.1.325 (Claude Code)", "no-login");
    shell(&env, "rm ../asked; signoff work; signoff retry 1; signoff retry 1");
    assert_eq!(shell(&env, "cat ../asked").stdout, "asked\n");
}

/// The output for a task whose agent replays this recording.
fn failed(recording: &str) -> String {
    let env = test_env();
    program(&env, "claude", "2.1.325 (Claude Code)", recording);
    configured(&env, CLAUDE);
    let worked = shell(&env, "signoff add T > /dev/null; ANTHROPIC_API_KEY=k signoff work");
    let shown = shell(&env, "signoff show 1; ls .signoff/worktrees").stdout;
    let shown: Vec<&str> = shown.lines().filter(|line| line.contains("hint: ")).collect();
    assert_eq!(shell(&env, "ls .signoff/worktrees").stdout.lines().count(), 1);
    format!("{worked}\n{}", shown.join("\n"))
}

#[test]
fn an_agent_error_fails_the_attempt_with_its_message_and_a_hint() {
    insta::assert_snapshot!(failed("no-login"), @"
    exit 1
    --- stdout
    Running task #1: T
      Implementing...
      Implementation failed: not logged in: Not logged in · Please run /login
        hint: log in with the agent itself, or give it its key; then `signoff agents --check claude`
    ✗ Task #1 failed: the implementer failed (implementer_failed)
        Next: signoff show 1, then signoff retry 1
    --- stderr
    `signoff work` starts it

      a1  hint: log in with the agent itself, or give it its key; then `signoff agents --check claude`
    ");
    insta::assert_snapshot!(failed("status-404"), @"
    exit 1
    --- stdout
    Running task #1: T
      Implementing...
      Implementation failed: the model cannot be used: There's an issue with the selected model (claude-sonnet-4-5). It may not exist or you may not have access to it. Run --model to pick a different model.
        hint: `[agents.claude] model` names the model
    ✗ Task #1 failed: the implementer failed (implementer_failed)
        Next: signoff show 1, then signoff retry 1
    --- stderr
    `signoff work` starts it

      a1  hint: `[agents.claude] model` names the model
    ");
}

/// A team of one, whose reviewer reports with a tool.
const REVIEWED: &str = "[gate]\nreviewers = [\"code\"]\n\n[reviewers.code]\nkind = \"code\"\ncontract = \"tool\"\n\n";

#[test]
fn an_agent_that_does_not_reach_the_report_server_has_not_approved() {
    let env = test_env();
    let script = format!(
        "#!/bin/sh\ncase $1 in --version) echo 2.1.325; exit;; esac\ncat > /dev/null\n\
         case $SIGNOFF_ROLE in review) cat {RECORDINGS}/claude/reports-down.stdout;;\n\
         *) echo work > f.txt; cat {RECORDINGS}/claude/work.stdout;; esac\n"
    );
    env.write("../agents/claude", script);
    configured(&env, &format!("{REVIEWED}{CLAUDE}"));
    let work = "signoff add T --auto-review > /dev/null; ANTHROPIC_API_KEY=k signoff work --no-ask";
    insta::assert_snapshot!(shell(&env, work), @r#"
    exit 1
    --- stdout
    Running task #1: T
      [1/3] Implementing...
      [1/3] Implementation complete
      [1/3] Running review...
      [1/3] Review: INCONCLUSIVE - code: it could not reach the server for reports: Reporting. [no MCP tool submit_review was offered]
        hint: the agent must reach 127.0.0.1; with `contract = "markdown"` it needs no server
    ✗ Task #1 failed: a reviewer or check failed (reviewer_failed)
        Next: signoff show 1, then signoff retry 1
    --- stderr
    `signoff work` starts it
    "#);
    assert_eq!(shell(&env, "cat .signoff/worktrees/*/f.txt").stdout, "work\n");
}

#[test]
fn a_reviewer_that_must_report_with_a_tool_needs_a_server() {
    let env = test_env();
    program(&env, "claude", "2.1.325 (Claude Code)", "work");
    configured(&env, &format!("{REVIEWED}{CLAUDE}"));
    let work = "signoff add T --auto-review > /dev/null; SIGNOFF_TEST_LOOPBACK=192.0.2.1 signoff work";
    insta::assert_snapshot!(shell(&env, work), @r#"
    exit 2
    --- stderr
    `signoff work` starts it
    error: reviewer code reports with a tool, but the report server cannot start: no port on 127.0.0.1 is available: Cannot assign requested address (os error 99)
    hint: enable the loopback interface, or set [reviewers.code] contract = "markdown"
    "#);
}
