//! Agents that start, talk and end by themselves.

use std::fs;
use std::time::Duration;

use signoff_engine::process::{Exit, Launch, Limits};

use crate::place::{NO_LIMITS, Place};

#[tokio::test]
async fn an_agent_ends_as_it_likes() {
    for (script, exit) in [
        ("exit 0", Exit::Code(0)),
        ("exit 7", Exit::Code(7)),
        ("kill -KILL $$", Exit::Signal(9)),
        ("kill -TERM $$", Exit::Signal(15)),
    ] {
        let place = Place::new();
        let ended = place.run(script, NO_LIMITS).await;
        assert_eq!(ended.exit, exit, "{script}");
        assert_eq!(Some(ended), place.dir().ended(), "what was told is what was written down");
    }
}

#[tokio::test]
async fn a_program_that_is_not_there_is_told_from_one_that_does_not_start() {
    let place = Place::new();
    let start = async |program: &str, directory: &str| {
        let launch = Launch {
            program: program.to_owned(),
            directory: place.path(directory),
            ..place.launch("", NO_LIMITS)
        };
        let ended = place.keeper().start(&launch, &place.dir()).await.unwrap().wait().await;
        let Exit::NotStarted { message, missing } = ended.exit else { panic!("{ended:?}") };
        (message.replace(place.path("").to_str().unwrap(), "[ROOT]/"), missing)
    };
    let why = |message: &str, missing| (message.to_owned(), missing);
    assert_eq!(
        start("no-such-agent", "").await,
        why("cannot start no-such-agent: No such file or directory (os error 2)", true)
    );
    assert_eq!(
        start("sh", "no-such-directory").await,
        why("the directory [ROOT]/no-such-directory is not there", false)
    );
    fs::write(place.path("agent"), "not executable").unwrap();
    assert_eq!(
        start(place.path("agent").to_str().unwrap(), "").await,
        why("cannot start [ROOT]/agent: Permission denied (os error 13)", false)
    );
    fs::remove_file(place.dir().prompt()).unwrap();
    assert_eq!(
        start("sh", "").await,
        why("cannot read [ROOT]/attempt/prompt: No such file or directory (os error 2)", false)
    );
}

#[tokio::test]
async fn a_long_prompt_goes_in_and_a_long_answer_comes_out() {
    let place = Place::new();
    let prompt = "0123456789abcde\n".repeat(65536);
    fs::write(place.dir().prompt(), &prompt).unwrap();
    let mut running = place.start("cat; echo 'what a prompt' >&2", NO_LIMITS).await;
    let mut lines = running.lines();
    let reader = async {
        let mut count = 0;
        while let Some(line) = lines.next().await {
            assert_eq!(line, "0123456789abcde");
            count += 1;
        }
        count
    };
    let (count, ended) = tokio::join!(reader, running.wait());
    assert_eq!(place.stdout(), prompt);
    assert_eq!(fs::read_to_string(place.dir().stderr()).unwrap(), "what a prompt\n");
    assert_eq!((ended.stdout_bytes, ended.stderr_bytes), (1024 * 1024, 14));
    assert!(count > 0 && count <= 65536, "{count} lines were heard");
}

#[tokio::test]
async fn lines_are_heard_while_the_agent_works() {
    let place = Place::new();
    let pipe = place.pipe("answer");
    let mut running =
        place.start(r#"echo question; read answer < answer; printf "%s\r\nlast" "$answer""#, NO_LIMITS).await;
    let mut lines = running.lines();
    assert_eq!(lines.next().await.as_deref(), Some("question"));
    fs::write(pipe, "42\n").unwrap();
    assert_eq!(lines.next().await.as_deref(), Some("42"));
    assert_eq!(lines.next().await.as_deref(), Some("last"));
    assert_eq!(lines.next().await, None);
    assert_eq!(running.lines().next().await, None, "there is only one to hear");
    assert_eq!(running.wait().await.exit, Exit::Code(0));
}

#[tokio::test]
async fn the_environment_is_passed_on_and_not_written_down() {
    let place = Place::new();
    let launch = Launch {
        environment: vec![("SECRET".to_owned(), Some("hunter2".to_owned())), ("HOME".to_owned(), None)],
        ..place.launch(r#"echo "${#SECRET} $SECRET ${HOME-homeless} $SIGNOFF_KEEPER"; pwd; (: < /dev/tty) 2> /dev/null || echo no terminal"#, NO_LIMITS)
    };
    place.keeper().start(&launch, &place.dir()).await.unwrap().wait().await;
    let root = place.path("");
    let said = place.stdout().replace(root.to_str().unwrap().trim_end_matches('/'), "[ROOT]");
    assert_eq!(said, "7 [redacted] homeless [ROOT]/attempt\n[ROOT]\nno terminal\n");
    for file in fs::read_dir(place.dir().path()).unwrap().flatten() {
        let text = fs::read_to_string(file.path()).unwrap();
        assert!(!text.contains("hunter2"), "{} has the secret", file.path().display());
    }
}

#[tokio::test]
async fn what_is_secret_at_the_persons_home_is_in_no_transcript() {
    let place = Place::new();
    let lay = |name: &str, text: &str| {
        let file = place.path("home").join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    };
    lay(".gemini/.env", "GEMINI_API_KEY=canary-env-1\n");
    lay(".codex/auth.json", r#"{"tokens": {"refresh_token": "canary-login-2"}}"#);
    let said = "cat home/.gemini/.env home/.codex/auth.json; echo $OPENCODE_CONFIG_CONTENT >&2";
    let content = r#"{"provider":{"mine":{"options":{"apiKey":"canary-variable-3"}}}}"#.to_owned();
    let launch = Launch {
        environment: vec![("OPENCODE_CONFIG_CONTENT".to_owned(), Some(content))],
        ..place.launch(said, NO_LIMITS)
    };
    place.keeper().start(&launch, &place.dir()).await.unwrap().wait().await;
    assert_eq!(
        place.stdout(),
        "GEMINI_API_KEY=[redacted]\n{\"tokens\": {\"refresh_token\": \"[redacted]\"}}"
    );
    for file in fs::read_dir(place.dir().path()).unwrap().flatten() {
        let text = fs::read_to_string(file.path()).unwrap();
        assert!(!text.contains("canary"), "{}: {text}", file.path().display());
    }
    assert!(fs::read_to_string(place.dir().stderr()).unwrap().contains("[redacted]"));
}

#[tokio::test]
async fn of_the_directory_for_the_usage_file_nothing_else_stays() {
    let place = Place::new();
    let usage = place.dir().usage_directory();
    fs::create_dir(&usage).unwrap();
    fs::create_dir(place.path("outside")).unwrap();
    fs::write(place.path("outside/file"), "mine").unwrap();
    place.run("cd attempt/usage; echo '{}' > usage.json; echo x > notes.txt; mkdir d; echo x > d/x; ln -s ../../outside l", NO_LIMITS).await;
    let left: Vec<_> = fs::read_dir(&usage).unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(left, ["usage.json"]);
    assert_eq!(fs::read_to_string(place.path("outside/file")).unwrap(), "mine");
}

#[tokio::test]
async fn a_flood_is_kept_whole_in_little_memory() {
    let place = Place::new();
    // The agent's parent is its keeper. Nobody reads the lines.
    let ended = place.run("head -c 200000000 /dev/zero; grep VmHWM /proc/$PPID/status >&2", NO_LIMITS).await;
    assert_eq!((ended.exit, ended.stdout_bytes), (Exit::Code(0), 200_000_000));
    assert_eq!(fs::metadata(place.dir().stdout()).unwrap().len(), 200_000_000);
    let kilobytes = |status: String| -> u64 {
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    };
    let keeper = kilobytes(fs::read_to_string(place.dir().stderr()).unwrap());
    assert!(keeper < 16 * 1024, "the keeper took {keeper} kB");
    let program = kilobytes(fs::read_to_string("/proc/self/status").unwrap());
    assert!(program < 64 * 1024, "the program took {program} kB");
}

#[tokio::test]
async fn an_agent_whose_words_cannot_be_kept_is_ended() {
    let place = Place::new();
    std::os::unix::fs::symlink("/dev/full", place.dir().stdout()).unwrap();
    let ended = place.run("echo lost; exec sleep 1000", NO_LIMITS).await;
    let message = "No space left on device (os error 28)".to_owned();
    assert_eq!(ended.exit, Exit::Unkept { message });
}

#[tokio::test]
async fn who_talks_is_not_silent() {
    let place = Place::new();
    let limits = Limits { silence: Some(Duration::from_secs(2)), ..NO_LIMITS };
    let ended =
        place.run("for i in 1 2 3 4 5 6; do echo; sleep 0.2; echo >&2; sleep 0.2; done", limits).await;
    assert_eq!(ended.exit, Exit::Code(0));
    assert!(ended.duration_ms > 2000);
}
