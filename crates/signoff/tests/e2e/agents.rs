//! `signoff agents`, and agents that cannot do their work: missing, too old, not logged in, with a model that is not there.

use signoff_testkit::{Output, TestEnv};

use crate::test_env;

/// What real agents said.
const SAID: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../signoff-engine/testdata/agents");

/// A program that tells its version, and says what a real one said to whatever it is asked.
fn program(env: &TestEnv, name: &str, version: &str, said: &str) {
    let code = if said.is_empty() { String::new() } else { format!("cat {SAID}/{name}/{said}.stdout\n") };
    let script = format!(
        "#!/bin/sh\ncase \"$*\" in --version) echo '{version}'; echo asked >> \"${{0%/*}}/../asked\"; exit;; esac\n\
         cat > /dev/null\n{code}read code < {SAID}/{name}/{said}.code; exit ${{code:-0}}\n"
    );
    env.write(&format!("../agents/{name}"), script);
}

/// Runs a script where only these programs can be found.
fn shell(env: &TestEnv, script: &str) -> Output {
    let out = env.shell(&format!(
        "mkdir -p ../agents ../tmp; signoff=$(command -v signoff)\n\
         for tool in git cat sleep env sh mkdir chmod ls rm; do ln -sf \"$(command -v $tool)\" ../agents/$tool; done\n\
         for made in claude codex gemini; do if [ -f ../agents/$made ]; then chmod +x ../agents/$made; fi; done\n\
         export PATH=\"$(cd ../agents && pwd)\" TMPDIR=\"$(cd ../tmp && pwd)\" SIGNOFF_TEST_HOLD=nobody\n\
         signoff() {{ \"$signoff\" \"$@\"; }}\n{script}"
    ));
    Output { stdout: timeless(&out.stdout), ..out }
}

/// How long something took is never the same.
fn timeless(text: &str) -> String {
    let line = |line: &str| match line.split_once(" s, ") {
        Some((before, after)) => {
            let before = before.trim_end_matches(|char: char| char.is_ascii_digit() || char == '.');
            format!("{before}N s, {after}\n")
        }
        None => format!("{line}\n"),
    };
    text.lines().map(line).collect()
}

/// A repository with a file of settings.
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
fn what_is_on_the_path_is_told_outside_of_a_repository_too() {
    let env = test_env();
    insta::assert_snapshot!(shell(&env, "signoff agents"), @"");
    program(&env, "claude", "2.1.325 (Claude Code)", "work");
    program(&env, "codex", "codex-cli 0.100.0", "work");
    env.write("../agents/gemini", "#!/usr/bin/env nosuchprogram\n");
    env.write("../home/.codex/auth.json", "{}");
    insta::assert_snapshot!(shell(&env, "ANTHROPIC_API_KEY=k signoff agents; echo; ls ../tmp ../home"), @"");
}

#[test]
fn what_is_configured_is_told_and_must_be_usable() {
    let env = test_env();
    program(&env, "claude", "2.1.325 (Claude Code)", "work");
    program(&env, "gemini", "who knows", "plain");
    let settings = "[agents.writer]\nkind = \"claude\"\nmodel = \"opus\"\n\n[agents.codex]\nkind = \"codex\"\n\n\
                    [agents.mine]\nkind = \"command\"\ncommand = [\"./mine.sh\"]\n\n[agents.checks]\nkind = \"checks\"\n";
    env.write("mine.sh", "#!/bin/sh\n");
    configured(&env, settings);
    insta::assert_snapshot!(shell(&env, "signoff agents"), @"");
    insta::assert_snapshot!(shell(&env, "signoff agents writer"), @"");
    insta::assert_snapshot!(shell(&env, "signoff agents write"), @"");
}

#[test]
fn a_trial_tells_what_works_and_leaves_nothing_behind() {
    let env = test_env();
    program(&env, "claude", "2.1.325 (Claude Code)", "work");
    configured(&env, CLAUDE);
    let look = "signoff agents --check; echo exit $?; ls -a ../tmp; git status --short; ls -a .signoff 2>&1";
    insta::assert_snapshot!(shell(&env, look), @"");
    program(&env, "claude", "2.1.325 (Claude Code)", "no-login");
    insta::assert_snapshot!(shell(&env, "signoff agents --check"), @"");
    program(&env, "claude", "2.1.325 (Claude Code)", "status-404");
    insta::assert_snapshot!(shell(&env, "signoff agents --check"), @"");
    env.write(
        "../agents/claude",
        "#!/bin/sh\ncase $1 in --version) echo 2.1.325; exit;; esac\nexec sleep 1000\n",
    );
    insta::assert_snapshot!(shell(&env, "SIGNOFF_TEST_TRIAL_MS=200 signoff agents --check; ls ../tmp"), @"");
}

#[test]
fn a_trial_that_is_interrupted_leaves_nothing_behind() {
    let env = test_env();
    env.write(
        "../agents/claude",
        "#!/bin/sh\ncase $1 in --version) echo 2.1.325; exit;; esac\necho $$ > \"${0%/*}/../begun\"\nexec sleep 1000\n",
    );
    configured(&env, CLAUDE);
    let interrupt = "mkfifo=$(PATH=/usr/bin:/bin command -v mkfifo); $mkfifo ../begun\n\
                     \"$signoff\" agents --check & own=$!\nread agent < ../begun\nkill -TERM $own; wait $own; echo exit $?\n\
                     kill -0 $agent 2> /dev/null && echo it lives; ls ../tmp";
    insta::assert_snapshot!(shell(&env, interrupt), @"");
}

#[test]
fn the_report_is_as_its_schema_says() {
    let env = test_env();
    program(&env, "claude", "2.1.325 (Claude Code)", "work");
    program(&env, "codex", "codex-cli 0.100.0", "work");
    configured(&env, CLAUDE);
    let report = shell(&env, "signoff agents --check --json").json();
    let schema = include_str!("../../../../docs/schema/agents.schema.json");
    let schema = serde_json::from_str(schema).expect("a schema");
    jsonschema::validate(&schema, &report).unwrap_or_else(|error| panic!("{error}\n{report:#}"));
    assert_eq!((&report["ok"], &report["agents"][0]["check"]["works"]), (&true.into(), &true.into()));
    assert_eq!(report["agents"][1]["too_old"], true);
}

#[test]
fn an_agent_that_cannot_work_is_named_before_the_run() {
    let env = test_env();
    configured(&env, CLAUDE);
    let work = "signoff work; echo exit $?; signoff status";
    insta::assert_snapshot!(shell(&env, &format!("signoff add T; {work}")), @"");
    env.write("../agents/claude", "#!/usr/bin/env nosuchprogram\n");
    insta::assert_snapshot!(shell(&env, work), @"");
    program(&env, "claude", "2.0.0 (Claude Code)", "work");
    insta::assert_snapshot!(shell(&env, work), @"");
    insta::assert_snapshot!(shell(&env, "chmod -x ../agents/claude; signoff work"), @"");
    // Once it is there, it is asked no more.
    program(&env, "claude", "2.1.325 (Claude Code)", "no-login");
    shell(&env, "rm ../asked; signoff work; signoff retry 1; signoff retry 1");
    assert_eq!(shell(&env, "cat ../asked").stdout, "asked\n");
}

/// What is told of a task whose agent says this.
fn failed(said: &str) -> String {
    let env = test_env();
    program(&env, "claude", "2.1.325 (Claude Code)", said);
    configured(&env, CLAUDE);
    let worked = shell(&env, "signoff add T > /dev/null; ANTHROPIC_API_KEY=k signoff work");
    let shown = shell(&env, "signoff show 1; ls .signoff/worktrees").stdout;
    let shown: Vec<&str> = shown.lines().filter(|line| line.contains("hint: ")).collect();
    assert_eq!(shell(&env, "ls .signoff/worktrees").stdout.lines().count(), 1);
    format!("{worked}\n{}", shown.join("\n"))
}

#[test]
fn what_only_the_agent_knows_fails_the_attempt_with_its_words_and_the_next_step() {
    insta::assert_snapshot!(failed("no-login"), @"");
    insta::assert_snapshot!(failed("status-404"), @"");
    insta::assert_snapshot!(failed("reports-down"), @"");
}

#[test]
fn a_reviewer_that_must_report_with_a_tool_needs_a_server() {
    let env = test_env();
    program(&env, "claude", "2.1.325 (Claude Code)", "work");
    let reviewer =
        "[gate]\nreviewers = [\"code\"]\n\n[reviewers.code]\nkind = \"code\"\ncontract = \"tool\"\n";
    configured(&env, &format!("{reviewer}\n{CLAUDE}"));
    let work = "signoff add T --auto-review > /dev/null; SIGNOFF_TEST_LOOPBACK=192.0.2.1 signoff work";
    insta::assert_snapshot!(shell(&env, work), @"");
}
