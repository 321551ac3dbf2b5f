//! Sandboxed writers that tamper with git's own files: the repository stays intact and commits are imported.

use signoff_core::sandbox::SandboxBackend;
use signoff_testkit::TestProject;

use crate::sandbox::{attempts, project, ways, work};

const APPROVES: &str = "echo\necho '**Verdict: APPROVED**'\n";

/// Common to all writers here: some work, and the paths of their git directories.
const BEGIN: &str = "echo good > f.txt\nG=$(git rev-parse --absolute-git-dir)\nC=$(git rev-parse --path-format=absolute --git-common-dir)\n";

/// A project with files that a writer tries to change.
fn attacked_project(write: &str) -> TestProject {
    let project = project(
        "sandbox = true\n[gate]\nmax_cycles = 1",
        &[("write", &format!("{BEGIN}{write}true\n")), ("review", APPROVES)],
    );
    project.env.write("src/a.txt", "x\n");
    project.commit("Victim");
    project.env.shell("echo victim > ~/victim");
    project.run(&["add", "T", "-a"]);
    project
}

fn links(project: &TestProject) -> String {
    project.env.shell("find .git ! -type f ! -type d ! -path '.git/signoff/sealed-*'").stdout
}

/// Links out of the sandbox, stale locks and false paths are gone after the attempt.
#[test]
fn files_that_a_writer_plants_in_its_git_directory_have_no_effect() {
    let ways_out = [
        ("rm -f $G/COMMIT_EDITMSG; ln -s ~/victim $G/COMMIT_EDITMSG\n", "\"COMMIT_EDITMSG\""),
        ("rm -f $G/COMMIT_EDITMSG; ln -s $PWD/../../../.git/config $G/COMMIT_EDITMSG\n", "\"COMMIT_EDITMSG\""),
        ("mkdir -p $G/logs; rm -f $G/logs/HEAD; ln -s ~/victim $G/logs/HEAD\n", "\"logs/HEAD\""),
        ("rm -rf $G/logs $G/refs; ln -s ~ $G/logs; ln -s ~/victim $G/ORIG_HEAD\n", "\"logs\""),
        ("mkfifo $G/MERGE_HEAD\n", "\"MERGE_HEAD\""),
        ("rm -rf $G/*; for one in HEAD commondir gitdir index locked; do ln -s ~/victim $G/$one; done\n", "and 2 more"),
        (": > $G/HEAD.lock; : > $G/index.lock; : > $C/packed-refs.lock\n", ""),
        ("echo locked > $G/locked; echo $HOME/.git > $G/gitdir; echo ~ > $G/commondir\n", ""),
        ("rm -rf $G $C\n", ""),
        ("rm -rf $G; ln -s ~ $G\n", ""),
        ("rm -rf $C; ln -s $PWD/../../../.git $C\n", ""),
        ("chmod 000 $G/index $G/HEAD; chmod 000 $G $C/objects $C; chmod 000 $G/..\n", ""),
        ("echo 'ref: refs/heads/..' > $G/HEAD\n", ""),
        ("echo x > $G/index; echo ref: refs/heads/main > $G/HEAD\n", ""),
    ];
    for way in ways() {
        for (script, note) in ways_out {
            let project = attacked_project(script);
            let (config, checkout) = (project.read(".git/config"), project.checkout());
            let worked = work(&project, way);
            assert_eq!(worked.code, Some(0), "{way:?}: {script}{worked}");
            assert_eq!(project.env.shell("ls ~; cat ~/victim").stdout, "victim\nvictim\n", "{script}");
            assert_eq!((project.read(".git/config"), project.checkout()), (config, checkout), "{script}");
            assert_eq!(project.git("show signoff/task-1-t:f.txt"), "good\n", "{script}");
            assert_eq!(links(&project), "", "{script}");
            assert_eq!(project.git("-C .signoff/worktrees/task-1 status --short --branch"), "## signoff/task-1-t\n");
            project.git("fsck --strict && git gc -q");
            let notes = attempts(&project, "notes");
            let odd = notes.contains("links or pipes were put into its git directory; removed: ");
            assert_eq!(odd, !note.is_empty(), "{script}{notes}");
            assert!(notes.replace('\\', "").contains(note), "{script}{notes}");
        }
    }
}

/// Replaces an object of the repository by one with other content under the same id.
const FORGE: &str = r#"
forge() {
    id=$(git rev-parse "$1"); own=$C/objects/$(echo $id | cut -c1-2)
    made=$(echo "$2" | git hash-object -w --stdin)
    mkdir -p $own; rm -f $own/$(echo $id | cut -c3-)
    mv $C/objects/$(echo $made | cut -c1-2)/$(echo $made | cut -c3-) $own/$(echo $id | cut -c3-)
}
"#;

#[test]
fn a_writer_cannot_change_the_persons_objects() {
    let forged = format!("{FORGE}forge HEAD:src/a.txt evil\n");
    let committed = format!("{forged}git show HEAD:src/a.txt > seen.txt; git add -A; git commit -qm Mine\n");
    let thrown = "rm -rf ../../../.git/objects/??  ../../../.git/objects/pack/* $C/objects\n";
    let garbage =
        "mkdir -p $C/objects/pack; echo x > $C/objects/pack/pack-1.pack; echo ~/none > $C/objects/info/alternates\n";
    for way in ways() {
        for script in [&forged, &committed, thrown, garbage] {
            let project = attacked_project(script);
            let worked = work(&project, way);
            assert_eq!(worked.code, Some(0), "{way:?}: {script}{worked}");
            project.git("merge -q signoff/task-1-t && git fsck --strict");
            assert_eq!(project.git("show main:src/a.txt"), "x\n", "{script}");
            assert_eq!(project.git("show main:f.txt"), "good\n", "{script}");
            assert_eq!(project.env.shell("ls .git/signoff/lent 2>/dev/null").stdout, "", "{script}");
        }
    }
}

/// Incomplete commits cannot be reviewed.
#[test]
fn incomplete_commits_fail_the_attempt() {
    let commit = "git add -A; git commit -qm Mine\n";
    let lost = format!("{commit}id=$(git rev-parse HEAD:f.txt); rm -f $C/objects/$(echo $id | cut -c1-2)/*\n");
    let forged = format!("{FORGE}{commit}forge HEAD:f.txt evil\n");
    let unknown = "echo 0123456789012345678901234567890123456789 > $G/HEAD\n".to_owned();
    for script in [lost, forged, unknown] {
        let project = attacked_project(&script);
        let worked = project.run(&["work"]);
        assert_eq!(worked.code, Some(1), "{script}{worked}");
        assert!(worked.stdout.contains("are incomplete: "), "{worked}");
        assert!(!worked.stdout.contains("APPROVED"), "{worked}");
        assert_eq!(
            project.git("-C .signoff/worktrees/task-1 status --short"),
            " M f.txt\n".replace(" M", "??"),
            "{script}"
        );
        project.git("fsck --strict && git gc -q");
        // The files are kept as work.
        project.env.write("write.sh", "cat > /dev/null\necho more >> f.txt\n");
        assert_eq!(project.run(&["retry", "1"]).code, Some(0));
        assert_eq!(project.git("show signoff/task-1-t:f.txt"), "good\nmore\n");
    }
}

/// Usual ways to commit, and the expected result of each.
#[test]
fn every_kind_of_commit_is_imported() {
    let many = "for n in $(seq 150); do echo $n > $n.txt; done; git add -A; git commit -qm Many\n";
    let stories: [(&str, &str); 10] = [
        (
            "git add -A; git commit -qm One; echo better > f.txt; git commit -qam Two; git gc -q --prune=now 2>/dev/null\n",
            "better\n",
        ),
        (many, "good\n"),
        ("git add f.txt; echo more >> f.txt\n", "good\nmore\n"),
        ("echo f.txt > .gitignore; git add -f f.txt; git add -A\n", "good\n"),
        ("git add -A; git commit -qm One; git reset -q --soft HEAD~1\n", "good\n"),
        ("git add -A; git commit -qm One; git commit -q --amend -m Better\n", "good\n"),
        (
            "git add -A; git commit -qm One; git fetch -q ../../../../other main && git merge -q --allow-unrelated-histories -m Merged FETCH_HEAD\n",
            "good\n",
        ),
        (
            "git add -A; git commit -qm One; git fetch -q ../../../../other main && git merge -q --no-commit --allow-unrelated-histories FETCH_HEAD\n",
            "good\n",
        ),
        ("git add -A; git commit -qm One; echo x > $G/index\n", "good\n"),
        ("echo f.txt > .gitignore; git add -f f.txt; git update-index --split-index\n", "good\n"),
    ];
    for (script, content) in stories {
        let project = attacked_project(script);
        project.git("init -q ../other && cd ../other && echo o > o.txt && git add . && git -c user.name=O -c user.email=o@o commit -qm Other && git branch -M main");
        let worked = project.run(&["work"]);
        assert_eq!(worked.code, Some(0), "{script}{worked}");
        assert_eq!(project.git("show signoff/task-1-t:f.txt"), content, "{script}");
        let merged = project.git("ls-tree --name-only signoff/task-1-t").contains("o.txt");
        assert_eq!(merged, script.contains("FETCH_HEAD"), "{script}");
        let parents = project.git("log --format=%p signoff/task-1-t | grep -c ' ' || true");
        assert_eq!(parents.trim(), if merged { "1" } else { "0" }, "{script}");
        project.git("fsck --strict && git gc -q");
        assert_eq!(project.env.shell("ls .git/signoff/lent 2>/dev/null").stdout, "", "{script}");
    }
}

/// Objects in another repository (alternates), and refs without files.
#[test]
fn a_repository_with_alternates_works() {
    let project = attacked_project("git add -A; git commit -qm One; git log --oneline > log.txt\n");
    project.git("pack-refs --all && git gc -q && mv .git/objects ../lender && mkdir -p .git/objects/info .git/objects/pack && echo ../../../lender > .git/objects/info/alternates");
    let worked = project.run(&["work"]);
    assert_eq!(worked.code, Some(0), "{worked}");
    assert_eq!(
        project.git("show signoff/task-1-t:log.txt").lines().count(),
        project.git("log --oneline signoff/task-1-t~1").lines().count()
    );
    project.git("fsck --strict");
}

/// Wherever the program is killed, the writer's commits are there after the restart.
#[test]
fn commits_of_a_writer_survive_a_kill() {
    let places = ["exit", "sandbox_entered", "sandbox_imported", "sandbox_removed", "commit", "committed"];
    for place in places {
        let project = attacked_project("test -f once.txt || { echo x > once.txt; git add -A; git commit -qm Mine; }\n");
        let killed = project.env.run_with(&["work"], &[("SIGNOFF_FAILPOINT", &format!("{place}:1"))]);
        assert_eq!(killed.code, None, "{place}: {killed}");
        let worked = project.run(&["work"]);
        assert_eq!(worked.code, Some(0), "{place}: {worked}");
        assert_eq!(project.git("log --format=%s signoff/task-1-t | grep -c Mine"), "1\n", "{place}");
        assert_eq!(project.git("-C .signoff/worktrees/task-1 status --short --branch"), "## signoff/task-1-t\n");
        project.git("fsck --strict");
    }
}

/// A reviewer in a copy writes false paths into its git directory; the next task is not affected.
#[test]
fn a_removed_copy_leaves_no_trace_in_the_repository() {
    let lies = "G=$(git rev-parse --absolute-git-dir)\n\
        try() { (\"$@\") 2>/dev/null; }\n\
        for g in $G ../../../.git/worktrees/$(basename $PWD); do\n\
        try sh -c \"echo locked > $g/locked\"; try sh -c \"echo ${PWD%/*}/task-2/.git > $g/gitdir\"; try ln -s ~/victim $g/COMMIT_EDITMSG\n\
        done\n";
    for way in ways() {
        let review = format!("{lies}{APPROVES}");
        let project = project(
            "sandbox = true\nreview_workspace = \"copy\"",
            &[("write", "echo good$SIGNOFF_TASK_ID > f.txt\n"), ("review", &review)],
        );
        project.run(&["add", "T", "-a"]);
        project.run(&["add", "U", "-a"]);
        let worked = work(&project, way);
        assert_eq!(worked.code, Some(0), "{way:?}: {worked}");
        assert_eq!(project.git("show signoff/task-2-u:f.txt"), "good2\n");
        assert_eq!(project.list(".git/worktrees"), ["task-1", "task-2"]);
        project.git("gc -q");
    }
}

/// The person's git works while a writer runs, whatever the writer has committed.
#[test]
fn the_persons_git_does_not_depend_on_a_writers_objects() {
    let asks = "git add -A; git commit -qm Mine; cd ../../..; git fsck --strict > .signoff-fsck 2>&1 && git -C . worktree list > /dev/null && echo fine > $OLDPWD/fine.txt\n";
    let project = attacked_project(&asks.replace(".signoff-fsck", "/dev/null"));
    assert_eq!(project.run(&["work"]).code, Some(0));
    assert_eq!(project.git("show signoff/task-1-t:fine.txt"), "fine\n");
}

/// An agent without a sandbox can leave locks, too.
#[test]
fn locks_left_by_an_unsandboxed_agent_block_nothing() {
    let project = attacked_project(": > $G/HEAD.lock; : > $G/index.lock; ln -s ~/victim $G/COMMIT_EDITMSG\n");
    let worked = work(&project, SandboxBackend::None);
    assert_eq!(worked.code, Some(0), "{worked}");
    assert_eq!(project.env.shell("cat ~/victim").stdout, "victim\n");
}

/// A repository within the worktree has its own configuration, which names programs.
#[test]
fn programs_named_by_a_nested_repository_do_not_run() {
    let makes = "git init -q sub; cd sub; git config user.name S; git config user.email s@s; echo x > x; git add x; \
        git commit -qm Sub; printf '#!/bin/sh\\necho x > ~/run\\n' > ../run.sh; chmod +x ../run.sh; \
        git config core.fsmonitor $PWD/../run.sh; git config filter.f.clean $PWD/../run.sh; echo '* filter=f' > .git/info/attributes; \
        echo y > x; cd ..\n";
    let staged = format!("{makes}git add sub 2> /dev/null\n");
    let committed = format!("{makes}git add sub f.txt 2> /dev/null; git commit -qm Sub; echo z > z.txt\n");
    let moved = format!("{committed}git -C sub -c core.fsmonitor= commit -q --allow-empty -m More\n");
    for script in [makes, &staged, &committed, &moved] {
        let project = attacked_project(script);
        let worked = project.run(&["work"]);
        assert_eq!(worked.code, Some(0), "{script}{worked}");
        assert_eq!(project.env.shell("ls ~").stdout, "victim\n", "{script}");
        assert_eq!(project.git("show signoff/task-1-t:f.txt"), "good\n");
        let sub = project.git("ls-tree signoff/task-1-t sub");
        let at = project.git("-C .signoff/worktrees/task-1/sub -c core.fsmonitor= rev-parse HEAD");
        assert_eq!(sub.contains(at.trim_end()), sub.starts_with("160000"), "{script}{sub}");
    }
}
