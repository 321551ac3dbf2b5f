//! What holds for every command.

use signoff_testkit::{Output, TestEnv};

use crate::test_env;

#[test]
fn without_arguments_it_says_what_can_be_done() {
    let env = test_env();
    env.shell("git init -q");
    insta::assert_snapshot!(env.run(&[]), @r#"
    exit 0
    --- stdout
    Nothing to do yet.

      signoff add "what is to be done" -a    a task, reviewed until it is approved
      signoff work                           works the tasks
      signoff run PLAN                       works the tasks of a plan file

    `signoff --help` lists all commands.
    "#);
}

#[test]
fn help_lists_the_commands() {
    insta::assert_snapshot!(test_env().run(&["--help"]), @r#"
    exit 0
    --- stdout
    Drives coding agents through implement, review, fix and re-review until the work is signed off

    Usage: signoff [OPTIONS] [COMMAND]

    Commands:
      init           Find the agents of this machine and write signoff.toml
      demo           See it work on a small project, without any model
      add            Add a task to the queue
      work           Work the queue
      run            Work the tasks of a plan file, a specification, a tracker or the queue
      iterate        Work one task the long way: think, plan, implement, test, review the whole
      review         Review a task's work, or your checkout; nothing is fixed
      improve        Have a task's work improved from its last review
      watch          Watch what other signoffs do
      status         List the tasks and the open questions
      show           Show a task: its cycles, findings, attempts, costs and files
      logs           Show what the agents of a task said
      diff           Show what a task has changed
      report         Write a report about a task or a run
      stats          Show what all runs tell: reviews, reasons, reviewers, costs
      replay         Show a run once more
      answer         Answer an open question
      retry          Go on with a task, or with the final review of a run, that failed or stopped
      edit           Set the final verdict of a task, or of a run's final review, without a review
      dispute        Say that a finding is wrong
      cancel         Call a task off
      merge          Bring an approved task into the default branch
      land           Bring everything that is approved, or what is named, into the default branch
      serve          Show the tasks on a page, and decide about them there
      mcp            Serve tasks and findings to your own MCP client, on stdin and stdout
      config         Show every setting, and where it comes from
      configure      Set how the review phases behave, by questions; or any key, by name
      agents         Show which agents are here, and whether they work
      notify         Send a test to whoever is told when nobody looks
      doctor         Look whether everything is in order here
      export         Write a task down for other programs
      import         Go on with an iteration from a state file, version 4
      parse          Read a reviewer's answer from stdin and show it in the normal form
      merge-reviews  Merge what `signoff parse` read from several reviewers
      workflow       Show how the presets work, or check a workflow of your own
      tasks          Show the tasks a plan file contains
      completions    Print a completion script for a shell
      help           Print this message or the help of the given subcommand(s)

    Options:
      -h, --help     Print help
      -V, --version  Print version

    Options of every command:
          --json         Report as JSON
          --json-events  Print every recorded fact as a line of JSON
          --plain        No colours, nothing drawn over
          --no-ask       Stop instead of asking
          --lenient      Exit with 0 instead of 3 if a person is needed
          --strict       Accepted for older scripts; changes nothing
      -q, --quiet        Say nothing but the data
      -v, --verbose      Say more

    Example:
      signoff init
      signoff add "Add user authentication" --auto-review
      signoff work
      signoff show 1

    Without a command it says what needs attention and what runs.
    Exit codes: 0 everything requested is approved, 1 something failed, 2 wrong usage,
    3 a person is needed (0 with --lenient), 130 interrupted.
    "#);
}

/// The names below `Commands:` in a help text.
fn commands(help: &str) -> Vec<String> {
    let list = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let names = list.take_while(|line| !line.is_empty()).filter_map(|line| line.strip_prefix("  "));
    let names = names.filter(|line| !line.starts_with(' ')).filter_map(|line| line.split(' ').next());
    names.filter(|name| *name != "help").map(str::to_owned).collect()
}

/// Every command and its own commands, each with its help.
fn helps(env: &TestEnv, path: &[&str]) -> Vec<(String, Output)> {
    let help = env.run(&[path, &["--help"]].concat());
    let below: Vec<_> =
        commands(&help.stdout).iter().flat_map(|name| helps(env, &[path, &[name]].concat())).collect();
    [(path.join(" "), help)].into_iter().chain(below).collect()
}

#[test]
fn every_command_says_what_it_is_for_and_shows_an_example() {
    let helps = helps(&test_env(), &[]);
    assert!(helps.len() > 20, "{} commands", helps.len());
    for (command, help) in &helps {
        assert_eq!((help.code, help.stderr.as_str()), (Some(0), ""), "{command}");
        let (_, example) = help.stdout.split_once("\nExample:\n").expect(command);
        let shown = example.lines().take_while(|line| !line.is_empty()).any(|line| line.contains("signoff "));
        assert!(shown && example.contains(command.as_str()), "{command} is not in its example\n{help}");
        let widest = help.stdout.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(100), "a line of {command} --help is longer than 100\n{help}");
        let first = help.stdout.lines().next().unwrap_or_default();
        assert!(first.starts_with(char::is_uppercase), "{command}: {first}");
        assert!(command.is_empty() || first.chars().count() <= 80, "{command}: {first}");
    }
}

#[test]
fn help_of_a_command_tells_its_own_options_from_those_of_all() {
    insta::assert_snapshot!(test_env().run(&["retry", "--help"]).stdout, @"
    Go on with a task, or with the final review of a run, that failed or stopped

    It goes on from the failed phase; what was finished is not repeated. A task that used up its reviews
    or attempts is granted one more.

    Usage: signoff retry [OPTIONS] <ID>

    Arguments:
      <ID>
              The task, or `run-N` for the final review of a run

    Options:
          --queue
              Only queue it, for the next `signoff work`

      -h, --help
              Print help (see a summary with '-h')

    Options of every command:
          --json
              Report as JSON

          --json-events
              Print every recorded fact as a line of JSON

          --plain
              No colours, nothing drawn over

          --no-ask
              Stop instead of asking

          --lenient
              Exit with 0 instead of 3 if a person is needed

          --strict
              Accepted for older scripts; changes nothing

      -q, --quiet
              Say nothing but the data

      -v, --verbose
              Say more

    Example:
      signoff retry 29
    ");
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
