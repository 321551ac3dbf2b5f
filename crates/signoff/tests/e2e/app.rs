//! What holds for every command.

use crate::test_env;

#[test]
fn without_arguments_it_says_what_can_be_done() {
    insta::assert_snapshot!(test_env().run(&[]), @"");
}

#[test]
fn help_lists_the_commands() {
    insta::assert_snapshot!(test_env().run(&["--help"]), @"");
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
    insta::assert_snapshot!(test_env().run(&["prase"]), @"");
}

#[test]
fn quiet_and_verbose_cannot_both_be_meant() {
    insta::assert_snapshot!(test_env().run(&["-q", "-v", "workflow", "list"]), @"");
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
    insta::assert_snapshot!(test_env().shell("signoff workflow list > /dev/full"), @"");
}
