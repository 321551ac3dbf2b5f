//! What a writer does to git's own files, and what becomes of it when it has ended.

use signoff_core::hold::Hold;
use signoff_testkit::Project;

use crate::hold::{attempts, project, ways, work};

const APPROVES: &str = "echo\necho '**Verdict: APPROVED**'\n";

/// What all writers here do first: some work, and a look at where their git directory is.
const BEGIN: &str = "echo good > f.txt\nG=$(git rev-parse --absolute-git-dir)\nC=$(git rev-parse --path-format=absolute --git-common-dir)\n";

/// A project with a file that somebody would like to change unseen.
fn victim(write: &str) -> Project {
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

fn links(project: &Project) -> String {
    project.env.shell("find .git ! -type f ! -type d ! -path '.git/signoff/sealed-*'").stdout
}

/// Links lead git out of the sandbox, locks hold it up, and lies send it elsewhere: none of them is there afterwards.
#[test]
fn what_a_writer_puts_into_its_git_directory_leads_nowhere() {
    let ways_out = [
        ("rm -f $G/COMMIT_EDITMSG; ln -s ~/victim $G/COMMIT_EDITMSG\n", "\"COMMIT_EDITMSG\""),
        (
            "rm -f $G/COMMIT_EDITMSG; ln -s $PWD/../../../.git/config $G/COMMIT_EDITMSG\n",
            "\"COMMIT_EDITMSG\"",
        ),
        ("mkdir -p $G/logs; rm -f $G/logs/HEAD; ln -s ~/victim $G/logs/HEAD\n", "\"logs/HEAD\""),
        ("rm -rf $G/logs $G/refs; ln -s ~ $G/logs; ln -s ~/victim $G/ORIG_HEAD\n", "\"logs\""),
        ("mkfifo $G/MERGE_HEAD\n", "\"MERGE_HEAD\""),
        (
            "rm -rf $G/*; for one in HEAD commondir gitdir index locked; do ln -s ~/victim $G/$one; done\n",
            "and 2 more",
        ),
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
        for (script, told) in ways_out {
            let project = victim(script);
            let (config, checkout) = (project.read(".git/config"), project.checkout());
            let worked = work(&project, way);
            assert_eq!(worked.code, Some(0), "{way:?}: {script}{worked}");
            assert_eq!(project.env.shell("ls ~; cat ~/victim").stdout, "victim\nvictim\n", "{script}");
            assert_eq!((project.read(".git/config"), project.checkout()), (config, checkout), "{script}");
            assert_eq!(project.git("show signoff/task-1-t:f.txt"), "good\n", "{script}");
            assert_eq!(links(&project), "", "{script}");
            assert_eq!(
                project.git("-C .signoff/worktrees/task-1 status --short --branch"),
                "## signoff/task-1-t\n"
            );
            project.git("fsck --strict && git gc -q");
            let notes = attempts(&project, "notes");
            let odd = notes.contains("links or pipes were put into its git directory; taken away: ");
            assert_eq!(odd, !told.is_empty(), "{script}{notes}");
            assert!(notes.replace('\\', "").contains(told), "{script}{notes}");
        }
    }
}

/// An object of the person's, by another content under the same name.
const FORGE: &str = r#"
forge() {
    id=$(git rev-parse "$1"); own=$C/objects/$(echo $id | cut -c1-2)
    made=$(echo "$2" | git hash-object -w --stdin)
    mkdir -p $own; rm -f $own/$(echo $id | cut -c3-)
    mv $C/objects/$(echo $made | cut -c1-2)/$(echo $made | cut -c3-) $own/$(echo $id | cut -c3-)
}
"#;

#[test]
fn the_persons_objects_are_nobody_s_to_change() {
    let forged = format!("{FORGE}forge HEAD:src/a.txt evil\n");
    let committed = format!("{forged}git show HEAD:src/a.txt > seen.txt; git add -A; git commit -qm Mine\n");
    let thrown = "rm -rf ../../../.git/objects/??  ../../../.git/objects/pack/* $C/objects\n";
    let garbage = "mkdir -p $C/objects/pack; echo x > $C/objects/pack/pack-1.pack; echo ~/none > $C/objects/info/alternates\n";
    for way in ways() {
        for script in [&forged, &committed, thrown, garbage] {
            let project = victim(script);
            let worked = work(&project, way);
            assert_eq!(worked.code, Some(0), "{way:?}: {script}{worked}");
            project.git("merge -q signoff/task-1-t && git fsck --strict");
            assert_eq!(project.git("show main:src/a.txt"), "x\n", "{script}");
            assert_eq!(project.git("show main:f.txt"), "good\n", "{script}");
            assert_eq!(project.env.shell("ls .git/signoff/lent 2>/dev/null").stdout, "", "{script}");
        }
    }
}

/// Nobody approves what git could not show.
#[test]
fn commits_that_are_not_whole_fail_the_attempt() {
    let commit = "git add -A; git commit -qm Mine\n";
    let lost =
        format!("{commit}id=$(git rev-parse HEAD:f.txt); rm -f $C/objects/$(echo $id | cut -c1-2)/*\n");
    let forged = format!("{FORGE}{commit}forge HEAD:f.txt evil\n");
    let unknown = "echo 0123456789012345678901234567890123456789 > $G/HEAD\n".to_owned();
    for script in [lost, forged, unknown] {
        let project = victim(&script);
        let worked = project.run(&["work"]);
        assert_eq!(worked.code, Some(1), "{script}{worked}");
        assert!(worked.stdout.contains("is not whole: "), "{worked}");
        assert!(!worked.stdout.contains("APPROVED"), "{worked}");
        assert_eq!(
            project.git("-C .signoff/worktrees/task-1 status --short"),
            " M f.txt\n".replace(" M", "??"),
            "{script}"
        );
        project.git("fsck --strict && git gc -q");
        // What is in the files is work all the same.
        project.env.write("write.sh", "cat > /dev/null\necho more >> f.txt\n");
        assert_eq!(project.run(&["retry", "1"]).code, Some(0));
        assert_eq!(project.git("show signoff/task-1-t:f.txt"), "good\nmore\n");
    }
}

/// What people's agents do with git, and what must come of it.
#[test]
fn whatever_a_writer_commits_comes_over() {
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
        let project = victim(script);
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

/// Objects that lie in yet another repository, and refs that have no files.
#[test]
fn a_repository_that_borrows_objects_is_worked_in() {
    let project = victim("git add -A; git commit -qm One; git log --oneline > log.txt\n");
    project.git("pack-refs --all && git gc -q && mv .git/objects ../lender && mkdir -p .git/objects/info .git/objects/pack && echo ../../../lender > .git/objects/info/alternates");
    let worked = project.run(&["work"]);
    assert_eq!(worked.code, Some(0), "{worked}");
    assert_eq!(
        project.git("show signoff/task-1-t:log.txt").lines().count(),
        project.git("log --oneline signoff/task-1-t~1").lines().count()
    );
    project.git("fsck --strict");
}

/// Whenever the program is killed, what a writer committed is there when it goes on.
#[test]
fn commits_of_a_writer_outlive_the_program() {
    let places = ["exit", "lent", "taken_over", "taken_back", "commit", "committed"];
    for place in places {
        let project = victim("test -f once.txt || { echo x > once.txt; git add -A; git commit -qm Mine; }\n");
        let killed = project.env.run_with(&["work"], &[("SIGNOFF_FAILPOINT", &format!("{place}:1"))]);
        assert_eq!(killed.code, None, "{place}: {killed}");
        let worked = project.run(&["work"]);
        assert_eq!(worked.code, Some(0), "{place}: {worked}");
        assert_eq!(project.git("log --format=%s signoff/task-1-t | grep -c Mine"), "1\n", "{place}");
        assert_eq!(
            project.git("-C .signoff/worktrees/task-1 status --short --branch"),
            "## signoff/task-1-t\n"
        );
        project.git("fsck --strict");
    }
}

/// A reviewer in a copy tells git lies about where it is: the next task is none the worse for it.
#[test]
fn a_copy_is_gone_with_all_that_was_said_in_it() {
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

/// The person's own git works while a writer is at work, whatever it has committed.
#[test]
fn the_person_s_git_does_not_need_what_a_writer_made() {
    let asks = "git add -A; git commit -qm Mine; cd ../../..; git fsck --strict > .signoff-fsck 2>&1 && git -C . worktree list > /dev/null && echo fine > $OLDPWD/fine.txt\n";
    let project = victim(&asks.replace(".signoff-fsck", "/dev/null"));
    assert_eq!(project.run(&["work"]).code, Some(0));
    assert_eq!(project.git("show signoff/task-1-t:fine.txt"), "fine\n");
}

/// Whoever is not held leaves locks too.
#[test]
fn locks_of_one_who_was_not_held_hold_nobody_up() {
    let project = victim(": > $G/HEAD.lock; : > $G/index.lock; ln -s ~/victim $G/COMMIT_EDITMSG\n");
    let worked = work(&project, Hold::Nobody);
    assert_eq!(worked.code, Some(0), "{worked}");
    assert_eq!(project.env.shell("cat ~/victim").stdout, "victim\n");
}

/// A repository within the worktree has a configuration of its own, which names programs.
#[test]
fn nothing_runs_that_a_repository_within_the_worktree_names() {
    let makes = "git init -q sub; cd sub; git config user.name S; git config user.email s@s; echo x > x; git add x; \
        git commit -qm Sub; printf '#!/bin/sh\\necho x > ~/run\\n' > ../run.sh; chmod +x ../run.sh; \
        git config core.fsmonitor $PWD/../run.sh; git config filter.f.clean $PWD/../run.sh; echo '* filter=f' > .git/info/attributes; \
        echo y > x; cd ..\n";
    let staged = format!("{makes}git add sub 2> /dev/null\n");
    let committed = format!("{makes}git add sub f.txt 2> /dev/null; git commit -qm Sub; echo z > z.txt\n");
    let moved = format!("{committed}git -C sub -c core.fsmonitor= commit -q --allow-empty -m More\n");
    for script in [makes, &staged, &committed, &moved] {
        let project = victim(script);
        let worked = project.run(&["work"]);
        assert_eq!(worked.code, Some(0), "{script}{worked}");
        assert_eq!(project.env.shell("ls ~").stdout, "victim\n", "{script}");
        assert_eq!(project.git("show signoff/task-1-t:f.txt"), "good\n");
        let sub = project.git("ls-tree signoff/task-1-t sub");
        let at = project.git("-C .signoff/worktrees/task-1/sub -c core.fsmonitor= rev-parse HEAD");
        assert_eq!(sub.contains(at.trim_end()), sub.starts_with("160000"), "{script}{sub}");
    }
}
