//! What holds for every command.

use crate::test_env;

#[test]
fn without_arguments_it_says_what_can_be_done() {
    insta::assert_snapshot!(test_env().run(&[]), @r#"
    exit 0
    --- stdout
    Nothing to do yet.

      signoff add "what is to be done" -a    a task, reviewed until it is approved
      signoff work                           works the tasks
      signoff run PLAN                       works a plan file or a specification

    `signoff --help` lists all commands.
    "#);
}

#[test]
fn help_lists_the_commands() {
    insta::assert_snapshot!(test_env().run(&["--help"]), @"
    exit 0
    --- stdout
    Drives coding agents through implement, review, fix and re-review until the work is signed off

    Usage: signoff [OPTIONS] [COMMAND]

    Commands:
      init           Find the agents of this machine and write signoff.toml
      add            Add a task to the queue
      work           Work the queue
      run            Work the tasks of a plan file, in order, each from the approved end of the one
                     before
      status         List the tasks and the open questions
      show           Show a task: its cycles, findings, attempts, costs and files
      logs           Show what the agents of a task said
      diff           Show what a task has changed since its base, uncommitted work included
      review         Review a task's work, or the current branch with its uncommitted changes; nothing
                     is fixed
      improve        Improve a task's work from its last review, as a new task on the same branch
      retry          Go on with a task that failed or stopped, from the failed phase; what was finished
                     is not repeated
      edit           Set the final verdict of a task, without a review
      answer         Answer an open question
      cancel         Call a task off; its branch and its worktree stay
      dispute        Say that a finding is wrong: no reviewer opens it again
      config         Show every setting, and where it comes from
      doctor         Look whether everything is in order here
      demo           See it work: a task that fails its review, is fixed and approved, and one that
                     stops for you
      parse          Read a reviewer's answer from stdin and show it in the normal form
      merge-reviews  Merge what `signoff parse` read from several reviewers
      workflow       Show how the presets work, or check a workflow of your own
      tasks          Show the tasks a plan file contains
      completions    Print a completion script for a shell
      help           Print this message or the help of the given subcommand(s)

    Options:
          --json         Report as JSON
          --json-events  Print every recorded fact as a line of JSON
          --plain        No colours, nothing drawn over
          --no-ask       Stop instead of asking
          --strict       Exit with 3 if something needs attention
      -q, --quiet        Say nothing but the data
      -v, --verbose      Say more
      -h, --help         Print help
      -V, --version      Print version
    ");
}

#[test]
fn every_command_has_an_example_in_its_help() {
    let env = test_env();
    for command in [
        &["parse"][..],
        &["merge-reviews"],
        &["workflow"],
        &["workflow", "show"],
        &["workflow", "list"],
        &["workflow", "check"],
        &["tasks"],
    ] {
        let help = env.run(&[command, &["--help"]].concat());
        assert_eq!(help.code, Some(0), "{help}");
        assert!(help.stdout.contains("Example:\n"), "{command:?} has no example\n{help}");
        assert_eq!(help.stderr, "");
    }
}

#[test]
fn version_is_one_line() {
    let version = test_env().run(&["--version"]);
    assert_eq!(version.stdout, concat!("signoff ", env!("CARGO_PKG_VERSION"), "\n"));
    assert_eq!(version.code, Some(0));
}

#[test]
fn an_unknown_command_is_wrong_usage() {
    insta::assert_snapshot!(test_env().run(&["prase"]), @"
    exit 2
    --- stderr
    error: unrecognized subcommand 'prase'

      tip: some similar subcommands exist: 'answer', 'parse'

    Usage: signoff [OPTIONS] [COMMAND]

    For more information, try '--help'.
    ");
}

#[test]
fn quiet_and_verbose_cannot_both_be_meant() {
    insta::assert_snapshot!(test_env().run(&["-q", "-v", "workflow", "list"]), @r"
    exit 2
    --- stderr
    error: the argument '--quiet' cannot be used with '--verbose'

    Usage: signoff --quiet

    For more information, try '--help'.
    ");
}

#[test]
fn a_reader_that_went_away_is_no_failure() {
    let answer = format!("ISSUES:\n{}", "- [Critical] a.rs:1 wrong\n".repeat(10_000));
    let unheard = test_env().run_unheard(&["-q", "parse", "--contract", "prefix"], answer.as_bytes());
    assert_eq!(unheard.stderr, "");
    assert!(unheard.code.is_some(), "ended by a signal");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_a_failure() {
    insta::assert_snapshot!(test_env().shell("signoff workflow list > /dev/full"), @r"
    exit 1
    --- stderr
    error: cannot write to stdout: No space left on device (os error 28)
    ");
}
