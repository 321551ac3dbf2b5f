//! The sandbox: agents cannot write outside of their work, whichever backend confines them.

use signoff_core::sandbox::SandboxBackend;
use signoff_engine::sandbox::SandboxSupport;
use signoff_testkit::agent_script::ScriptRule;
use signoff_testkit::{ProgramOutput, TestProject};

use crate::PROGRAM;

/// The sandbox backends that this system supports. Prints the ones it skips.
pub fn ways() -> Vec<SandboxBackend> {
    let works = |way: &SandboxBackend| {
        let power = SandboxSupport::probe(Some(*way));
        let works = power.is_complete() && (*way != SandboxBackend::Landlock || power.landlock.is_some());
        if !works {
            eprintln!("SKIPPED: agents held by {}: {}", way.into_str(), power.missing.unwrap_or_default());
        }
        works
    };
    [SandboxBackend::Landlock, SandboxBackend::Bubblewrap].into_iter().filter(works).collect()
}

/// A project whose agent is a shell script per role, with a remote that accepts every push.
pub fn project(sandbox: &str, scripts: &[(&str, &str)]) -> TestProject {
    let project = TestProject::outside_shared_memory(PROGRAM);
    let shell = "case $SIGNOFF_ROLE in review) exec sh ../../../review.sh;; *) exec sh ../../../write.sh;; esac";
    for (role, script) in scripts {
        project.env.write(&format!("{role}.sh"), format!("cat > /dev/null\n{script}"));
    }
    project.env.write(
        "signoff.toml",
        format!(
            "{sandbox}\n[agents.sh]\nkind = \"command\"\ncommand = [\"sh\", \"-c\", {shell:?}]\n\
             [defaults]\nauto_review = false\n[reviewers.general]\nkind = \"general\"\ncontract = \"markdown\"\n"
        ),
    );
    project.env.write(".gitignore", "target/\n.signoff/\n");
    project.commit("Configure");
    project.git("init -q --bare ../remote.git && git remote add origin ../remote.git && git push -q origin main");
    project
}

pub fn work(project: &TestProject, way: SandboxBackend) -> ProgramOutput {
    project.env.run_with(&["work"], &[("SIGNOFF_TEST_SANDBOX", way.into_str())])
}

/// The value of `KEY` for every attempt of the first task.
pub fn attempts(project: &TestProject, key: &str) -> String {
    let shown = project.run(&["show", "1", "--json"]).json();
    let attempts = shown["attempts"].as_array().cloned().unwrap_or_default();
    let lines =
        attempts.iter().map(|attempt| format!("{} {}", attempt["role"].as_str().unwrap_or_default(), attempt[key]));
    lines.collect::<Vec<_>>().join("\n")
}

/// Tries writes that only a writer may do and writes that no agent may do; prints the ones that succeed.
const TRESPASS: &str = r#"
try() { ("$@") > /dev/null 2>&1 && echo "could: $*" >> "$found"; }
write() { echo x >> "$1"; }
common=../../../.git
for place in "$HOME/home.txt" "$HOME/.bashrc" "$HOME/.ssh/authorized_keys" ../../../checkout.txt ../../reviews/forged.txt \
    ../../signoff.db "$common/hooks/pre-commit" "$common/config" "$common/HEAD" "$common/packed-refs" \
    "$common/refs/heads/main" "$common/refs/heads/evil" "$common/worktrees/other" \
    "$common/worktrees/task-1/HEAD" "$common/worktrees/task-1/made" "$common/objects/made" "$common/objects/info/alternates" ../other.txt /tmp/signoff-trespass-$$; do
    try write "$place"
done
try git config user.name Mallory
try git branch evil
try git tag evil
try git update-ref refs/heads/main HEAD
try git push -q origin HEAD:refs/heads/evil
try git update-ref refs/stash HEAD
try git worktree add ../evil
true
"#;

const REVIEW: &str = r#"
try write f.txt
try touch new.txt
try rm f.txt
try mkdir made
try ln -s f.txt link
try git commit --allow-empty -m mine
try write /dev/shm/signoff-trespass-$$
echo x > /dev/null || echo "cannot throw away"
echo '{"cost_usd": 0.5}' > "$TMPDIR/usage" && mv -f "$TMPDIR/usage" "$SIGNOFF_USAGE_FILE" || echo "cannot tell what it cost"
echo x > f.txt
cat "$found" f.txt
echo
echo '**Verdict: APPROVED**'
"#;

#[test]
fn a_reviewer_can_read_everything_and_write_nothing() {
    for way in ways() {
        let own = "found=\"$TMPDIR/found\"\n: > \"$found\" || echo 'cannot write to its own directory'\n";
        let review = format!("{own}{TRESPASS}{REVIEW}");
        let shared = "sandbox = true\nreview_workspace = \"shared\"";
        let project = project(shared, &[("write", "echo good > f.txt\n"), ("review", &review)]);
        project.run(&["add", "T", "-a"]);
        let checkout = project.checkout();
        let refs = project.git("for-each-ref refs/tags refs/heads/main");
        let worked = work(&project, way);
        assert_eq!(worked.code, Some(0), "{way:?}: {worked}");
        let answers = project.list(".signoff/reviews");
        let answer = answers.iter().find(|name| name.ends_with(".txt")).expect("an answer");
        assert_eq!(project.read(&format!(".signoff/reviews/{answer}")), "good\n\n**Verdict: APPROVED**\n");
        assert_eq!(attempts(&project, "hold"), format!("implement \"{0}\"\nreview \"{0}\"", way.into_str()));
        assert_eq!(project.run(&["status", "--json"]).json()["tasks"][0]["cost_usd"], 0.5);
        assert_eq!(project.checkout(), checkout);
        assert_eq!(project.git("for-each-ref refs/tags refs/heads/main"), refs);
        assert_eq!(project.git("ls-remote origin evil"), "");
        // Blocked writes are noted and do not fail the review.
        let notes = attempts(&project, "notes");
        assert!(notes.contains("the sandbox blocked general"), "{way:?}: {notes}");
        assert!(notes.contains("f.txt: "), "{notes}");
        assert!(!notes.contains("changed files"), "{notes}");
    }
}

/// Commits, amends, and does what a build does: temporary files, links, renames, a cache.
const WRITE: &str = r#"
found=trespass.txt
: > "$found"
set -e
echo good > f.txt
git add f.txt
git commit -qm "By itself"
git commit -q --amend -m "By itself, better"
mkdir -p target/debug/deps
echo binary > "$(mktemp)"
echo binary > target/debug/deps/it
ln target/debug/deps/it target/debug/it
mv target/debug/deps/it target/it
echo x > "$TMPDIR/moved" && mv "$TMPDIR/moved" target/moved
echo cached > ~/.cache/tool
printf '[core]\n\tfsmonitor = evil\n' > "$(git rev-parse --git-dir)/config.worktree"
echo '{"cost_usd": 0.5}' > "$SIGNOFF_USAGE_FILE"
set +e
"#;

#[test]
fn a_writer_can_build_and_commit_and_write_nothing_else() {
    for way in ways() {
        let project = project("sandbox = true", &[("write", &format!("{WRITE}{TRESPASS}"))]);
        project.env.shell("mkdir -p ~/.cache ~/.ssh && git branch other && git worktree add -q ../other other");
        project.run(&["add", "T"]);
        let (checkout, refs) = (project.checkout(), project.git("for-each-ref --exclude=refs/heads/signoff"));
        let (config, hooks) = (project.read(".git/config"), project.list(".git/hooks"));
        let worked = work(&project, way);
        assert_eq!(worked.code, Some(0), "{way:?}: {worked}");
        assert_eq!(project.git("show signoff/task-1-t:trespass.txt"), "", "{way:?}");
        assert_eq!(project.git("show signoff/task-1-t:f.txt"), "good\n");
        insta::allow_duplicates! {
            insta::assert_snapshot!(project.subjects("signoff/task-1-t"), @"
            By itself, better
            T - initial implementation
            ");
        }
        assert_eq!(project.git("-C .signoff/worktrees/task-1 branch --show-current"), "signoff/task-1-t\n");
        assert_eq!(project.git("-C .signoff/worktrees/task-1 status --short"), "");
        assert_eq!(project.read(".git/worktrees/task-1/commondir"), "../..\n");
        assert!(!project.list(".git/worktrees/task-1").contains(&"config.worktree".to_owned()));
        assert_eq!(attempts(&project, "hold"), format!("implement \"{}\"", way.into_str()));
        assert_eq!(project.env.shell("cat ~/.cache/tool").stdout, "cached\n");
        assert_eq!(project.checkout(), checkout);
        assert_eq!(project.git("for-each-ref --exclude=refs/heads/signoff --exclude=refs/signoff"), refs);
        assert_eq!((project.read(".git/config"), project.list(".git/hooks")), (config, hooks));
    }
}

#[test]
fn a_writer_can_write_to_configured_directories() {
    for way in ways() {
        let script = "echo x > ~/.gradle/it && echo y > ~/elsewhere\necho good > f.txt\n";
        let allowed = "sandbox = true\nsandbox_write = [\"~/.gradle\", \"~/missing\"]";
        let project = project(allowed, &[("write", script)]);
        project.env.shell("mkdir ~/.gradle");
        project.run(&["add", "T"]);
        let worked = work(&project, way);
        assert_eq!(worked.code, Some(0), "{worked}");
        assert!(worked.stderr.contains("warning: sandbox_write: there is no ~/missing"), "{worked}");
        assert_eq!(project.env.shell("cat ~/.gradle/it; ls ~").stdout, "x\n", "{way:?}");
        assert!(attempts(&project, "notes").contains("elsewhere: "), "{way:?}");
    }
}

#[test]
fn writers_can_run_without_the_sandbox() {
    for way in ways() {
        let open = "sandbox = true\nsandbox_writers = false";
        let project = project(open, &[("write", "echo x > ~/it\necho good > f.txt\n")]);
        project.run(&["add", "T"]);
        work(&project, way);
        assert_eq!(attempts(&project, "hold"), "implement \"nobody\"");
        assert_eq!(project.env.shell("cat ~/it").stdout, "x\n");
    }
}

#[test]
fn a_required_sandbox_that_is_missing_starts_no_agent() {
    let project = project("sandbox = \"required\"", &[("write", "echo x > ~/it\n")]);
    project.run(&["add", "T"]);
    insta::assert_snapshot!(work(&project, SandboxBackend::None), @r#"
    exit 2
    --- stderr
    error: sandbox = "required", and this system cannot sandbox agents: disabled by a test
      --> signoff.toml:1
    hint: install bubblewrap, or a kernel from 6.2 on with Landlock switched on; or set sandbox = true: then signoff reverts reviewers' changes
    "#);
    assert_eq!(project.env.shell("ls ~").stdout, "");
    let doctor = project.env.run_with(&["doctor", "--json"], &[("SIGNOFF_TEST_SANDBOX", "nobody")]);
    assert_eq!((doctor.code, doctor.json()["hold"].to_string()), (Some(1), "\"nobody\"".to_owned()));
    insta::assert_snapshot!(doctor.json()["checks"][3]["message"].to_string(), @r#""sandbox = \"required\", and this system cannot sandbox agents: disabled by a test; signoff.toml:1; hint: install bubblewrap, or a kernel from 6.2 on with Landlock switched on; or set sandbox = true: then signoff reverts reviewers' changes""#);
}

#[test]
fn a_required_sandbox_that_is_missing_checks_no_agent() {
    let project = project("sandbox = \"required\"", &[("write", "echo x > ~/it\n")]);
    let check = |way: &str| project.env.run_with(&["agents", "--check"], &[("SIGNOFF_TEST_SANDBOX", way)]);
    insta::assert_snapshot!(check("nobody"), @r#"
    exit 2
    --- stderr
    error: sandbox = "required", and this system cannot sandbox agents: disabled by a test
      --> signoff.toml:1
    hint: install bubblewrap, or a kernel from 6.2 on with Landlock switched on; or set sandbox = true: then signoff reverts reviewers' changes
    "#);
    assert_eq!(project.env.shell("ls ~").stdout, "");
    // Listing agents does not start them.
    let looked = project.env.run_with(&["agents"], &[("SIGNOFF_TEST_SANDBOX", "nobody")]);
    assert_eq!(looked.code, Some(0), "{looked}");
}

/// A bubblewrap that passes its probe and then fails.
#[test]
fn an_agent_that_cannot_be_sandboxed_is_not_started() {
    let project = project("sandbox = \"required\"", &[("write", "echo x > ~/it\n")]);
    let bwrap = "#!/bin/sh\ncase \"$*\" in *--bind*) echo 'bwrap: no room' >&2; exit 1;; esac\n";
    project.env.write("../bin/bwrap", bwrap);
    project.env.shell("chmod +x ../bin/bwrap");
    project.run(&["add", "T"]);
    insta::assert_snapshot!(work(&project, SandboxBackend::Bubblewrap), @"
    exit 1
    --- stdout
    Running task #1: T
      Implementing...
      Implementation failed: could not be started: bubblewrap cannot apply the sandbox: no room
    ✗ Task #1 failed: the implementer failed (implementer_failed)
        Next: signoff show 1, then signoff retry 1
    ");
    assert_eq!(project.env.shell("ls ~").stdout, "");
}

#[test]
fn doctor_names_the_sandbox() {
    let run_with = |project: &TestProject, way: SandboxBackend| {
        let doctor = project.env.run_with(&["doctor", "--json"], &[("SIGNOFF_TEST_SANDBOX", way.into_str())]).json();
        (doctor["hold"].to_string(), doctor["checks"][3]["message"].to_string(), doctor["checks"][3]["warning"].clone())
    };
    let project = project("sandbox = true\nsandbox_writers = false", &[]);
    for way in ways() {
        let (hold, message, warning) = run_with(&project, way);
        assert_eq!(hold, format!("\"{}\"", way.into_str()));
        assert!(message.starts_with("\"reviewers: read-only; writers: anywhere ("), "{message}");
        assert_eq!(warning, false);
    }
    insta::assert_debug_snapshot!(run_with(&project, SandboxBackend::None), @r#"
    (
        "\"nobody\"",
        "\"agents can write anywhere; signoff reverts reviewers' changes (disabled by a test)\"",
        Bool(true),
    )
    "#);
}

/// Builds and tests in its directory, and prints absolute paths in its findings.
const BUILD: &str = r#"
echo x >> f.txt && mkdir target && echo built > target/it && pwd > "$TMPDIR/place"
git status --short
ls ../../worktrees
echo "- $(pwd)/f.txt:1 no name"
echo
echo '**Verdict: CHANGES_REQUESTED**'
"#;

#[test]
fn a_reviewer_with_a_copy_builds_in_it_and_leaves_nothing() {
    let ways = ways().into_iter().map(|way| ("true", way)).chain([("false", SandboxBackend::None)]);
    for (sandbox, way) in ways {
        let copy = format!("sandbox = {sandbox}\nreview_workspace = \"copy\"\n[gate]\nmax_cycles = 1");
        let project = project(&copy, &[("write", "echo good > f.txt\n"), ("review", BUILD)]);
        project.run(&["add", "T", "-a"]);
        let worked = work(&project, way);
        let answers = project.list(".signoff/reviews");
        let answer = answers.iter().find(|name| name.ends_with(".txt")).expect("an answer");
        let answer = project.read(&format!(".signoff/reviews/{answer}"));
        assert!(answer.starts_with(" M f.txt\ntask-1\ntask-1-copy-general\n- /"), "{way:?}: {worked}{answer}");
        assert_eq!(project.list(".signoff/worktrees"), ["task-1"], "{way:?}");
        assert_eq!(project.git("worktree list --porcelain | grep -c ^worktree"), "2\n");
        assert_eq!(project.git("show signoff/task-1-t:f.txt"), "good\n");
        let shown = project.run(&["show", "1", "--json"]).json();
        assert_eq!(shown["ledger"][0]["file"], "f.txt", "{shown:#}");
    }
}

/// The configuration sets no `review_workspace`. At the default depth, the prompt asks reviewers to run tests.
#[test]
fn a_reviewer_whose_prompt_asks_for_tests_works_in_a_copy() {
    let project = TestProject::with_agent(PROGRAM, |script| {
        let works = ScriptRule::role("implement").write("auth.txt", "login\n").say("Done.\n");
        let tests = ScriptRule::role("review").shell("touch built.o && rm auth.txt");
        script.rule(works).rule(tests.say("**Verdict: APPROVED**\n"))
    });
    project.configure("# review_workspace = as built in\n");
    project.run(&["add", "Log in", "-a"]);
    let output = project.run(&["work"]);
    assert_eq!(output.code, Some(0), "{output}");
    let calls = project.calls();
    let prompt = &calls.with_role("review").next().expect("a review").prompt;
    assert!(prompt.contains("Actually RUN relevant tests and show output"), "{prompt}");
    assert!(prompt.contains("-copy-"), "{prompt}");
    assert!(!output.stdout.contains("built.o"), "{output}");
}

#[test]
fn a_reviewer_in_the_shared_worktree_is_not_asked_to_run_anything() {
    let project = TestProject::with_agent(PROGRAM, |script| {
        let works = ScriptRule::role("implement").write("auth.txt", "login\n").say("Done.\n");
        script.rule(works).rule(ScriptRule::role("review").say("**Verdict: APPROVED**\n"))
    });
    for depth in ["standard", "comprehensive"] {
        project.configure(&format!("review_workspace = \"shared\"\n[gate]\ndepth = \"{depth}\"\n"));
        project.run(&["add", "Log in", "-a"]);
        project.run(&["work"]);
        let calls = project.calls();
        let prompt = &calls.with_role("review").last().expect("a review").prompt;
        assert!(prompt.contains("Actually READ the implementation files"), "{prompt}");
        assert!(!prompt.contains("-copy-"), "{prompt}");
        assert!(!prompt.contains("RUN relevant tests") && !prompt.contains("Run the project's"), "{prompt}");
    }
}
