//! Discovers repositories and reads their state.

use std::fs;

use signoff_core::ids::Commit;
use signoff_engine::git::{CheckoutHead, Git, GitError, Repository};

use crate::git::fixture::GitFixture;

fn discovered(fixture: &GitFixture, directory: &str) -> Repository {
    Repository::discover(&fixture.git, &fixture.path(directory)).expect("a repository")
}

#[test]
fn the_root_is_the_main_worktree_from_every_directory() {
    let fixture = GitFixture::new();
    fixture.run(&["worktree", "add", "-q", "-b", "side", "../si de"]);
    for directory in ["repo", "repo/src", "si de", "si de/src"] {
        assert_eq!(discovered(&fixture, directory).root(), fixture.root(), "{directory}");
    }
    assert_eq!(discovered(&fixture, "repo/src").checkout(), fixture.root());
    assert_eq!(discovered(&fixture, "si de/src").checkout(), fixture.path("si de"));
}

#[test]
fn the_state_of_the_checkout_is_read() {
    let fixture = GitFixture::empty();
    assert_eq!(fixture.repository().checkout_head().unwrap(), CheckoutHead::Unborn { branch: "main".to_owned() });
    assert!(matches!(fixture.repository().base(), Err(GitError::NoCommits)));
    fixture.write("a", "a");
    fixture.commit("first");
    let commit = fixture.head();
    assert_eq!(
        fixture.repository().checkout_head().unwrap(),
        CheckoutHead::Branch { name: "main".to_owned(), commit: commit.clone() }
    );
    fixture.run(&["checkout", "-q", "--detach"]);
    assert_eq!(fixture.repository().checkout_head().unwrap(), CheckoutHead::Detached { commit });
    fixture.run(&["checkout", "-q", "-b", "grün/✓"]);
    assert!(
        matches!(fixture.repository().checkout_head().unwrap(), CheckoutHead::Branch { name, .. } if name == "grün/✓")
    );
}

#[test]
fn unusable_repositories_are_errors() {
    let fixture = GitFixture::new();
    fixture.run(&["clone", "-q", "--bare", ".", "../bare.git"]);
    let find = |directory| Repository::discover(&fixture.git, &fixture.path(directory));
    assert!(matches!(find("home"), Err(GitError::NotARepository(_))));
    assert!(matches!(find("nowhere"), Err(GitError::NotARepository(_))));
    assert!(matches!(find("bare.git"), Err(GitError::Bare(_))));
    assert!(matches!(find("repo/.git"), Err(GitError::Bare(_))));
}

#[test]
fn without_git_there_is_a_clear_error() {
    let fixture = GitFixture::new();
    let git = Git::new([("PATH".into(), fixture.path("home").into_os_string())]);
    assert!(matches!(Repository::discover(&git, &fixture.root()), Err(GitError::NoGit)));
}

#[test]
fn a_bare_repository_with_worktrees_is_its_own_root() {
    let fixture = GitFixture::new();
    fixture.run(&["clone", "-q", "--bare", ".", "../bare.git"]);
    fixture.run_in(&fixture.path("bare.git"), &["worktree", "add", "-q", "../one", "main"]);
    assert_eq!(discovered(&fixture, "one").root(), fixture.path("bare.git"));
    assert_eq!(discovered(&fixture, "one").checkout(), fixture.path("one"));
}

#[test]
fn git_environment_variables_are_ignored() {
    let fixture = GitFixture::new();
    let elsewhere = ["GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR"];
    let environment = elsewhere.map(|name| (name.into(), "/nowhere".into()));
    #[expect(clippy::disallowed_methods, reason = "the test needs the machine's PATH")]
    let path = std::env::var_os("PATH").unwrap();
    let git = Git::new(environment.into_iter().chain([("PATH".into(), path)]));
    let repository = Repository::discover(&git, &fixture.root()).unwrap();
    assert_eq!(repository.resolve("HEAD").unwrap(), fixture.head());
}

#[test]
fn the_default_branch_and_the_base() {
    let fixture = GitFixture::new();
    let first = fixture.head();
    assert_eq!(fixture.repository().default_branch().unwrap(), "main");
    assert_eq!(fixture.repository().base().unwrap(), first);
    fixture.run(&["checkout", "-qb", "topic"]);
    fixture.write("a", "a");
    fixture.commit("second");
    assert_eq!(fixture.repository().base().unwrap(), first);
    fixture.run(&["branch", "-m", "main", "trunk"]);
    assert_eq!(fixture.repository().default_branch().unwrap(), "trunk");
    fixture.run(&["branch", "-D", "trunk"]);
    assert_eq!(fixture.repository().default_branch().unwrap(), "topic");
    assert_eq!(fixture.repository().base().unwrap(), fixture.head());
}

#[test]
fn the_remote_names_the_default_branch() {
    let fixture = GitFixture::new();
    fixture.run(&["branch", "-m", "develop"]);
    fixture.run(&["clone", "-q", ".", "../clone"]);
    let clone = fixture.path("clone");
    fixture.run_in(&clone, &["checkout", "-qb", "main"]);
    fixture.run_in(&clone, &["branch", "-qD", "develop"]);
    let repository = discovered(&fixture, "clone");
    assert_eq!(repository.default_branch().unwrap(), "develop");
    assert_eq!(repository.base().unwrap(), fixture.head());
}

#[test]
fn without_a_common_ancestor_the_base_is_head() {
    let fixture = GitFixture::new();
    fixture.run(&["checkout", "-q", "--orphan", "new"]);
    fixture.commit("unrelated");
    assert_eq!(fixture.repository().base().unwrap(), fixture.head());
}

#[test]
fn revisions_and_subjects() {
    let fixture = GitFixture::new();
    let first = fixture.head();
    for subject in ["second", "third – ✓"] {
        fixture.write(subject, "");
        fixture.commit(subject);
    }
    let repository = fixture.repository();
    assert_eq!(repository.log_subjects(&first, &fixture.head()).unwrap(), ["third – ✓", "second"]);
    assert_eq!(repository.resolve("HEAD~2").unwrap(), first);
    for unknown in ["nowhere", "--all", "HEAD^{tree}", ""] {
        assert!(matches!(repository.resolve(unknown), Err(GitError::UnknownRevision(_))), "{unknown}");
    }
    assert_eq!(repository.head_of("main").unwrap().unwrap().commit, fixture.head());
    assert_eq!(repository.head_of("mai").unwrap(), None);
    assert!(!repository.has_branch("nowhere").unwrap());
}

#[test]
fn submodules_are_named() {
    let fixture = GitFixture::new();
    assert_eq!(fixture.repository().submodules().unwrap(), Vec::<String>::new());
    let commit = fixture.head();
    fixture.run(&["update-index", "--add", "--cacheinfo", &format!("160000,{commit},lib/the other")]);
    fixture.run(&["commit", "-qm", "a submodule"]);
    assert_eq!(fixture.repository().submodules().unwrap(), ["lib/the other"]);
}

#[test]
fn temporary_git_directories_are_removed() {
    let fixture = GitFixture::new();
    let home = fixture.root().join(".git/signoff");
    let left = || fs::read_dir(&home).unwrap().flatten().map(|entry| entry.file_name()).collect::<Vec<_>>();
    fs::create_dir_all(home.join("sealed-dead")).unwrap();
    fs::write(home.join("sealed-dead/alive"), "").unwrap();
    let alive = fixture.repository();
    alive.checkout_head().unwrap();
    assert_eq!(left().len(), 1);
    fixture.repository().checkout_head().unwrap();
    assert_eq!(left().len(), 1, "one that is in use stays");
    drop(alive);
    assert_eq!(left(), Vec::<std::ffi::OsString>::new());
}

#[test]
fn other_formats_of_a_repository() {
    for option in ["--object-format=sha256", "--ref-format=reftable"] {
        let fixture = GitFixture::empty();
        fs::remove_dir_all(fixture.root().join(".git")).unwrap();
        if !fixture.try_in(&fixture.root(), &["init", "-q", option]).0 {
            continue;
        }
        fixture.write("a", "a");
        fixture.commit("first");
        let worktree = fixture.worktree("one");
        crate::git::fixture::write(worktree.path(), "b", "b");
        let committed = worktree.commit_all("more").unwrap();
        assert!(committed.made, "{option}");
        let seen = fixture.run(&["rev-parse", "loop/one"]);
        assert_eq!(committed.head.commit, Commit::new(seen.trim()), "{option}");
        assert_eq!(fixture.run_in(worktree.path(), &["status", "--porcelain"]), "", "{option}");
    }
}
