//! An approval is for the commit that the reviewers saw, and no two attempts share a worktree.

use signoff_engine::sandbox::SandboxSupport;
use signoff_testkit::agent_script::{AgentScript, ScriptRule};
use signoff_testkit::processes::wait_until;
use signoff_testkit::{ProgramOutput, TestProject};

use crate::PROGRAM;

const APPROVED: &str = "**Verdict: APPROVED**\n";
const TWO: &str = "[reviewers.spec]\nkind = \"spec\"\ncontract = \"markdown\"\n[reviewers.code]\nkind = \"code\"\n\
                   contract = \"markdown\"\n[gate]\nreviewers = [\"spec\", \"code\"]\n";

/// Approves only if the file says `good`.
fn strict() -> ScriptRule {
    ScriptRule::role("review").shell("grep -q good f.txt || { echo '- f.txt:1 not good'; echo; echo '**Verdict: CHANGES_REQUESTED**'; exit 0; }; echo '**Verdict: APPROVED**'")
}

fn verdict(project: &TestProject) -> String {
    project.run(&["status", "--json"]).json()["tasks"][0]["final_verdict"].to_string()
}

#[test]
fn changes_hidden_from_git_are_committed_and_reviewed() {
    let plain = ["--assume-unchanged f.txt", "--skip-worktree f.txt"];
    // The index has several formats.
    let others = ["--index-version 4 --assume-unchanged f.txt", "--split-index --skip-worktree f.txt"];
    for flag in plain.into_iter().chain(others) {
        let hides = format!(
            "echo bad > f.txt; git add f.txt; git -c user.name=A -c user.email=a@b.c commit -qm c; \
             git update-index {flag}; echo good > f.txt"
        );
        let project = TestProject::with_agent(PROGRAM, |script| {
            script.rule(ScriptRule::role("implement").shell(&hides)).rule(strict())
        });
        project.run(&["add", "T", "-a", "--max-cycles", "1"]);
        project.run(&["work"]);
        assert_eq!(verdict(&project), "\"APPROVED\"");
        assert_eq!(project.git("show signoff/task-1-t:f.txt"), "good\n", "{flag}");
    }
}

/// Exclusions that the agent adds do not count.
#[test]
fn files_that_an_implementer_excludes_are_committed() {
    let hides = "echo good > f.txt; echo f.txt >> \"$(git rev-parse --git-common-dir)/info/exclude\"";
    let project = TestProject::with_agent(PROGRAM, |script| {
        script.rule(ScriptRule::role("implement").shell(hides)).rule(strict())
    });
    project.run(&["add", "T", "-a", "--max-cycles", "1"]);
    let work = project.run(&["work"]);
    assert_eq!(verdict(&project), "\"APPROVED\"", "{work}");
    assert_eq!(project.git("show signoff/task-1-t:f.txt"), "good\n");
}

#[test]
fn an_approval_of_files_that_the_reviewer_changed_does_not_count() {
    let project = TestProject::with_agent(PROGRAM, |script| {
        script
            .rule(ScriptRule::role("implement").write("f.txt", "bad\n"))
            .rule(ScriptRule::role("review").call(1).write("f.txt", "good\n").say(APPROVED))
            .rule(strict())
    });
    project.run(&["add", "T", "-a", "--max-cycles", "1"]);
    project.run(&["work"]);
    assert_eq!(verdict(&project), "\"MAX_CYCLES_REACHED\"");
    assert_eq!(project.git("show signoff/task-1-t:f.txt"), "bad\n");
}

/// Detects new files in ignored directories, and a replaced file of the same length and time.
#[test]
fn every_change_by_a_reviewer_is_detected() {
    let touches = [
        "echo x > build/new.txt",
        "printf 'GOOD\\n' > f.txt; touch -r ../../../../before f.txt",
        "chmod +x f.txt",
        "ln -sf elsewhere f.txt",
        "mkdir deep && echo x > deep/new.txt",
        "git commit -q --allow-empty -m mine",
    ];
    for touch in touches {
        let project = TestProject::with_agent(PROGRAM, |script| {
            let made = "printf 'good\\n' > f.txt; printf '*.o\\n' > .gitignore; mkdir build; echo o > build/a.o";
            script
                .rule(ScriptRule::role("implement").shell(&format!("{made}; touch -r f.txt ../../../../before")))
                .rule(ScriptRule::role("review").shell(touch).say(APPROVED))
        });
        project.run(&["add", "T", "-a", "--max-cycles", "1"]);
        let work = project.run(&["work"]);
        assert_eq!(verdict(&project), "null", "{touch}: {work}");
        assert!(work.stderr.contains("changed files while reviewing; undone"), "{touch}: {work}");
    }
}

/// Git would consider the file unchanged, while reviewers would see other content.
#[test]
fn an_index_with_false_stat_data_is_not_trusted() {
    let lies = "echo bad > f.txt; touch -d @1 f.txt; git add f.txt; \
                git -c user.name=A -c user.email=a@b.c commit -qm c; git config core.trustctime false; \
                git config core.checkstat minimal; git status >/dev/null; printf 'god\\n' > f.txt; touch -d @1 f.txt";
    let project = TestProject::with_agent(PROGRAM, |script| {
        script.rule(ScriptRule::role("implement").shell(lies)).rule(ScriptRule::role("review").say(APPROVED))
    });
    project.run(&["add", "T", "-a", "--max-cycles", "1"]);
    let work = project.run(&["work"]);
    assert_eq!(verdict(&project), "\"APPROVED\"", "{work}");
    assert_eq!(project.git("show signoff/task-1-t:f.txt"), "god\n");
}

#[test]
fn a_reviewers_changes_are_detected_after_a_kill() {
    let project = TestProject::with_agent(PROGRAM, |script| {
        let edits = ScriptRule::role("review").write("f.txt", "good\n").write("sneaky.txt", "x\n");
        script.rule(ScriptRule::role("implement").write("f.txt", "bad\n")).rule(edits.say(APPROVED))
    });
    project.run(&["add", "T", "-a", "--max-cycles", "1"]);
    let killed = project.env.run_with(&["work"], &[("SIGNOFF_FAILPOINT", "exit:2")]);
    assert_eq!(killed.code, None, "{killed}");
    let work = project.run(&["work"]);
    assert!(work.stderr.contains("general changed files while reviewing; undone"), "{work}");
    assert_eq!(verdict(&project), "null");
    assert_eq!(project.read(".signoff/worktrees/task-1/f.txt"), "bad\n");
    insta::assert_snapshot!(project.git("diff --name-only main signoff/task-1-t"), @"f.txt");
    assert_eq!(project.calls().with_role("review").count(), 2, "the first end was on record");
}

/// The reviewer that edits waits until the other one has read the edited file.
#[test]
fn an_approval_of_files_that_another_reviewer_changed_does_not_count() {
    let project = TestProject::with_agent(PROGRAM, |script| {
        let edits =
            ScriptRule::role("review").reviewer("spec").write("f.txt", "good\n").write("../../../../edited", "");
        script
            .rule(ScriptRule::role("implement").write("f.txt", "bad\n"))
            .rule(edits.wait_for("../../../../looked").say(APPROVED))
            .rule(
                ScriptRule::role("review")
                    .reviewer("code")
                    .wait_for("../../../../edited")
                    .write("../../../../looked", "")
                    .say(APPROVED),
            )
    });
    project.configure(TWO);
    project.run(&["add", "T", "-a", "--max-cycles", "1"]);
    let work = project.run(&["work"]);
    assert_ne!(verdict(&project), "\"APPROVED\"", "{work}");
    assert!(work.stderr.contains("one of code, spec changed files while reviewing"), "{work}");
    assert_eq!(project.git("show signoff/task-1-t:f.txt"), "bad\n");
}

/// A check that writes files while a reviewer beside it ends.
#[test]
fn files_of_a_running_check_are_not_restored() {
    let project = TestProject::with_agent(PROGRAM, |script| {
        script
            .rule(ScriptRule::role("implement").write("f.txt", "good\n"))
            .rule(ScriptRule::role("review").wait_for("../../../../checking").say(APPROVED))
    });
    project.configure(
        "[agents.checks]\nkind = \"checks\"\n[reviewers.tests]\nkind = \"tests\"\nagent = \"checks\"\n\
         [reviewers.code]\nkind = \"code\"\ncontract = \"markdown\"\nagent = \"scripted\"\n\
         [roles]\nimplement = \"scripted\"\n[gate]\nreviewers = [\"code\", \"tests\"]\n\
         [checks]\ntest = \"echo data > out.tmp; touch ../../../../checking; while ! ls ../../reviews/*code.txt; do :; done; cat out.tmp\"\n",
    );
    project.run(&["add", "T", "-a", "--max-cycles", "1"]);
    let work = project.run(&["work"]);
    assert_eq!(verdict(&project), "\"APPROVED\"", "{work}");
}

#[test]
fn a_dependent_task_starts_from_the_approved_commit() {
    let project = TestProject::with_agent(PROGRAM, |script| {
        script
            .rule(ScriptRule::role("implement").write("{task}.txt", "x\n"))
            .rule(ScriptRule::role("review").say(APPROVED))
    });
    project.run(&["add", "First", "-a"]);
    project.run(&["work"]);
    let approved = project.git("rev-parse signoff/task-1-first");
    project.env.shell("cd .signoff/worktrees/task-1 && git commit -q --allow-empty -m later");
    project.run(&["add", "Second", "-a", "--depends-on", "1"]);
    assert_eq!(project.run(&["work"]).code, Some(0));
    let base = project.run(&["show", "2", "--json"]).json()["task"]["base"].clone();
    assert_eq!(base, approved.trim());
    let shown = project.run(&["show", "1"]).stdout;
    assert!(shown.contains("Not approved any more: signoff/task-1-first has moved"), "{shown}");
}

#[test]
fn a_commit_after_the_approval_voids_it() {
    let project = TestProject::with_agent(PROGRAM, |script| {
        script
            .rule(ScriptRule::role("implement").write("f.txt", "x\n"))
            .rule(ScriptRule::role("fix").append("f.txt", "improved\n"))
            .rule(ScriptRule::role("review").say(APPROVED))
    });
    project.run(&["add", "T", "-a"]);
    project.run(&["work"]);
    let status = || project.run(&["status"]).stdout;
    assert_eq!(status(), "  ✓ 1. implement T    completed  APPROVED (1 cycle)\n");
    project.env.shell("cd .signoff/worktrees/task-1 && git commit -q --allow-empty -m later");
    let void = "  ! 1. implement T    completed  not approved  changed_after_review\n";
    assert_eq!(status(), void);
    project.git("pack-refs --all");
    assert_eq!(status(), void, "refs may be packed");
    insta::assert_snapshot!(project.run(&["--strict"]), @"
    exit 0
    --- stdout
    Needs attention:
      ! 1. T: completed not approved changed_after_review
          signoff diff 1, then signoff review 1

    1 completed
    ");
    let row = project.run(&["status", "--json"]).json()["tasks"][0].clone();
    assert!(row["final_verdict"].is_null());
    assert_eq!(row["outcome"], "completed_with_issues");
    // The present commit is reviewed, and approved for both.
    project.run(&["review", "1"]);
    let rows = project.run(&["status", "--json"]).json()["tasks"].clone();
    assert_eq!([&rows[0]["final_verdict"], &rows[1]["final_verdict"]], ["APPROVED", "APPROVED"]);
    // Commits that signoff makes void it, too.
    project.run(&["improve", "2"]);
    assert_eq!(project.run(&["status", "--json"]).json()["tasks"][0]["reason"], "changed_after_review");
}

/// A landed task was approved, whatever happens to its branch later.
#[test]
fn a_landed_task_stays_approved_when_its_branch_moves_on() {
    let project = TestProject::with_agent(PROGRAM, |script| {
        script
            .rule(ScriptRule::role("implement").write("f.txt", "x\n"))
            .rule(ScriptRule::role("fix").append("f.txt", "improved\n"))
            .rule(ScriptRule::role("review").task("1").say(APPROVED))
            .rule(ScriptRule::role("review").say("- f.txt:2 wrong\n\n**Verdict: CHANGES_REQUESTED**\n"))
    });
    project.run(&["add", "T", "-a"]);
    project.run(&["work"]);
    project.run(&["merge", "1"]);
    assert_eq!(project.run(&["improve", "1", "--review"]).code, Some(3));
    assert_eq!(verdicts_and_reasons(&project)[0], APPROVAL);
}

/// Approves everything; every implementer writes its own file.
fn approving_agent(script: AgentScript) -> AgentScript {
    script
        .rule(ScriptRule::role("implement").write("task-{task}.txt", "x\n"))
        .rule(ScriptRule::role("review").say(APPROVED))
}

/// Verdict and reason of every task.
fn verdicts_and_reasons(project: &TestProject) -> Vec<String> {
    let rows = project.run(&["status", "--json"]).json()["tasks"].as_array().cloned().unwrap_or_default();
    rows.iter().map(|row| format!("{} {}", row["final_verdict"], row["reason"])).collect()
}

const APPROVAL: &str = "\"APPROVED\" null";
const VOID: &str = "null \"changed_after_review\"";

#[test]
fn a_persons_approval_is_for_one_commit_too() {
    let project = TestProject::with_agent(PROGRAM, |script| {
        script
            .rule(ScriptRule::role("implement").write("f.txt", "x\n"))
            .rule(ScriptRule::role("review").say("Which one?\n\n**Verdict: NEEDS_DISCUSSION**\n"))
    });
    project.run(&["add", "T", "-a"]);
    project.run(&["work"]);
    // A person repairs the work and then approves it: the approval is for the present commit.
    let commits = "cd .signoff/worktrees/task-1 && git commit -q --allow-empty -m more";
    project.env.shell(commits);
    project.run(&["edit", "1", "--verdict", "APPROVED", "--reason", "seen it"]);
    assert_eq!(verdicts_and_reasons(&project), ["\"APPROVED\" \"edited_by_person\""]);
    project.env.shell(commits);
    assert_eq!(verdicts_and_reasons(&project), [VOID]);
    project.run(&["edit", "1", "--verdict", "APPROVED", "--reason", "seen that too"]);
    assert_eq!(verdicts_and_reasons(&project), ["\"APPROVED\" \"edited_by_person\""]);
}

#[test]
fn a_new_commit_on_the_branch_of_a_plan_voids_the_last_approval() {
    let project = TestProject::with_agent(PROGRAM, approving_agent);
    project.configure(TWO);
    project.env.write("plan.md", "# Plan\n\n- [ ] T001 First\n- [ ] T002 Second\n");
    project.commit("Plan");
    let run = project.run(&["run", "plan.md", "--as", "plan"]);
    assert_eq!(verdicts_and_reasons(&project), [APPROVAL, APPROVAL], "{run}");
    project.env.shell("cd .signoff/worktrees/run-1 && git commit -q --allow-empty -m later");
    assert_eq!(verdicts_and_reasons(&project), [APPROVAL, VOID]);
}

#[test]
fn an_approval_is_for_the_tasks_own_branch() {
    let project = TestProject::with_agent(PROGRAM, approving_agent);
    project.run(&["add", "First", "-a"]);
    project.run(&["add", "Second", "-a"]);
    project.run(&["work"]);
    assert_eq!(verdicts_and_reasons(&project), [APPROVAL, APPROVAL]);
    project.env.shell("git -C .signoff/worktrees/task-1 reset -q --hard signoff/task-2-second");
    assert_eq!(verdicts_and_reasons(&project), [VOID, APPROVAL]);
    // A branch may be deleted after it was merged.
    project.git("worktree remove --force .signoff/worktrees/task-2");
    project.git("branch -q -D signoff/task-2-second");
    assert_eq!(verdicts_and_reasons(&project), [VOID, APPROVAL]);
}

#[test]
fn branches_are_read_from_every_ref_storage() {
    for how in ["--separate-git-dir=../elsewhere.git", "--ref-format=reftable"] {
        let project = TestProject::with_agent(PROGRAM, approving_agent);
        // An older git has no other ref format.
        let made = format!("rm -rf .git; git init -q -b main {how} && git add -A && git commit -q -m Start");
        if project.env.shell(&made).code != Some(0) {
            continue;
        }
        project.run(&["add", "T", "-a"]);
        let work = project.run(&["work"]);
        assert_eq!(verdicts_and_reasons(&project), [APPROVAL], "{how}: {work}");
        project.env.shell("cd .signoff/worktrees/task-1 && git commit -q --allow-empty -m later");
        assert_eq!(verdicts_and_reasons(&project), [VOID], "{how}");
    }
}

#[test]
fn two_tasks_of_one_branch_do_not_run_at_once() {
    let project = TestProject::with_agent(PROGRAM, |script| {
        script
            .rule(ScriptRule::role("implement").write("f.txt", "x\n"))
            .rule(
                ScriptRule::role("fix")
                    .append("f.txt", "improved\n")
                    .write("../../../../improving", "")
                    .wait_for("../../../../reviewed"),
            )
            .rule(ScriptRule::role("review").say(APPROVED))
    });
    project.run(&["add", "T", "-a"]);
    project.run(&["work"]);
    let improving = project.start(&["improve", "1"]);
    let root = project.env.root().to_owned();
    wait_until("it is being improved", || root.join("improving").exists());
    let refused = project.run(&["review", "1"]);
    assert_eq!(refused.code, Some(1), "{refused}");
    assert!(refused.stderr.contains("is in use by another task"), "{refused}");
    std::fs::write(root.join("reviewed"), "").expect("a written file");
    assert_eq!(project.env.finish(improving).code, Some(0));
    assert_eq!(project.git("show signoff/task-1-t:f.txt"), "x\nimproved\n");
}

#[test]
fn agents_do_not_inherit_the_variables_of_git_hooks() {
    let project = TestProject::with_agent(PROGRAM, |script| {
        script.rule(
            ScriptRule::role("implement")
                .shell("echo x > f.txt; git add f.txt; git -c user.name=A -c user.email=a@b.c commit -qm agent"),
        )
    });
    project.run(&["add", "T"]);
    let (before, git) = (project.checkout(), project.env.work().join(".git").display().to_string());
    let work = project.env.run_with(&["work"], &[("GIT_DIR", &git), ("GIT_INDEX_FILE", &format!("{git}/index"))]);
    assert_eq!(work.code, Some(0), "{work}");
    assert_eq!(project.checkout(), before);
    assert_eq!(project.subjects("signoff/task-1-t"), "agent\n");
}

#[test]
fn a_pipe_in_place_of_a_file_does_not_block() {
    let project = TestProject::with_agent(PROGRAM, |script| {
        script.rule(ScriptRule::role("implement").shell("echo x > f.txt; mkfifo \"$SIGNOFF_USAGE_FILE\""))
    });
    project.run(&["add", "T"]);
    assert_eq!(project.run(&["work"]).code, Some(0));
}

/// Tries to write outside of its own directory, prints where it succeeded, and approves.
const TRESPASSER: &str = "cat > /dev/null
for place in f.txt new.txt \"$HOME/home.txt\" ../../../checkout.txt ../../reviews/forged.txt ../../signoff.db /dev/shm/signoff-$$; do
    (echo x >> \"$place\") 2> /dev/null && echo \"wrote $place\"
done
(rm f.txt || mkdir made || ln -s f.txt link || git commit --allow-empty -m mine || git tag mine) > /dev/null 2>&1 && echo \"changed something\"
echo x > \"$TMPDIR/scratch\" || echo \"cannot write to its own directory\"
echo x > /dev/null || echo \"cannot throw away\"
echo '{\"cost_usd\": 0.5}' > \"$SIGNOFF_USAGE_FILE\" || echo \"cannot tell what it cost\"
echo '{\"cost_usd\": 0.25}' > \"$TMPDIR/usage\"
mv -f \"$TMPDIR/usage\" \"$SIGNOFF_USAGE_FILE\" || echo \"cannot tell it anew\"
cat f.txt
echo
echo '**Verdict: APPROVED**'
";

#[test]
fn the_sandbox_keeps_reviewers_from_writing() {
    let project =
        TestProject::with_agent(PROGRAM, |script| script.rule(ScriptRule::role("implement").write("f.txt", "good\n")));
    project.env.write("reviewer.sh", TRESPASSER);
    project.configure(
        "sandbox = true\n[agents.sh]\nkind = \"command\"\ncommand = [\"sh\", \"reviewer.sh\"]\n\
         [roles]\nimplement = \"scripted\"\n[reviewers.general]\nkind = \"general\"\nagent = \"sh\"\ncontract = \"markdown\"\n",
    );
    if signoff_engine::sandbox::SandboxSupport::probe(None).landlock.is_none() {
        // On an older kernel changes are undone instead, as other tests show.
        return;
    }
    project.run(&["add", "T", "-a"]);
    let work = project.run(&["work"]);
    assert_eq!(verdict(&project), "\"APPROVED\"", "{work}");
    assert_eq!(work.stderr, "", "nothing was changed");
    let answer = project.list(".signoff/reviews").into_iter().find(|name| name.ends_with(".txt")).unwrap_or_default();
    assert_eq!(project.read(&format!(".signoff/reviews/{answer}")), "good\n\n**Verdict: APPROVED**\n");
    assert_eq!(project.run(&["status", "--json"]).json()["tasks"][0]["cost_usd"], 0.25);
}

/// A task whose reviewer always approves, the first time only after the test lets it.
fn with_a_pause(sandbox: bool) -> TestProject {
    let project = TestProject::with_agent(PROGRAM, |script| {
        script
            .rule(ScriptRule::role("implement").write("f.txt", "good\n"))
            .rule(ScriptRule::role("fix").say("Nothing to fix."))
    });
    let reviewer =
        "cat > /dev/null\n[ $SIGNOFF_ATTEMPT != 2 ] || cat pause > /dev/null\necho '**Verdict: APPROVED**'\n";
    let pause = project.env.root().join("pause");
    project.env.write("reviewer.sh", reviewer.replace("pause", &pause.display().to_string()));
    project.configure(&format!(
        "sandbox = {sandbox}\n[agents.sh]\nkind = \"command\"\ncommand = [\"sh\", \"reviewer.sh\"]\n\
         [roles]\nimplement = \"scripted\"\nfix = \"scripted\"\n[reviewers.general]\nkind = \"general\"\n\
         agent = \"sh\"\ncontract = \"markdown\"\n",
    ));
    assert_eq!(project.env.shell(&format!("mkfifo {}", pause.display())).code, Some(0));
    project.run(&["add", "T", "-a"]);
    project
}

/// The person changes the repository's settings while the reviewer runs.
fn configured_meanwhile(project: &TestProject) -> ProgramOutput {
    let program = project.env.start_group(&["work"]);
    // Opening blocks until the reviewer opens the pipe.
    let pause = std::fs::OpenOptions::new().write(true).open(project.env.root().join("pause")).unwrap();
    project.git("config color.ui never");
    drop(pause);
    project.env.finish(program)
}

#[test]
fn a_change_of_the_repository_is_reported_once_and_later_reviews_count() {
    let project = with_a_pause(false);
    let work = configured_meanwhile(&project);
    assert_eq!(verdict(&project), "\"APPROVED\"", "{work}");
    assert!(work.stdout.contains("trying again"), "{work}");
    assert!(work.stdout.contains("APPROVED after 1 cycle"), "{work}");
    let note = "changed config of the repository while general was reviewing; not undone";
    assert_eq!(work.stderr.matches(note).count(), 1, "{work}");
}

#[test]
fn a_sandboxed_reviewer_is_not_blamed_for_a_change_of_the_repository() {
    if !SandboxSupport::probe(None).is_complete() {
        eprintln!("SKIPPED: no sandbox here");
        return;
    }
    let project = with_a_pause(true);
    let work = configured_meanwhile(&project);
    assert_eq!(verdict(&project), "\"APPROVED\"", "{work}");
    assert!(work.stdout.contains("APPROVED after 1 cycle"), "{work}");
    assert!(work.stderr.contains("changed config of the repository while general was reviewing; not undone"), "{work}");
}

/// With `--pdeathsig` the system ends a process together with its parent thread.
#[test]
fn a_sandboxed_reviewer_has_a_parent_thread_that_stays() {
    let project =
        TestProject::with_agent(PROGRAM, |script| script.rule(ScriptRule::role("implement").write("f.txt", "good\n")));
    if project.env.shell("command -v setpriv && ls /proc/self/task").code != Some(0) {
        // Not available here.
        return;
    }
    // The supervisor's main thread and the thread that started this process.
    let counts = "cat > /dev/null\nls /proc/$PPID/task | wc -l | grep -qx 2 && echo '**Verdict: APPROVED**'\n";
    project.env.write("reviewer.sh", counts);
    project.configure(
        "sandbox = true\n[agents.sh]\nkind = \"command\"\ncommand = [\"setpriv\", \"--pdeathsig\", \"KILL\", \"sh\", \"reviewer.sh\"]\n\
         [roles]\nimplement = \"scripted\"\n[reviewers.general]\nkind = \"general\"\nagent = \"sh\"\ncontract = \"markdown\"\n",
    );
    project.run(&["add", "T", "-a"]);
    let work = project.run(&["work"]);
    assert_eq!(verdict(&project), "\"APPROVED\"", "{work}");
}

/// A project with an approved task whose branch was deleted.
fn without_its_branch() -> TestProject {
    let project = TestProject::with_agent(PROGRAM, |script| {
        script
            .rule(ScriptRule::role("implement").write("f.txt", "good\n"))
            .rule(ScriptRule::role("fix").append("f.txt", "improved\n"))
            .rule(strict())
    });
    project.run(&["add", "One", "-a"]);
    project.run(&["work"]);
    project.git("worktree remove --force .signoff/worktrees/task-1");
    project.git("branch -qD signoff/task-1-one");
    project
}

#[test]
fn a_deleted_branch_is_restored_at_its_last_commit() {
    let project = without_its_branch();
    insta::assert_snapshot!(project.run(&["diff", "1"]), @"
    exit 1
    --- stderr
    error: the branch signoff/task-1-one does not exist
    hint: `signoff review 1` recreates it at its last commit, if git still has it
    ");
    let review = project.run(&["review", "1"]);
    assert_eq!(review.code, Some(0), "{review}");
    assert_eq!(project.git("show signoff/task-1-one:f.txt"), "good\n");
    assert!(project.run(&["diff", "1"]).stdout.contains("+good"));
    project.run(&["improve", "1"]);
    project.git("worktree remove --force .signoff/worktrees/task-1");
    project.git("branch -qD signoff/task-1-one");
    project.run(&["review", "1"]);
    assert_eq!(project.git("show signoff/task-1-one:f.txt"), "good\nimproved\n");
}

#[test]
fn a_deleted_branch_whose_commit_is_gone_is_an_error() {
    let project = without_its_branch();
    project.git("for-each-ref --format='delete %(refname)' refs/signoff | git update-ref --stdin");
    project.git("reflog expire --expire=now --all && git gc -q --prune=now");
    insta::assert_snapshot!(project.run(&["review", "1"]), @"
    exit 1
    --- stderr
    error: the branch signoff/task-1-one does not exist
    hint: `git branch signoff/task-1-one COMMIT` recreates it if git still has its commit; otherwise add the task again
    ");
    insta::assert_snapshot!(project.run(&["improve", "1"]), @"
    exit 1
    --- stderr
    error: the branch signoff/task-1-one does not exist
    hint: `git branch signoff/task-1-one COMMIT` recreates it if git still has its commit; otherwise add the task again
    ");
}

#[test]
fn a_retry_restores_a_deleted_branch_too() {
    let project = TestProject::with_agent(PROGRAM, |script| {
        script
            .rule(ScriptRule::role("implement").write("f.txt", "bad\n"))
            .rule(ScriptRule::role("fix").call(1).exit(1))
            .rule(ScriptRule::role("fix").append("f.txt", "good\n"))
            .rule(strict())
    });
    project.run(&["add", "One", "-a"]);
    project.run(&["work"]);
    project.git("worktree remove --force .signoff/worktrees/task-1");
    project.git("branch -qD signoff/task-1-one");
    let retry = project.run(&["retry", "1"]);
    assert_eq!(retry.code, Some(0), "{retry}");
    assert_eq!(project.git("show signoff/task-1-one:f.txt"), "bad\ngood\n");
}
