//! Behaviour that all commands share: help, version, usage errors and broken pipes.

use signoff_testkit::{ProgramOutput, TestEnv};

use crate::test_env;

#[test]
fn without_arguments_it_prints_the_next_steps() {
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
    Drive coding agents through implement, review, fix and re-review until the work is signed off

    Usage: signoff [OPTIONS] [COMMAND]

    Commands:
      init           Find the agents of this machine and write signoff.toml
      demo           Run a demo on a small project, without a model
      add            Add a task to the queue
      work           Work the tasks in the queue
      run            Work the tasks of a plan file, a specification, a tracker or the queue
      iterate        Work one task in nine phases: plan, implement, test and review
      review         Review a task's work or your checkout, without fixing anything
      improve        Improve a task's work by its last review
      watch          Watch running tasks in a terminal UI
      status         List the tasks and the open questions
      show           Show a task: its cycles, findings, attempts, costs and files
      logs           Show the output of a task's agents
      diff           Show what a task has changed
      report         Write a report about a task or a run
      stats          Show statistics over all runs: reviews, stop reasons, reviewers, cost
      replay         Replay a recorded run
      answer         Answer an open question
      retry          Retry a failed or stopped task, or the final review of a run
      edit           Set the final verdict of a task, or of a run's final review, without a review
      dispute        Mark a finding as wrong
      cancel         Cancel a task
      merge          Land an approved task on the default branch
      land           Land all approved work, or the named tasks and runs, on the default branch
      serve          Show and manage the tasks in a browser
      mcp            Serve tasks and findings to your own MCP client, on stdin and stdout
      config         Show every setting, and where it comes from
      configure      Configure the review phases by answering questions, or set any key by name
      agents         List the agents, and check whether they work
      notify         Send a test notification to every channel
      doctor         Check the repository, agents, store and sandbox
      export         Export a task for other programs
      import         Continue a task of `signoff iterate` from a state file, version 4
      parse          Parse a reviewer's answer from stdin into a normalized review
      merge-reviews  Merge the answers of several reviewers
      workflow       Show the presets, or check a custom workflow
      tasks          Show the tasks of a plan file
      completions    Print a completion script for a shell
      help           Print this message or the help of the given subcommand(s)

    Options:
      -h, --help     Print help
      -V, --version  Print version

    Options of every command:
          --json         Print the result as JSON
          --json-events  Print every recorded event as a line of JSON
          --plain        Print plain lines, without colors or a screen
          --no-ask       Stop instead of asking
          --lenient      Exit with 0 instead of 3 if a task needs your decision
          --strict       Do nothing; accepted for older scripts
      -q, --quiet        Print only the requested data
      -v, --verbose      Print more details

    Example:
      signoff init
      signoff add "Add user authentication" --auto-review
      signoff work
      signoff show 1

    Without a command it shows what needs your attention and what is running.
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

/// Every command and subcommand with its help text.
fn help_texts(env: &TestEnv, path: &[&str]) -> Vec<(String, ProgramOutput)> {
    let help = env.run(&[path, &["--help"]].concat());
    let below: Vec<_> =
        commands(&help.stdout).iter().flat_map(|name| help_texts(env, &[path, &[name]].concat())).collect();
    [(path.join(" "), help)].into_iter().chain(below).collect()
}

#[test]
fn every_command_has_a_description_and_an_example() {
    let helps = help_texts(&test_env(), &[]);
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
fn help_of_a_command_separates_its_own_options_from_global_ones() {
    insta::assert_snapshot!(test_env().run(&["retry", "--help"]).stdout, @"
    Retry a failed or stopped task, or the final review of a run

    It continues from the failed phase; finished phases are not repeated. A task that has used up its
    reviews or attempts is granted one more.

    Usage: signoff retry [OPTIONS] <ID>

    Arguments:
      <ID>
              The task, or `run-N` for the final review of a run

    Options:
          --queue
              Add it to the queue for the next `signoff work` instead of starting it

      -h, --help
              Print help (see a summary with '-h')

    Options of every command:
          --json
              Print the result as JSON

          --json-events
              Print every recorded event as a line of JSON

          --plain
              Print plain lines, without colors or a screen

          --no-ask
              Stop instead of asking

          --lenient
              Exit with 0 instead of 3 if a task needs your decision

          --strict
              Do nothing; accepted for older scripts

      -q, --quiet
              Print only the requested data

      -v, --verbose
              Print more details

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
fn quiet_and_verbose_conflict() {
    insta::assert_snapshot!(test_env().run(&["-q", "-v", "workflow", "list"]), @r"
    exit 2
    --- stderr
    error: the argument '--quiet' cannot be used with '--verbose'

    Usage: signoff --quiet

    For more information, try '--help'.
    ");
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    let answer = format!("ISSUES:\n{}", "- [Critical] a.rs:1 wrong\n".repeat(10_000));
    let unheard = test_env().run_with_closed_stdout(&["-q", "parse", "--contract", "prefix"], answer.as_bytes());
    assert_eq!(unheard.stderr, "");
    assert!(unheard.code.is_some(), "ended by a signal");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_error() {
    insta::assert_snapshot!(test_env().shell("signoff workflow list > /dev/full"), @r"
    exit 1
    --- stderr
    error: cannot write to stdout: No space left on device (os error 28)
    ");
}
