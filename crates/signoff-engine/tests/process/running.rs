//! Agents that start, write output and exit by themselves.

use std::fs;
use std::time::Duration;

use signoff_engine::process::{ProcessExit, ProcessLaunch, ProcessLimits};

use crate::process::fixture::{NO_LIMITS, ProcessFixture};

#[tokio::test]
async fn exit_codes_and_signals_are_reported() {
    for (script, exit) in [
        ("exit 0", ProcessExit::Code(0)),
        ("exit 7", ProcessExit::Code(7)),
        ("kill -KILL $$", ProcessExit::Signal(9)),
        ("kill -TERM $$", ProcessExit::Signal(15)),
    ] {
        let fixture = ProcessFixture::new();
        let ended = fixture.run(script, NO_LIMITS).await;
        assert_eq!(ended.exit, exit, "{script}");
        assert_eq!(Some(ended), fixture.dir().read_result(), "the returned result is the stored one");
    }
}

#[tokio::test]
async fn a_missing_program_is_distinguished_from_other_start_errors() {
    let fixture = ProcessFixture::new();
    let start = async |program: &str, directory: &str| {
        let launch = ProcessLaunch {
            program: program.to_owned(),
            directory: fixture.path(directory),
            ..fixture.launch("", NO_LIMITS)
        };
        let ended = fixture.launcher().start(&launch, &fixture.dir()).await.unwrap().wait().await;
        let ProcessExit::NotStarted { message, missing } = ended.exit else { panic!("{ended:?}") };
        (message.replace(fixture.path("").to_str().unwrap(), "[ROOT]/"), missing)
    };
    let not_started = |message: &str, missing| (message.to_owned(), missing);
    assert_eq!(
        start("no-such-agent", "").await,
        not_started("cannot start no-such-agent: No such file or directory (os error 2)", true)
    );
    assert_eq!(
        start("sh", "no-such-directory").await,
        not_started("the directory [ROOT]/no-such-directory does not exist", false)
    );
    fs::write(fixture.path("agent"), "not executable").unwrap();
    assert_eq!(
        start(fixture.path("agent").to_str().unwrap(), "").await,
        not_started("cannot start [ROOT]/agent: Permission denied (os error 13)", false)
    );
    fs::remove_file(fixture.dir().prompt()).unwrap();
    assert_eq!(
        start("sh", "").await,
        not_started("cannot read [ROOT]/attempt/prompt: No such file or directory (os error 2)", false)
    );
}

#[tokio::test]
async fn long_prompts_and_answers_are_passed_through() {
    let fixture = ProcessFixture::new();
    let prompt = "0123456789abcde\n".repeat(65536);
    fs::write(fixture.dir().prompt(), &prompt).unwrap();
    let mut running = fixture.start("cat; echo 'what a prompt' >&2", NO_LIMITS).await;
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
    assert_eq!(fixture.stdout(), prompt);
    assert_eq!(fs::read_to_string(fixture.dir().stderr()).unwrap(), "what a prompt\n");
    assert_eq!((ended.stdout_bytes, ended.stderr_bytes), (1024 * 1024, 14));
    assert!(count > 0 && count <= 65536, "{count} lines were read");
}

#[tokio::test]
async fn lines_arrive_while_the_agent_runs() {
    let fixture = ProcessFixture::new();
    let pipe = fixture.pipe("answer");
    let mut running =
        fixture.start(r#"echo question; read answer < answer; printf "%s\r\nlast" "$answer""#, NO_LIMITS).await;
    let mut lines = running.lines();
    assert_eq!(lines.next().await.as_deref(), Some("question"));
    fs::write(pipe, "42\n").unwrap();
    assert_eq!(lines.next().await.as_deref(), Some("42"));
    assert_eq!(lines.next().await.as_deref(), Some("last"));
    assert_eq!(lines.next().await, None);
    assert_eq!(running.lines().next().await, None, "a second stream is empty");
    assert_eq!(running.wait().await.exit, ProcessExit::Code(0));
}

#[tokio::test]
async fn the_environment_is_passed_on_but_not_stored() {
    let fixture = ProcessFixture::new();
    let launch = ProcessLaunch {
        environment: vec![("SECRET".to_owned(), Some("hunter2".to_owned())), ("HOME".to_owned(), None)],
        ..fixture.launch(r#"echo "${#SECRET} $SECRET ${HOME-homeless} $SIGNOFF_KEEPER"; pwd; (: < /dev/tty) 2> /dev/null || echo no terminal"#, NO_LIMITS)
    };
    fixture.launcher().start(&launch, &fixture.dir()).await.unwrap().wait().await;
    let root = fixture.path("");
    let output = fixture.stdout().replace(root.to_str().unwrap().trim_end_matches('/'), "[ROOT]");
    assert_eq!(output, "7 [redacted] homeless [ROOT]/attempt\n[ROOT]\nno terminal\n");
    for file in fs::read_dir(fixture.dir().path()).unwrap().flatten() {
        let text = fs::read_to_string(file.path()).unwrap();
        assert!(!text.contains("hunter2"), "{} has the secret", file.path().display());
    }
}

#[tokio::test]
async fn secrets_of_the_users_home_are_redacted_in_transcripts() {
    let fixture = ProcessFixture::new();
    let write_home_file = |name: &str, text: &str| {
        let file = fixture.path("home").join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    };
    write_home_file(".gemini/.env", "GEMINI_API_KEY=canary-env-1\n");
    write_home_file(".codex/auth.json", r#"{"tokens": {"refresh_token": "canary-login-2"}}"#);
    let script = "cat home/.gemini/.env home/.codex/auth.json; echo $OPENCODE_CONFIG_CONTENT >&2";
    let content = r#"{"provider":{"mine":{"options":{"apiKey":"canary-variable-3"}}}}"#.to_owned();
    let launch = ProcessLaunch {
        environment: vec![("OPENCODE_CONFIG_CONTENT".to_owned(), Some(content))],
        ..fixture.launch(script, NO_LIMITS)
    };
    fixture.launcher().start(&launch, &fixture.dir()).await.unwrap().wait().await;
    assert_eq!(fixture.stdout(), "GEMINI_API_KEY=[redacted]\n{\"tokens\": {\"refresh_token\": \"[redacted]\"}}");
    for file in fs::read_dir(fixture.dir().path()).unwrap().flatten() {
        let text = fs::read_to_string(file.path()).unwrap();
        assert!(!text.contains("canary"), "{}: {text}", file.path().display());
    }
    assert!(fs::read_to_string(fixture.dir().stderr()).unwrap().contains("[redacted]"));
}

#[tokio::test]
async fn only_the_usage_file_stays_in_its_directory() {
    let fixture = ProcessFixture::new();
    let usage = fixture.dir().usage_directory();
    fs::create_dir(&usage).unwrap();
    fs::create_dir(fixture.path("outside")).unwrap();
    fs::write(fixture.path("outside/file"), "mine").unwrap();
    fixture.run("cd attempt/usage; echo '{}' > usage.json; echo x > notes.txt; mkdir d; echo x > d/x; ln -s ../../outside l", NO_LIMITS).await;
    let left: Vec<_> = fs::read_dir(&usage).unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(left, ["usage.json"]);
    assert_eq!(fs::read_to_string(fixture.path("outside/file")).unwrap(), "mine");
}

#[tokio::test]
async fn large_output_is_stored_completely_in_little_memory() {
    let fixture = ProcessFixture::new();
    // The agent's parent is its supervisor. The test reads no lines.
    let ended = fixture.run("head -c 200000000 /dev/zero; grep VmHWM /proc/$PPID/status >&2", NO_LIMITS).await;
    assert_eq!((ended.exit, ended.stdout_bytes), (ProcessExit::Code(0), 200_000_000));
    assert_eq!(fs::metadata(fixture.dir().stdout()).unwrap().len(), 200_000_000);
    let kilobytes = |status: String| -> u64 {
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    };
    let supervisor_kb = kilobytes(fs::read_to_string(fixture.dir().stderr()).unwrap());
    assert!(supervisor_kb < 16 * 1024, "the supervisor used {supervisor_kb} kB");
    let program = kilobytes(fs::read_to_string("/proc/self/status").unwrap());
    assert!(program < 64 * 1024, "the program took {program} kB");
}

#[tokio::test]
async fn an_agent_whose_output_cannot_be_stored_is_ended() {
    let fixture = ProcessFixture::new();
    std::os::unix::fs::symlink("/dev/full", fixture.dir().stdout()).unwrap();
    let ended = fixture.run("echo lost; exec sleep 1000", NO_LIMITS).await;
    let message = "No space left on device (os error 28)".to_owned();
    assert_eq!(ended.exit, ProcessExit::OutputLost { message });
}

#[tokio::test]
async fn output_on_either_stream_resets_the_silence_timeout() {
    let fixture = ProcessFixture::new();
    let limits = ProcessLimits { silence: Some(Duration::from_secs(5)), ..NO_LIMITS };
    // Pauses far below the limit, which a busy machine may lengthen.
    let ended = fixture.run("for i in $(seq 13); do echo; sleep 0.2; echo >&2; sleep 0.2; done", limits).await;
    assert_eq!(ended.exit, ProcessExit::Code(0));
    assert!(ended.duration_ms > 5000);
}
