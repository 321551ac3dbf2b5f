//! Signoff runs no command that is configured in the repository or the worktree.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use signoff_engine::git::{UncommittedPolicy, Worktree};

use crate::git::fixture::{GitFixture, snapshot, write};

const HOOKS: [&str; 19] = [
    "applypatch-msg",
    "pre-applypatch",
    "post-applypatch",
    "pre-commit",
    "pre-merge-commit",
    "prepare-commit-msg",
    "commit-msg",
    "post-commit",
    "pre-rebase",
    "post-checkout",
    "post-merge",
    "pre-push",
    "pre-receive",
    "update",
    "reference-transaction",
    "pre-auto-gc",
    "post-rewrite",
    "post-index-change",
    "fsmonitor-watchman",
];

/// Settings whose value is a command. Each command writes its name to the canary file.
const COMMANDS: [&str; 26] = [
    "filter.evil.clean",
    "filter.evil.smudge",
    "filter.evil.process",
    "diff.external",
    "diff.evil.command",
    "diff.evil.textconv",
    "merge.evil.driver",
    "core.fsmonitor",
    "core.sshCommand",
    "core.gitProxy",
    "core.pager",
    "core.editor",
    "core.askPass",
    "core.alternateRefsCommand",
    "sequence.editor",
    "credential.helper",
    "gpg.program",
    "gpg.ssh.program",
    "interactive.diffFilter",
    "uploadpack.packObjectsHook",
    "hook.evil.command",
    "trailer.evil.command",
    "pager.diff",
    "pager.status",
    "alias.status",
    "alias.add",
];

struct CommandTrap {
    fixture: GitFixture,
    canary: PathBuf,
    command: PathBuf,
}

impl CommandTrap {
    fn new() -> Self {
        let fixture = GitFixture::new();
        let (canary, command) = (fixture.path("canary"), fixture.path("evil"));
        write(&fixture.path(""), "evil", format!("#!/bin/sh\necho ran \"$@\" >> '{}'\ncat\n", canary.display()));
        fs::set_permissions(&command, fs::Permissions::from_mode(0o755)).expect("a working disk");
        Self { fixture, canary, command }
    }

    /// Installs every hook and setting with which an agent could make git run its commands.
    fn set(&self, worktree: &Worktree) {
        let common = self.fixture.root().join(".git");
        for hook in HOOKS {
            self.script(&common.join("hooks").join(hook), hook);
            self.script(&worktree.path().join("hooks").join(hook), hook);
        }
        let mut config = fs::read_to_string(common.join("config")).expect("a working disk");
        config.push_str(&self.config());
        config.push_str(&format!("[include]\n\tpath = {}\n", self.fixture.path("included").display()));
        config.push_str(&format!("[includeIf \"gitdir:**\"]\n\tpath = {}\n", self.fixture.path("included").display()));
        config.push_str("[extensions]\n\tworktreeConfig = true\n[commit]\n\tgpgSign = true\n[core]\n\tbare = false\n");
        fs::write(self.fixture.path("included"), self.config()).expect("a working disk");
        fs::write(common.join("config.worktree"), self.config()).expect("a working disk");
        fs::write(common.join("worktrees/one/config.worktree"), self.config()).expect("a working disk");
        fs::write(common.join("config"), config).expect("a working disk");
        let attributes = "* filter=evil diff=evil merge=evil\n";
        write(&common, "info/attributes", attributes);
        write(worktree.path(), ".gitattributes", attributes);
    }

    fn config(&self) -> String {
        let line = |name: &str| {
            let (section, key) = name.rsplit_once('.').expect("a dot");
            let section = section.replacen('.', " \"", 1) + if section.contains('.') { "\"" } else { "" };
            format!("[{section}]\n\t{key} = {} {name}\n", self.quoted())
        };
        let lines: String = COMMANDS.iter().map(|name| line(name)).collect();
        lines + "[filter \"evil\"]\n\trequired = true\n[hook \"evil\"]\n\tevent = pre-commit\n\tevent = post-checkout\n"
    }

    fn quoted(&self) -> String {
        format!("'{}'", self.command.display())
    }

    fn script(&self, path: &Path, name: &str) {
        fs::create_dir_all(path.parent().expect("a working disk")).expect("a working disk");
        fs::write(path, format!("#!/bin/sh\necho {name} >> '{}'\n", self.canary.display())).expect("a working disk");
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("a working disk");
    }

    fn triggered(&self) -> String {
        fs::read_to_string(&self.canary).unwrap_or_default()
    }
}

/// Runs every git operation of signoff once.
fn do_everything(trap: &CommandTrap, worktree: &Worktree) {
    let fixture = &trap.fixture;
    let repository = fixture.repository();
    let base = fixture.head();
    let top = worktree.path();
    write(top, "README.md", "changed\n");
    write(top, "a.txt", "new\n");
    worktree.diff(&base).expect("git at work");
    worktree.commit_all("work").expect("git at work");
    let committed = snapshot(worktree);
    write(top, "README.md", "changed again\n");
    write(top, "b.txt", "new\n");
    assert_eq!(worktree.undo_since(&committed).expect("git at work").len(), 2);
    worktree.diff(&base).expect("git at work");
    fs::remove_file(top.join("a.txt")).expect("git at work");
    worktree.undo_since(&committed).expect("git at work");
    fixture.write("README.md", "the user's\n");
    repository.snapshot_commit().expect("git at work");
    repository.base().expect("git at work");
    repository.checkout_head().expect("git at work");
    repository.submodules().expect("git at work");
    repository.log_subjects(&base, &worktree.head().expect("git at work").commit).expect("git at work");
    let two = fixture.worktree("two");
    repository.remove_worktree(two.path(), UncommittedPolicy::Keep).expect("git at work");
    let copy = repository
        .add_detached(&fixture.path("copy"), &worktree.head().expect("git at work").commit)
        .expect("git at work");
    repository.remove_worktree(copy.path(), UncommittedPolicy::Discard).expect("git at work");
}

#[test]
fn no_command_of_the_repository_is_run() {
    let trap = CommandTrap::new();
    // Once with the trap set before the repository is discovered, once after.
    let worktree = trap.fixture.worktree("one");
    trap.set(&worktree);
    do_everything(&trap, &worktree);
    let fresh = trap.fixture.repository().worktree(worktree.path()).unwrap();
    do_everything(&trap, &fresh);
    assert_eq!(trap.triggered(), "");
    // The trap works: the user's own git triggers it.
    trap.fixture.try_in(worktree.path(), &["status"]);
    trap.fixture.try_in(worktree.path(), &["commit", "--allow-empty", "-m", "x"]);
    assert_ne!(trap.triggered(), "");
}

#[test]
fn filters_do_not_change_committed_content() {
    let trap = CommandTrap::new();
    let worktree = trap.fixture.worktree("one");
    trap.set(&worktree);
    write(worktree.path(), "secret.txt", "as it is\n");
    worktree.commit_all("x").unwrap();
    let blob = trap.fixture.run_in(worktree.path(), &["cat-file", "blob", "HEAD:secret.txt"]);
    assert_eq!(blob, "as it is\n");
}

#[test]
fn replace_refs_do_not_change_content() {
    let fixture = GitFixture::new();
    let worktree = fixture.worktree("one");
    let base = fixture.head();
    write(worktree.path(), "evil", "evil\n");
    let head = worktree.commit_all("evil").unwrap().head;
    fixture.run_in(worktree.path(), &["replace", head.commit.as_str(), base.as_str()]);
    assert!(worktree.diff(&base).unwrap().patch.contains("+evil"));
}
