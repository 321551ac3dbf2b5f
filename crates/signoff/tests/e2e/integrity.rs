//! An approval is of a commit that its reviewers saw, and nobody works where another does.

use signoff_engine::confine::Power;
use signoff_testkit::processes::until;
use signoff_testkit::script::{Rule, Script};
use signoff_testkit::{Output, Project};

use crate::PROGRAM;

const APPROVED: &str = "**Verdict: APPROVED**\n";
const TWO: &str = "[reviewers.spec]\nkind = \"spec\"\ncontract = \"markdown\"\n[reviewers.code]\nkind = \"code\"\n\
                   contract = \"markdown\"\n[gate]\nreviewers = [\"spec\", \"code\"]\n";

/// Approves only what says `good`.
fn strict() -> Rule {
    Rule::role("review").shell("grep -q good f.txt || { echo '- f.txt:1 not good'; echo; echo '**Verdict: CHANGES_REQUESTED**'; exit 0; }; echo '**Verdict: APPROVED**'")
}

fn verdict(project: &Project) -> String {
    project.run(&["status", "--json"]).json()["tasks"][0]["final_verdict"].to_string()
}

#[test]
fn what_an_implementer_hides_from_git_is_committed_and_reviewed() {
    let plain = ["--assume-unchanged f.txt", "--skip-worktree f.txt"];
    // An index can be written in several ways.
    let others = ["--index-version 4 --assume-unchanged f.txt", "--split-index --skip-worktree f.txt"];
    for flag in plain.into_iter().chain(others) {
        let hides = format!(
            "echo bad > f.txt; git add f.txt; git -c user.name=A -c user.email=a@b.c commit -qm c; \
             git update-index {flag}; echo good > f.txt"
        );
        let project = Project::with_agent(PROGRAM, |script| {
            script.rule(Rule::role("implement").shell(&hides)).rule(strict())
        });
        project.run(&["add", "T", "-a", "--max-cycles", "1"]);
        project.run(&["work"]);
        assert_eq!(verdict(&project), "\"APPROVED\"");
        assert_eq!(project.git("show signoff/task-1-t:f.txt"), "good\n", "{flag}");
    }
}

/// What a repository ignores was settled before the agent came.
#[test]
fn what_an_implementer_excludes_is_committed_all_the_same() {
    let hides = "echo good > f.txt; echo f.txt >> \"$(git rev-parse --git-common-dir)/info/exclude\"";
    let project = Project::with_agent(PROGRAM, |script| {
        script.rule(Rule::role("implement").shell(hides)).rule(strict())
    });
    project.run(&["add", "T", "-a", "--max-cycles", "1"]);
    let work = project.run(&["work"]);
    assert_eq!(verdict(&project), "\"APPROVED\"", "{work}");
    assert_eq!(project.git("show signoff/task-1-t:f.txt"), "good\n");
}

#[test]
fn an_approval_of_files_that_a_reviewer_changed_is_none() {
    let project = Project::with_agent(PROGRAM, |script| {
        script
            .rule(Rule::role("implement").write("f.txt", "bad\n"))
            .rule(Rule::role("review").call(1).write("f.txt", "good\n").say(APPROVED))
            .rule(strict())
    });
    project.run(&["add", "T", "-a", "--max-cycles", "1"]);
    project.run(&["work"]);
    assert_eq!(verdict(&project), "\"MAX_CYCLES_REACHED\"");
    assert_eq!(project.git("show signoff/task-1-t:f.txt"), "bad\n");
}

/// What a reviewer adds where no file of the commit is, or in place of another file of the same length, is seen.
#[test]
fn whatever_a_reviewer_touches_is_seen() {
    let touches = [
        "echo x > build/new.txt",
        "printf 'GOOD\\n' > f.txt; touch -r ../../../../before f.txt",
        "chmod +x f.txt",
        "ln -sf elsewhere f.txt",
        "mkdir deep && echo x > deep/new.txt",
        "git commit -q --allow-empty -m mine",
    ];
    for touch in touches {
        let project = Project::with_agent(PROGRAM, |script| {
            let made =
                "printf 'good\\n' > f.txt; printf '*.o\\n' > .gitignore; mkdir build; echo o > build/a.o";
            script
                .rule(Rule::role("implement").shell(&format!("{made}; touch -r f.txt ../../../../before")))
                .rule(Rule::role("review").shell(touch).say(APPROVED))
        });
        project.run(&["add", "T", "-a", "--max-cycles", "1"]);
        let work = project.run(&["work"]);
        assert_eq!(verdict(&project), "null", "{touch}: {work}");
        assert!(work.stderr.contains("changed files while reviewing; undone"), "{touch}: {work}");
    }
}

/// Git would believe that the file is as it was committed; the reviewers would see another one.
#[test]
fn an_index_that_lies_about_a_file_is_not_believed() {
    let lies = "echo bad > f.txt; touch -d @1 f.txt; git add f.txt; \
                git -c user.name=A -c user.email=a@b.c commit -qm c; git config core.trustctime false; \
                git config core.checkstat minimal; git status >/dev/null; printf 'god\\n' > f.txt; touch -d @1 f.txt";
    let project = Project::with_agent(PROGRAM, |script| {
        script.rule(Rule::role("implement").shell(lies)).rule(Rule::role("review").say(APPROVED))
    });
    project.run(&["add", "T", "-a", "--max-cycles", "1"]);
    let work = project.run(&["work"]);
    assert_eq!(verdict(&project), "\"APPROVED\"", "{work}");
    assert_eq!(project.git("show signoff/task-1-t:f.txt"), "god\n");
}

#[test]
fn nor_is_it_when_the_program_is_killed_before_it_has_looked() {
    let project = Project::with_agent(PROGRAM, |script| {
        let edits = Rule::role("review").write("f.txt", "good\n").write("sneaky.txt", "x\n");
        script.rule(Rule::role("implement").write("f.txt", "bad\n")).rule(edits.say(APPROVED))
    });
    project.run(&["add", "T", "-a", "--max-cycles", "1"]);
    let killed = project.env.run_with(&["work"], &[("SIGNOFF_FAILPOINT", "exit:2")]);
    assert_eq!(killed.code, None, "{killed}");
    let work = project.run(&["work"]);
    assert!(work.stderr.contains("general changed files while reviewing; undone"), "{work}");
    assert_eq!(verdict(&project), "null");
    assert_eq!(project.read(".signoff/worktrees/task-1/f.txt"), "bad\n");
    insta::assert_snapshot!(project.git("diff --name-only main signoff/task-1-t"), @"f.txt");
    assert_eq!(project.calls().of_role("review").count(), 2, "the first end was on record");
}

/// The one who edits waits until the other has looked, so that both see the edited file.
#[test]
fn nor_is_that_of_another_who_read_them_meanwhile() {
    let project = Project::with_agent(PROGRAM, |script| {
        let edits =
            Rule::role("review").reviewer("spec").write("f.txt", "good\n").write("../../../../edited", "");
        script
            .rule(Rule::role("implement").write("f.txt", "bad\n"))
            .rule(edits.wait_for("../../../../looked").say(APPROVED))
            .rule(
                Rule::role("review")
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

/// A check that writes beside a reviewer that ends before it.
#[test]
fn nobody_s_files_are_put_back_while_they_are_at_work() {
    let project = Project::with_agent(PROGRAM, |script| {
        script
            .rule(Rule::role("implement").write("f.txt", "good\n"))
            .rule(Rule::role("review").wait_for("../../../../checking").say(APPROVED))
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
fn a_task_that_builds_on_another_begins_at_what_was_approved() {
    let project = Project::with_agent(PROGRAM, |script| {
        script
            .rule(Rule::role("implement").write("{task}.txt", "x\n"))
            .rule(Rule::role("review").say(APPROVED))
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
fn what_is_committed_after_an_approval_voids_it() {
    let project = Project::with_agent(PROGRAM, |script| {
        script
            .rule(Rule::role("implement").write("f.txt", "x\n"))
            .rule(Rule::role("fix").append("f.txt", "improved\n"))
            .rule(Rule::role("review").say(APPROVED))
    });
    project.run(&["add", "T", "-a"]);
    project.run(&["work"]);
    let standing = || project.run(&["status"]).stdout;
    assert_eq!(standing(), "  ✓ 1. implement T    completed  APPROVED (1 cycle)\n");
    project.env.shell("cd .signoff/worktrees/task-1 && git commit -q --allow-empty -m later");
    let void = "  ! 1. implement T    completed  not approved  changed_after_review\n";
    assert_eq!(standing(), void);
    project.git("pack-refs --all");
    assert_eq!(standing(), void, "refs may be packed");
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
    // What is there now is reviewed, and approved for both.
    project.run(&["review", "1"]);
    let rows = project.run(&["status", "--json"]).json()["tasks"].clone();
    assert_eq!([&rows[0]["final_verdict"], &rows[1]["final_verdict"]], ["APPROVED", "APPROVED"]);
    // The program's own commits are no better.
    project.run(&["improve", "2"]);
    assert_eq!(project.run(&["status", "--json"]).json()["tasks"][0]["reason"], "changed_after_review");
}

/// What has landed was approved, whatever is done to its branch later.
#[test]
fn a_landed_task_stays_approved_when_its_branch_goes_on() {
    let project = Project::with_agent(PROGRAM, |script| {
        script
            .rule(Rule::role("implement").write("f.txt", "x\n"))
            .rule(Rule::role("fix").append("f.txt", "improved\n"))
            .rule(Rule::role("review").task("1").say(APPROVED))
            .rule(Rule::role("review").say("- f.txt:2 wrong\n\n**Verdict: CHANGES_REQUESTED**\n"))
    });
    project.run(&["add", "T", "-a"]);
    project.run(&["work"]);
    project.run(&["merge", "1"]);
    assert_eq!(project.run(&["improve", "1", "--review"]).code, Some(3));
    assert_eq!(standings(&project)[0], APPROVAL);
}

/// Approves everything; every implementer writes a file of its own.
fn content(script: Script) -> Script {
    script
        .rule(Rule::role("implement").write("task-{task}.txt", "x\n"))
        .rule(Rule::role("review").say(APPROVED))
}

/// Status, verdict and reason of every task.
fn standings(project: &Project) -> Vec<String> {
    let rows = project.run(&["status", "--json"]).json()["tasks"].as_array().cloned().unwrap_or_default();
    rows.iter().map(|row| format!("{} {}", row["final_verdict"], row["reason"])).collect()
}

const APPROVAL: &str = "\"APPROVED\" null";
const VOID: &str = "null \"changed_after_review\"";

#[test]
fn what_a_person_approved_is_one_commit_too() {
    let project = Project::with_agent(PROGRAM, |script| {
        script
            .rule(Rule::role("implement").write("f.txt", "x\n"))
            .rule(Rule::role("review").say("Which one?\n\n**Verdict: NEEDS_DISCUSSION**\n"))
    });
    project.run(&["add", "T", "-a"]);
    project.run(&["work"]);
    // A person mends it and then says so: what they approve is what is there.
    let commits = "cd .signoff/worktrees/task-1 && git commit -q --allow-empty -m more";
    project.env.shell(commits);
    project.run(&["edit", "1", "--verdict", "APPROVED", "--reason", "seen it"]);
    assert_eq!(standings(&project), ["\"APPROVED\" \"edited_by_person\""]);
    project.env.shell(commits);
    assert_eq!(standings(&project), [VOID]);
    project.run(&["edit", "1", "--verdict", "APPROVED", "--reason", "seen that too"]);
    assert_eq!(standings(&project), ["\"APPROVED\" \"edited_by_person\""]);
}

#[test]
fn the_branch_of_a_plan_may_not_move_on_either() {
    let project = Project::with_agent(PROGRAM, content);
    project.configure(TWO);
    project.env.write("plan.md", "# Plan\n\n- [ ] T001 First\n- [ ] T002 Second\n");
    project.commit("Plan");
    let run = project.run(&["run", "plan.md", "--as", "plan"]);
    assert_eq!(standings(&project), [APPROVAL, APPROVAL], "{run}");
    project.env.shell("cd .signoff/worktrees/run-1 && git commit -q --allow-empty -m later");
    assert_eq!(standings(&project), [APPROVAL, VOID]);
}

#[test]
fn an_approval_is_of_ones_own_branch() {
    let project = Project::with_agent(PROGRAM, content);
    project.run(&["add", "First", "-a"]);
    project.run(&["add", "Second", "-a"]);
    project.run(&["work"]);
    assert_eq!(standings(&project), [APPROVAL, APPROVAL]);
    project.env.shell("git -C .signoff/worktrees/task-1 reset -q --hard signoff/task-2-second");
    assert_eq!(standings(&project), [VOID, APPROVAL]);
    // Who merged it needs its branch no longer.
    project.git("worktree remove --force .signoff/worktrees/task-2");
    project.git("branch -q -D signoff/task-2-second");
    assert_eq!(standings(&project), [VOID, APPROVAL]);
}

#[test]
fn wherever_a_repository_keeps_its_branches_they_are_looked_at() {
    for how in ["--separate-git-dir=../elsewhere.git", "--ref-format=reftable"] {
        let project = Project::with_agent(PROGRAM, content);
        // An older git knows no other form of refs.
        let made = format!("rm -rf .git; git init -q -b main {how} && git add -A && git commit -q -m Start");
        if project.env.shell(&made).code != Some(0) {
            continue;
        }
        project.run(&["add", "T", "-a"]);
        let work = project.run(&["work"]);
        assert_eq!(standings(&project), [APPROVAL], "{how}: {work}");
        project.env.shell("cd .signoff/worktrees/task-1 && git commit -q --allow-empty -m later");
        assert_eq!(standings(&project), [VOID], "{how}");
    }
}

#[test]
fn two_tasks_of_one_branch_do_not_work_at_once() {
    let project = Project::with_agent(PROGRAM, |script| {
        script
            .rule(Rule::role("implement").write("f.txt", "x\n"))
            .rule(
                Rule::role("fix")
                    .append("f.txt", "improved\n")
                    .write("../../../../improving", "")
                    .wait_for("../../../../reviewed"),
            )
            .rule(Rule::role("review").say(APPROVED))
    });
    project.run(&["add", "T", "-a"]);
    project.run(&["work"]);
    let improving = project.start(&["improve", "1"]);
    let root = project.env.root().to_owned();
    until("it is being improved", || root.join("improving").exists());
    let refused = project.run(&["review", "1"]);
    assert_eq!(refused.code, Some(1), "{refused}");
    assert!(refused.stderr.contains("somebody else works in"), "{refused}");
    std::fs::write(root.join("reviewed"), "").expect("a written file");
    assert_eq!(project.env.finish(improving).code, Some(0));
    assert_eq!(project.git("show signoff/task-1-t:f.txt"), "x\nimproved\n");
}

#[test]
fn agents_do_not_inherit_what_git_tells_its_hooks() {
    let project =
        Project::with_agent(PROGRAM, |script| {
            script.rule(Rule::role("implement").shell(
                "echo x > f.txt; git add f.txt; git -c user.name=A -c user.email=a@b.c commit -qm agent",
            ))
        });
    project.run(&["add", "T"]);
    let (before, git) = (project.checkout(), project.env.work().join(".git").display().to_string());
    let work =
        project.env.run_with(&["work"], &[("GIT_DIR", &git), ("GIT_INDEX_FILE", &format!("{git}/index"))]);
    assert_eq!(work.code, Some(0), "{work}");
    assert_eq!(project.checkout(), before);
    assert_eq!(project.subjects("signoff/task-1-t"), "agent\n");
}

#[test]
fn a_pipe_in_place_of_a_file_is_not_waited_for() {
    let project = Project::with_agent(PROGRAM, |script| {
        script.rule(Rule::role("implement").shell("echo x > f.txt; mkfifo \"$SIGNOFF_USAGE_FILE\""))
    });
    project.run(&["add", "T"]);
    assert_eq!(project.run(&["work"]).code, Some(0));
}

/// Tries to write wherever a reviewer has no business, says where it could, and approves all the same.
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
fn where_the_system_can_it_keeps_reviewers_from_writing() {
    let project =
        Project::with_agent(PROGRAM, |script| script.rule(Rule::role("implement").write("f.txt", "good\n")));
    project.env.write("reviewer.sh", TRESPASSER);
    project.configure(
        "sandbox = true\n[agents.sh]\nkind = \"command\"\ncommand = [\"sh\", \"reviewer.sh\"]\n\
         [roles]\nimplement = \"scripted\"\n[reviewers.general]\nkind = \"general\"\nagent = \"sh\"\ncontract = \"markdown\"\n",
    );
    if !signoff_engine::confine::is_possible() {
        // An older kernel: there it is undone, as other tests show.
        return;
    }
    project.run(&["add", "T", "-a"]);
    let work = project.run(&["work"]);
    assert_eq!(verdict(&project), "\"APPROVED\"", "{work}");
    assert_eq!(work.stderr, "", "nothing was changed");
    let answer =
        project.list(".signoff/reviews").into_iter().find(|name| name.ends_with(".txt")).unwrap_or_default();
    assert_eq!(project.read(&format!(".signoff/reviews/{answer}")), "good\n\n**Verdict: APPROVED**\n");
    assert_eq!(project.run(&["status", "--json"]).json()["tasks"][0]["cost_usd"], 0.25);
}

/// A task whose reviewer approves each time, the first time only when somebody lets it.
fn with_a_pause(sandbox: bool) -> Project {
    let project = Project::with_agent(PROGRAM, |script| {
        script
            .rule(Rule::role("implement").write("f.txt", "good\n"))
            .rule(Rule::role("fix").say("Nothing to fix."))
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

/// The person changes the repository's settings while the reviewer is at it.
fn configured_meanwhile(project: &Project) -> Output {
    let program = project.env.start_group(&["work"]);
    // Opens when the reviewer does.
    let pause = std::fs::OpenOptions::new().write(true).open(project.env.root().join("pause")).unwrap();
    project.git("config color.ui never");
    drop(pause);
    project.env.finish(program)
}

#[test]
fn a_change_of_the_repository_is_told_once_and_spoils_no_later_review() {
    let project = with_a_pause(false);
    let work = configured_meanwhile(&project);
    assert_eq!(verdict(&project), "\"APPROVED\"", "{work}");
    assert!(work.stdout.contains("trying again"), "{work}");
    assert!(work.stdout.contains("APPROVED after 1 cycle"), "{work}");
    let told = "while general was reviewing, somebody changed config of the repository; left so";
    assert_eq!(work.stderr.matches(told).count(), 1, "{work}");
}

#[test]
fn who_was_held_did_not_change_the_repository() {
    if !Power::probe(None).is_whole() {
        eprintln!("SKIPPED: nobody can be held here");
        return;
    }
    let project = with_a_pause(true);
    let work = configured_meanwhile(&project);
    assert_eq!(verdict(&project), "\"APPROVED\"", "{work}");
    assert!(work.stdout.contains("APPROVED after 1 cycle"), "{work}");
    assert!(work.stderr.contains("somebody changed config of the repository; left so"), "{work}");
}

/// Such a program asks the system to end it with its parent.
#[test]
fn a_confined_reviewer_has_a_parent_that_stays() {
    let project =
        Project::with_agent(PROGRAM, |script| script.rule(Rule::role("implement").write("f.txt", "good\n")));
    if project.env.shell("command -v setpriv && ls /proc/self/task").code != Some(0) {
        // Nothing of that kind here.
        return;
    }
    // The keeper's main thread, and the one that started this.
    let counts =
        "cat > /dev/null\nls /proc/$PPID/task | wc -l | grep -qx 2 && echo '**Verdict: APPROVED**'\n";
    project.env.write("reviewer.sh", counts);
    project.configure(
        "sandbox = true\n[agents.sh]\nkind = \"command\"\ncommand = [\"setpriv\", \"--pdeathsig\", \"KILL\", \"sh\", \"reviewer.sh\"]\n\
         [roles]\nimplement = \"scripted\"\n[reviewers.general]\nkind = \"general\"\nagent = \"sh\"\ncontract = \"markdown\"\n",
    );
    project.run(&["add", "T", "-a"]);
    let work = project.run(&["work"]);
    assert_eq!(verdict(&project), "\"APPROVED\"", "{work}");
}

/// A project with a task whose work was approved, and its branch deleted.
fn without_its_branch() -> Project {
    let project = Project::with_agent(PROGRAM, |script| {
        script
            .rule(Rule::role("implement").write("f.txt", "good\n"))
            .rule(Rule::role("fix").append("f.txt", "improved\n"))
            .rule(strict())
    });
    project.run(&["add", "One", "-a"]);
    project.run(&["work"]);
    project.git("worktree remove --force .signoff/worktrees/task-1");
    project.git("branch -qD signoff/task-1-one");
    project
}

#[test]
fn a_branch_that_was_deleted_goes_on_at_its_last_commit() {
    let project = without_its_branch();
    insta::assert_snapshot!(project.run(&["diff", "1"]), @"
    exit 1
    --- stderr
    error: the branch signoff/task-1-one is gone
    hint: `signoff review 1` makes it again at its last commit, if git still has that
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
fn and_not_at_all_where_git_has_that_commit_no_more() {
    let project = without_its_branch();
    project.git("for-each-ref --format='delete %(refname)' refs/signoff | git update-ref --stdin");
    project.git("reflog expire --expire=now --all && git gc -q --prune=now");
    insta::assert_snapshot!(project.run(&["review", "1"]), @"
    exit 1
    --- stderr
    error: the branch signoff/task-1-one is gone
    hint: `git branch signoff/task-1-one COMMIT` makes it again, where git still has a commit of it; else add the task anew
    ");
    insta::assert_snapshot!(project.run(&["improve", "1"]), @"
    exit 1
    --- stderr
    error: the branch signoff/task-1-one is gone
    hint: `git branch signoff/task-1-one COMMIT` makes it again, where git still has a commit of it; else add the task anew
    ");
}

#[test]
fn a_retry_goes_on_at_its_last_commit_too() {
    let project = Project::with_agent(PROGRAM, |script| {
        script
            .rule(Rule::role("implement").write("f.txt", "bad\n"))
            .rule(Rule::role("fix").call(1).exit(1))
            .rule(Rule::role("fix").append("f.txt", "good\n"))
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
