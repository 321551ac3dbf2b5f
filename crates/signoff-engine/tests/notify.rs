//! Notification channels against a real server on the loopback interface, real programs and a recording terminal.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use signoff_core::group::RunOutcome;
use signoff_core::ids::{LoopId, RunId};
use signoff_core::machine::OutcomeKind;
use signoff_core::notify::{MessageQuestion, NotificationKey, NotificationKind, NotificationMessage, NotifiedOutcome};
use signoff_core::settings::{Layer, Settings, read};
use signoff_engine::notify::{
    ChannelContext, Notifier, NotifyChannel, NotifyTimeouts, TerminalPresence, runs_with_undelivered,
};
use signoff_testkit::MemoryStore;
use signoff_testkit::server::{CannedReply, TestServer};
use tempfile::TempDir;

const SECRET: &str = "s3cret";

fn message(event: NotificationKind) -> NotificationMessage {
    let question = MessageQuestion {
        id: "q7".to_owned(),
        text: "Retry or stop?".to_owned(),
        choices: vec!["retry".to_owned(), "stop".to_owned()],
    };
    NotificationMessage {
        version: 1,
        event,
        project: "shop".to_owned(),
        run_id: 3,
        task_id: Some(29),
        title: "Task #29 needs an answer: Add login".to_owned(),
        text: "The fixer failed. Retry or stop?".to_owned(),
        question: Some(question),
        outcome: None,
        final_verdict: None,
        reason: None,
        cost_usd: 1.25,
        branch: Some("signoff/29-add-login".to_owned()),
        next: Some("signoff answer 29 CHOICE (retry, stop)".to_owned()),
        at: "2026-01-29T10:00:00Z".to_owned(),
    }
}

fn notification_key(seq: u64, event: NotificationKind) -> NotificationKey {
    NotificationKey { run: RunId(3), seq, event, about: Some(LoopId::new("29")) }
}

/// The environment of a channel under test, with short timeouts.
struct NotifyFixture {
    directory: TempDir,
    variables: BTreeMap<String, String>,
    answer: Duration,
}

impl NotifyFixture {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        Self { directory, variables: BTreeMap::new(), answer: Duration::from_secs(60) }
    }

    fn context(&self) -> ChannelContext {
        let backoff = Duration::from_millis(1);
        let timeouts = NotifyTimeouts { answer: self.answer, backoff, end: self.answer, ..NotifyTimeouts::default() };
        let (directory, variables) = (self.directory.path().to_owned(), self.variables.clone());
        let program = env!("CARGO_BIN_EXE_test-supervisor").into();
        ChannelContext { directory, variables, presence: TerminalPresence::Elsewhere, program, timeouts }
    }

    /// Sends a message to the channel `it` and returns `sent` or the error.
    fn send(&self, settings: &Settings, message: &NotificationMessage) -> String {
        let channel = NotifyChannel::new(settings.channel("it").unwrap(), self.context());
        channel.send(message).map_or_else(|error| error.to_string(), |()| "sent".to_owned())
    }
}

fn channel(keys: &str) -> Settings {
    let text = format!("[notify]\nquestion = [\"it\"]\n[notify.channels.it]\n{keys}\n");
    read(&[Layer::repository("signoff.toml", text)], &[], &[]).unwrap()
}

fn webhook(server: &TestServer, more: &str) -> Settings {
    channel(&format!("kind = \"webhook\"\nurl = \"{}/{SECRET}\"\n{more}", server.address()))
}

fn post(server: &TestServer, more: &str) -> String {
    let text = NotifyFixture::new().send(&webhook(server, more), &message(NotificationKind::Question));
    assert!(!text.contains(SECRET), "{text}");
    text.replace(&server.host(), "HOST")
}

#[test]
fn a_message_is_posted_as_json_with_the_headers_that_are_configured() {
    let server = TestServer::with_replies([CannedReply::status(204)]);
    assert_eq!(post(&server, "headers = { X-Token = \"t0\" }"), "sent");
    let [request] = server.requests().try_into().unwrap();
    assert!(request.head.starts_with(&format!("POST /{SECRET} HTTP/1.1\r\n")), "{}", request.head);
    assert!(request.head.to_lowercase().contains("x-token: t0\r\n"), "{}", request.head);
    assert!(request.head.to_lowercase().contains("content-type: application/json"), "{}", request.head);
    assert_eq!(request.json()["next"], "signoff answer 29 CHOICE (retry, stop)");
    assert_eq!(request.json()["question"]["choices"], serde_json::json!(["retry", "stop"]));
}

#[test]
fn temporary_server_errors_are_retried() {
    let server = TestServer::with_replies([CannedReply::status(500), CannedReply::status(200)]);
    assert_eq!((post(&server, ""), server.requests().len()), ("sent".to_owned(), 2));
    let server =
        TestServer::with_replies([CannedReply::status(429).header("Retry-After: 0"), CannedReply::status(200)]);
    assert_eq!((post(&server, ""), server.requests().len()), ("sent".to_owned(), 2));
    let server = TestServer::with_replies([CannedReply::close(), CannedReply::status(200)]);
    assert_eq!((post(&server, ""), server.requests().len()), ("sent".to_owned(), 2));
}

#[test]
fn retries_are_limited_and_skipped_for_permanent_errors() {
    let server = TestServer::with_replies([
        CannedReply::status(503),
        CannedReply::status(503),
        CannedReply::status(503),
        CannedReply::status(200),
    ]);
    insta::assert_snapshot!(post(&server, ""), @"HOST answered 503; retry later");
    assert_eq!(server.requests().len(), 3);
    let server = TestServer::with_replies([CannedReply::status(404), CannedReply::status(200)]);
    insta::assert_snapshot!(post(&server, ""), @"HOST answered 404; check its address");
    assert_eq!(server.requests().len(), 1);
    let server =
        TestServer::with_replies([CannedReply::status(429).header("Retry-After: 3600"), CannedReply::status(200)]);
    insta::assert_snapshot!(post(&server, ""), @"HOST answered 429; retry later");
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn a_redirect_is_not_followed() {
    let other = TestServer::with_replies([CannedReply::status(200)]);
    let away = format!("Location: {}/elsewhere", other.address());
    for status in [301, 302, 307, 308] {
        let server = TestServer::with_replies([CannedReply::status(status).header(&away)]);
        let text = post(&server, "");
        assert_eq!(text, format!("HOST answered {status}; redirects are not followed; set the final URL"));
    }
    assert_eq!(other.requests().len(), 0);
}

#[test]
fn a_server_that_never_answers_times_out() {
    let server = TestServer::with_replies([CannedReply::hang(), CannedReply::hang(), CannedReply::hang()]);
    let fixture = NotifyFixture { answer: Duration::from_millis(50), ..NotifyFixture::new() };
    let text = fixture.send(&webhook(&server, ""), &message(NotificationKind::Question));
    let text = text.replace(&server.host(), "HOST");
    insta::assert_snapshot!(text, @"HOST could not be reached: no answer in time; check its address and whether a proxy is needed");
}

#[test]
fn connection_errors_do_not_contain_the_secret() {
    let fixture = NotifyFixture::new();
    let settings = channel(&format!("kind = \"webhook\"\nurl = \"http://127.0.0.1:1/{SECRET}\""));
    let text = fixture.send(&settings, &message(NotificationKind::Question));
    assert!(text.starts_with("127.0.0.1:1 could not be reached: ") && !text.contains(SECRET), "{text}");
}

#[test]
fn an_address_can_come_from_a_variable() {
    let server = TestServer::with_replies([CannedReply::status(200)]);
    let settings = channel("kind = \"webhook\"\nurl_env = \"HOOK\"");
    let mut fixture = NotifyFixture::new();
    let asks = message(NotificationKind::Question);
    insta::assert_snapshot!(fixture.send(&settings, &asks), @"the variable HOOK is not set: export it, with the address to post to");
    fixture.variables.insert("HOOK".to_owned(), SECRET.to_owned());
    insta::assert_snapshot!(fixture.send(&settings, &asks), @"the variable HOOK has no valid address: expected https://HOST/…, without a name or a password before the host");
    fixture.variables.insert("HOOK".to_owned(), format!("{}/x\n", server.address()));
    assert_eq!(fixture.send(&settings, &asks), "sent");
}

#[test]
fn agent_text_cannot_mention_users_in_slack() {
    let server = TestServer::with_replies([CannedReply::status(200)]);
    let hostile = NotificationMessage {
        title: "<!channel> *bold* & <@U1>".to_owned(),
        text: "<!here|now> <https://evil.example|click>".to_owned(),
        next: Some("`rm` <!everyone>".to_owned()),
        ..message(NotificationKind::Stuck)
    };
    assert_eq!(NotifyFixture::new().send(&webhook(&server, "format = \"slack\""), &hostile), "sent");
    let sent = format!("{:#}", server.requests()[0].json()).replace('\u{200b}', "<ZWSP>");
    insta::assert_snapshot!(sent, @r#"
    {
      "text": "⛔ &lt;!channel&gt; *bold* &amp; &lt;@<ZWSP>U1&gt;: &lt;!here|now&gt; &lt;https:<ZWSP>//evil.example|click&gt;",
      "blocks": [
        {
          "type": "section",
          "text": {
            "type": "mrkdwn",
            "text": "*⛔ &lt;!channel&gt; ∗bold∗ &amp; &lt;@U1&gt;*\n&lt;!here|now&gt; &lt;https://evil.example|click&gt;",
            "verbatim": true
          }
        },
        {
          "type": "section",
          "text": {
            "type": "mrkdwn",
            "text": "`'rm' &lt;!everyone&gt;`",
            "verbatim": true
          }
        },
        {
          "type": "context",
          "elements": [
            {
              "type": "mrkdwn",
              "text": "shop · run 3 · $1.25",
              "verbatim": true
            }
          ]
        }
      ]
    }
    "#);
}

/// Mattermost accepts the same payload but ignores the blocks.
#[test]
fn agent_text_cannot_mention_users_or_link_in_mattermost() {
    let server = TestServer::with_replies([CannedReply::status(200)]);
    let hostile = NotificationMessage {
        title: "@channel look".to_owned(),
        text: "[click](https://evil.example) ![](http://evil.example/pixel) @all".to_owned(),
        ..message(NotificationKind::Question)
    };
    assert_eq!(NotifyFixture::new().send(&webhook(&server, "format = \"slack\""), &hostile), "sent");
    let sent = server.requests()[0].json();
    let text = sent["text"].as_str().unwrap();
    assert!(text.contains("channel look") && text.contains("evil.example"), "{text}");
    for alive in ["@channel", "@all", "](", "://"] {
        assert!(!text.contains(alive), "{alive} in {text}");
    }
}

#[test]
fn the_outcome_selects_the_leading_symbol() {
    let signs = [
        (NotifiedOutcome::Run(RunOutcome::Approved), "✅"),
        (NotifiedOutcome::Task(OutcomeKind::Accepted), "✅"),
        (NotifiedOutcome::Run(RunOutcome::Attention), "⚠️"),
        (NotifiedOutcome::Task(OutcomeKind::Exhausted), "⚠️"),
        (NotifiedOutcome::Run(RunOutcome::Failed), "⛔"),
        (NotifiedOutcome::Task(OutcomeKind::Stuck), "⛔"),
    ];
    for (outcome, sign) in signs {
        let server = TestServer::with_replies([CannedReply::status(200)]);
        let done = NotificationMessage { outcome: Some(outcome), ..message(NotificationKind::Done) };
        NotifyFixture::new().send(&webhook(&server, "format = \"slack\""), &done);
        let sent = server.requests()[0].json();
        assert!(sent["text"].as_str().unwrap().starts_with(sign), "{outcome:?}: {sent}");
    }
}

#[test]
fn a_command_gets_json_on_stdin_and_ids_in_its_environment() {
    let fixture = NotifyFixture::new();
    let script = "#!/bin/sh\ncat > got.json\necho \"$SIGNOFF_EVENT $SIGNOFF_RUN_ID $SIGNOFF_TASK_ID $SIGNOFF_QUESTION_ID $1\" > got.txt\n";
    program(&fixture, "notify.sh", script);
    let settings = channel("kind = \"command\"\ncommand = [\"./notify.sh\", \"now\"]");
    assert_eq!(fixture.send(&settings, &message(NotificationKind::Question)), "sent");
    let got = |name: &str| fs::read_to_string(fixture.directory.path().join(name)).unwrap();
    assert_eq!(got("got.txt"), "question 3 29 q7 now\n");
    assert_eq!(serde_json::from_str::<Value>(&got("got.json")).unwrap()["version"], 1);
}

#[test]
fn a_command_that_fails_says_why() {
    let fixture = NotifyFixture::new();
    program(&fixture, "notify.sh", "#!/bin/sh\necho 'no phone' >&2\nexit 3\n");
    let asks = message(NotificationKind::Question);
    let settings = channel("kind = \"command\"\ncommand = [\"./notify.sh\"]");
    insta::assert_snapshot!(fixture.send(&settings, &asks), @"`./notify.sh` ended with exit code 3: no phone");
    let settings = channel("kind = \"command\"\ncommand = [\"./missing.sh\"]");
    insta::assert_snapshot!(fixture.send(&settings, &asks), @"`./missing.sh` was not found; check `command`");
}

#[test]
fn a_hanging_command_is_killed() {
    let fixture = NotifyFixture { answer: Duration::from_millis(50), ..NotifyFixture::new() };
    program(&fixture, "notify.sh", "#!/bin/sh\nexec sleep 1000\n");
    let settings = channel("kind = \"command\"\ncommand = [\"./notify.sh\"]");
    let text = fixture.send(&settings, &message(NotificationKind::Question));
    insta::assert_snapshot!(text, @"`./notify.sh` failed: it did not end within 0.05 s and was killed");
}

#[test]
fn a_command_is_killed_when_the_notifier_ends() {
    let fixture = NotifyFixture::new();
    // A reader of the FIFO blocks until a writer opens it.
    let started = fixture.directory.path().join("started");
    rustix::fs::mknodat(rustix::fs::CWD, &started, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    program(&fixture, "notify.sh", "#!/bin/sh\necho $$ > started\nexec sleep 1000\n");
    let settings = channel("kind = \"command\"\ncommand = [\"./notify.sh\"]");
    let context = fixture.context();
    let timeouts = NotifyTimeouts { end: Duration::from_millis(1), ..context.timeouts };
    let context = ChannelContext { timeouts, ..context };
    let notifier = Notifier::start(&settings, &context, Arc::new(MemoryStore::new())).unwrap();
    notifier.send(message(NotificationKind::Question), notification_key(1, NotificationKind::Question));
    let pid = fs::read_to_string(&started).unwrap();
    insta::assert_snapshot!(notifier.finish().join("\n"), @"notify: it did not deliver one message in time");
    let pid = rustix::process::Pid::from_raw(pid.trim().parse().unwrap()).unwrap();
    assert!(rustix::process::test_kill_process(pid).is_err(), "it still runs");
}

#[test]
fn delivered_messages_are_not_sent_again_by_the_next_process() {
    let (fixture, store) = (NotifyFixture::new(), MemoryStore::new());
    let server =
        TestServer::with_replies([CannedReply::status(404), CannedReply::status(200), CannedReply::status(200)]);
    let settings = webhook(&server, "");
    let notify = |seq| {
        let notifier = Notifier::start(&settings, &fixture.context(), Arc::new(store.clone())).unwrap();
        notifier.send(message(NotificationKind::Question), notification_key(seq, NotificationKind::Question));
        notifier.finish();
        server.requests().len()
    };
    assert_eq!(notify(1), 1, "refused");
    assert_eq!(runs_with_undelivered(&store), [RunId(3)].into());
    assert_eq!(notify(1), 2, "so it is sent again");
    assert_eq!(notify(1), 2, "it was taken");
    assert_eq!(notify(2), 3, "another one");
    assert_eq!(runs_with_undelivered(&store), [].into());
}

#[test]
fn an_undelivered_message_is_sent_again_except_about_the_end_of_a_run() {
    let (fixture, store) = (NotifyFixture::new(), MemoryStore::new());
    let server =
        TestServer::with_replies([CannedReply::status(404), CannedReply::status(404), CannedReply::status(200)]);
    let text = format!(
        "[notify]\nquestion = [\"it\"]\ndone = [\"it\"]\n[notify.channels.it]\nkind = \"webhook\"\nurl = \"{}\"\n",
        server.address()
    );
    let settings = read(&[Layer::repository("signoff.toml", text)], &[], &[]).unwrap();
    let notifier = || Notifier::start(&settings, &fixture.context(), Arc::new(store.clone())).unwrap();
    let events = [(1, NotificationKind::Question), (2, NotificationKind::Done)];
    let first = notifier();
    events.into_iter().for_each(|(seq, event)| first.send(message(event), notification_key(seq, event)));
    first.finish();
    for _ in 0..2 {
        let next = notifier();
        events.into_iter().for_each(|(seq, event)| next.resend(message(event), &notification_key(seq, event)));
        next.finish();
        assert_eq!(server.requests().len(), 3, "the question, once");
    }
}

fn program(fixture: &NotifyFixture, name: &str, text: &str) {
    let path = fixture.directory.path().join(name);
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Returns the bytes that a terminal channel writes for a message.
fn written(variables: &[(&str, &str)], kind: &str, sent: &NotificationMessage) -> String {
    let screen = Arc::new(Mutex::new(Vec::new()));
    let kept = screen.clone();
    let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let fixture = NotifyFixture { variables: variables.collect(), ..NotifyFixture::new() };
    let terminal = Arc::new(move |bytes: &[u8]| kept.lock().unwrap().extend_from_slice(bytes));
    let context = ChannelContext { presence: TerminalPresence::AtTerminal(terminal), ..fixture.context() };
    let channel = NotifyChannel::new(channel(&format!("kind = \"{kind}\"")).channel("it").unwrap(), context);
    channel.send(sent).unwrap();
    let bytes = screen.lock().unwrap().clone();
    String::from_utf8(bytes).unwrap()
}

#[test]
fn a_terminal_notification_contains_no_control_sequences_of_the_message() {
    let asks = message(NotificationKind::Question);
    assert_eq!(written(&[], "bell", &asks), "\x07");
    let text = "signoff: Task #29 needs an answer: Add login. The fixer failed. Retry or stop?";
    assert_eq!(written(&[], "desktop", &asks), format!("\x1b]9;{text}\x07"));
    assert_eq!(written(&[("TMUX", "/tmp/x")], "desktop", &asks), format!("\x1bPtmux;\x1b\x1b]9;{text}\x07\x1b\\"));
    let hostile = NotificationMessage { text: "\x07\x1b]0;owned\x07\u{9b}2J\u{202e}".repeat(100), ..asks };
    let shown = written(&[], "desktop", &hostile);
    let inside = shown.strip_prefix("\x1b]9;").and_then(|rest| rest.strip_suffix('\x07')).unwrap();
    assert!(!inside.contains(char::is_control) && inside.chars().count() <= 250, "{inside:?}");
}

#[test]
fn a_desktop_channel_without_terminal_or_desktop_is_an_error() {
    let text = NotifyFixture::new().send(&channel("kind = \"desktop\""), &message(NotificationKind::Question));
    insta::assert_snapshot!(text, @"there is no terminal here, and no desktop that `notify-send` reaches");
}

#[test]
fn a_failing_channel_is_reported_once_and_blocks_no_other() {
    let alive =
        TestServer::with_replies([CannedReply::status(200), CannedReply::status(200), CannedReply::status(200)]);
    let dead = TestServer::with_replies([CannedReply::status(404), CannedReply::status(404)]);
    let text = format!(
        "[notify]\nquestion = [\"dead\", \"alive\"]\ndone = [\"alive\"]\n\
         [notify.channels.dead]\nkind = \"webhook\"\nurl = \"{}/{SECRET}\"\n\
         [notify.channels.alive]\nkind = \"webhook\"\nurl = \"{}/{SECRET}\"\n",
        dead.address(),
        alive.address()
    );
    let settings = read(&[Layer::repository("signoff.toml", text)], &[], &[]).unwrap();
    let notifier = Notifier::start(&settings, &NotifyFixture::new().context(), Arc::new(MemoryStore::new())).unwrap();
    for (seq, event) in (1..).zip([
        NotificationKind::Question,
        NotificationKind::Question,
        NotificationKind::Done,
        NotificationKind::Budget,
    ]) {
        notifier.send(message(event), notification_key(seq, event));
    }
    let notes = notifier.finish().join("\n").replace(&dead.host(), "HOST");
    insta::assert_snapshot!(notes, @"notify: dead: HOST answered 404; check its address");
    let events = |server: &TestServer| -> Vec<Value> {
        server.requests().iter().map(|request| request.json()["event"].clone()).collect()
    };
    assert_eq!(events(&dead), ["question", "question"]);
    assert_eq!(events(&alive), ["question", "question", "done"]);
}

#[test]
fn without_a_terminal_the_bell_starts_no_notifier() {
    let settings = read(&[], &[], &[]).unwrap();
    assert!(Notifier::start(&settings, &NotifyFixture::new().context(), Arc::new(MemoryStore::new())).is_none());
}
