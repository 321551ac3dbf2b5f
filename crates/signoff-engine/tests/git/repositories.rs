//! Finding a repository and asking where it is.

use std::fs;

use signoff_core::ids::Commit;
use signoff_engine::git::{At, Git, GitError, Repository};

use crate::place::Place;

fn discovered(place: &Place, directory: &str) -> Repository {
    Repository::discover(&place.git, &place.path(directory)).expect("a repository")
}

#[test]
fn the_root_is_the_main_worktree_from_wherever_one_looks() {
    let place = Place::new();
    place.run(&["worktree", "add", "-q", "-b", "side", "../si de"]);
    for directory in ["repo", "repo/src", "si de", "si de/src"] {
        assert_eq!(discovered(&place, directory).root(), place.root(), "{directory}");
    }
    assert_eq!(discovered(&place, "repo/src").checkout(), place.root());
    assert_eq!(discovered(&place, "si de/src").checkout(), place.path("si de"));
}

#[test]
fn where_the_checkout_is() {
    let place = Place::empty();
    assert_eq!(place.repository().at().unwrap(), At::Unborn { branch: "main".to_owned() });
    assert!(matches!(place.repository().base(), Err(GitError::NoCommits)));
    place.write("a", "a");
    place.commit("first");
    let commit = place.head();
    assert_eq!(
        place.repository().at().unwrap(),
        At::Branch { name: "main".to_owned(), commit: commit.clone() }
    );
    place.run(&["checkout", "-q", "--detach"]);
    assert_eq!(place.repository().at().unwrap(), At::Detached { commit });
    place.run(&["checkout", "-q", "-b", "grün/✓"]);
    assert!(matches!(place.repository().at().unwrap(), At::Branch { name, .. } if name == "grün/✓"));
}

#[test]
fn what_is_no_repository_to_work_in() {
    let place = Place::new();
    place.run(&["clone", "-q", "--bare", ".", "../bare.git"]);
    let find = |directory| Repository::discover(&place.git, &place.path(directory));
    assert!(matches!(find("home"), Err(GitError::NotARepository(_))));
    assert!(matches!(find("nowhere"), Err(GitError::NotARepository(_))));
    assert!(matches!(find("bare.git"), Err(GitError::Bare(_))));
    assert!(matches!(find("repo/.git"), Err(GitError::Bare(_))));
}

#[test]
fn without_git_there_is_a_clear_error() {
    let place = Place::new();
    let git = Git::new([("PATH".into(), place.path("home").into_os_string())]);
    assert!(matches!(Repository::discover(&git, &place.root()), Err(GitError::NoGit)));
}

#[test]
fn a_bare_repository_with_worktrees_is_its_own_root() {
    let place = Place::new();
    place.run(&["clone", "-q", "--bare", ".", "../bare.git"]);
    place.run_in(&place.path("bare.git"), &["worktree", "add", "-q", "../one", "main"]);
    assert_eq!(discovered(&place, "one").root(), place.path("bare.git"));
    assert_eq!(discovered(&place, "one").checkout(), place.path("one"));
}

#[test]
fn git_variables_of_the_environment_lead_nobody_astray() {
    let place = Place::new();
    let elsewhere = ["GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR"];
    let environment = elsewhere.map(|name| (name.into(), "/nowhere".into()));
    #[expect(clippy::disallowed_methods, reason = "git is wherever this machine has it")]
    let path = std::env::var_os("PATH").unwrap();
    let git = Git::new(environment.into_iter().chain([("PATH".into(), path)]));
    let repository = Repository::discover(&git, &place.root()).unwrap();
    assert_eq!(repository.resolve("HEAD").unwrap(), place.head());
}

#[test]
fn the_default_branch_and_the_base() {
    let place = Place::new();
    let first = place.head();
    assert_eq!(place.repository().default_branch().unwrap(), "main");
    assert_eq!(place.repository().base().unwrap(), first);
    place.run(&["checkout", "-qb", "topic"]);
    place.write("a", "a");
    place.commit("second");
    assert_eq!(place.repository().base().unwrap(), first);
    place.run(&["branch", "-m", "main", "trunk"]);
    assert_eq!(place.repository().default_branch().unwrap(), "trunk");
    place.run(&["branch", "-D", "trunk"]);
    assert_eq!(place.repository().default_branch().unwrap(), "topic");
    assert_eq!(place.repository().base().unwrap(), place.head());
}

#[test]
fn the_remote_names_the_default_branch() {
    let place = Place::new();
    place.run(&["branch", "-m", "develop"]);
    place.run(&["clone", "-q", ".", "../clone"]);
    let clone = place.path("clone");
    place.run_in(&clone, &["checkout", "-qb", "main"]);
    place.run_in(&clone, &["branch", "-qD", "develop"]);
    let repository = discovered(&place, "clone");
    assert_eq!(repository.default_branch().unwrap(), "develop");
    assert_eq!(repository.base().unwrap(), place.head());
}

#[test]
fn without_a_common_ancestor_the_base_is_head() {
    let place = Place::new();
    place.run(&["checkout", "-q", "--orphan", "new"]);
    place.commit("unrelated");
    assert_eq!(place.repository().base().unwrap(), place.head());
}

#[test]
fn revisions_and_subjects() {
    let place = Place::new();
    let first = place.head();
    for subject in ["second", "third – ✓"] {
        place.write(subject, "");
        place.commit(subject);
    }
    let repository = place.repository();
    assert_eq!(repository.log_subjects(&first, &place.head()).unwrap(), ["third – ✓", "second"]);
    assert_eq!(repository.resolve("HEAD~2").unwrap(), first);
    for unknown in ["nowhere", "--all", "HEAD^{tree}", ""] {
        assert!(matches!(repository.resolve(unknown), Err(GitError::UnknownRevision(_))), "{unknown}");
    }
    assert_eq!(repository.head_of("main").unwrap().unwrap().commit, place.head());
    assert_eq!(repository.head_of("mai").unwrap(), None);
    assert!(!repository.has_branch("nowhere").unwrap());
}

#[test]
fn submodules_are_named() {
    let place = Place::new();
    assert_eq!(place.repository().submodules().unwrap(), Vec::<String>::new());
    let commit = place.head();
    place.run(&["update-index", "--add", "--cacheinfo", &format!("160000,{commit},lib/the other")]);
    place.run(&["commit", "-qm", "a submodule"]);
    assert_eq!(place.repository().submodules().unwrap(), ["lib/the other"]);
}

#[test]
fn the_stand_in_goes_with_the_program_and_what_a_killed_one_left_is_swept_away() {
    let place = Place::new();
    let home = place.root().join(".git/signoff");
    let left = || fs::read_dir(&home).unwrap().flatten().map(|entry| entry.file_name()).collect::<Vec<_>>();
    fs::create_dir_all(home.join("sealed-dead")).unwrap();
    fs::write(home.join("sealed-dead/alive"), "").unwrap();
    let alive = place.repository();
    alive.at().unwrap();
    assert_eq!(left().len(), 1);
    place.repository().at().unwrap();
    assert_eq!(left().len(), 1, "one that is in use stays");
    drop(alive);
    assert_eq!(left(), Vec::<std::ffi::OsString>::new());
}

#[test]
fn other_formats_of_a_repository() {
    for option in ["--object-format=sha256", "--ref-format=reftable"] {
        let place = Place::empty();
        fs::remove_dir_all(place.root().join(".git")).unwrap();
        if !place.try_in(&place.root(), &["init", "-q", option]).0 {
            continue;
        }
        place.write("a", "a");
        place.commit("first");
        let worktree = place.worktree("one");
        crate::place::write(worktree.path(), "b", "b");
        let committed = worktree.commit_all("more").unwrap();
        assert!(committed.made, "{option}");
        let seen = place.run(&["rev-parse", "loop/one"]);
        assert_eq!(committed.head.commit, Commit::new(seen.trim()), "{option}");
        assert_eq!(place.run_in(worktree.path(), &["status", "--porcelain"]), "", "{option}");
    }
}
