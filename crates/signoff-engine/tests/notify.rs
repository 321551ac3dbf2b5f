//! Channels against a real server on the loopback interface, real programs, and a terminal that remembers.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use signoff_core::config::{Layer, Settings, read};
use signoff_core::ids::{LoopId, RunId};
use signoff_core::notify::{Message, MessageQuestion, Occasion, Occurrence};
use signoff_engine::notify::{Manners, Notifier, Outlet, Person, Receipts, Surroundings};
use signoff_testkit::server::{Reply, Server};
use tempfile::TempDir;

const SECRET: &str = "s3cret";
const NOON: Timestamp = Timestamp::constant(1_770_000_000, 0);

fn message(event: Occasion) -> Message {
    let question = MessageQuestion {
        id: "q7".to_owned(),
        text: "Retry or stop?".to_owned(),
        choices: vec!["retry".to_owned(), "stop".to_owned()],
    };
    Message {
        version: 1,
        event,
        project: "shop".to_owned(),
        run_id: 3,
        task_id: Some(29),
        title: "Task #29 asks you: Add login".to_owned(),
        text: "The fixer failed. Retry or stop?".to_owned(),
        question: Some(question),
        outcome: None,
        final_verdict: None,
        reason: None,
        cost_usd: 1.25,
        branch: Some("signoff/29-add-login".to_owned()),
        next: Some("signoff answer 29 retry|stop".to_owned()),
        at: "2026-01-29T10:00:00Z".to_owned(),
    }
}

fn occurrence(seq: u64, event: Occasion) -> Occurrence {
    Occurrence { run: RunId(3), seq, event, about: Some(LoopId::new("29")) }
}

/// Where channels are tried; nothing is waited for longer than it takes.
struct Place {
    directory: TempDir,
    variables: BTreeMap<String, String>,
    answer: Duration,
}

impl Place {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        Self { directory, variables: BTreeMap::new(), answer: Duration::from_secs(60) }
    }

    fn around(&self) -> Surroundings {
        let backoff = Duration::from_millis(1);
        let manners = Manners { answer: self.answer, backoff, end: self.answer, ..Manners::default() };
        let (directory, variables) = (self.directory.path().to_owned(), self.variables.clone());
        let program = env!("CARGO_BIN_EXE_signoff-keeper").into();
        Surroundings { directory, variables, person: Person::Elsewhere, program, manners }
    }

    /// Sends to the channel `it`, and says what came of it.
    fn send(&self, settings: &Settings, message: &Message) -> String {
        let outlet = Outlet::new(settings.channel("it").unwrap(), self.around());
        outlet.send(message).map_or_else(|why| why.to_string(), |()| "sent".to_owned())
    }
}

fn channel(keys: &str) -> Settings {
    let text = format!("[notify]\nquestion = [\"it\"]\n[notify.channels.it]\n{keys}\n");
    read(&[Layer::repository("signoff.toml", text)], &[], &[]).unwrap()
}

fn webhook(server: &Server, more: &str) -> Settings {
    channel(&format!("kind = \"webhook\"\nurl = \"{}/{SECRET}\"\n{more}", server.address()))
}

fn post(server: &Server, more: &str) -> String {
    let told = Place::new().send(&webhook(server, more), &message(Occasion::Question));
    assert!(!told.contains(SECRET), "{told}");
    told.replace(&server.host(), "HOST")
}

#[test]
fn a_message_is_posted_as_json_with_the_headers_that_are_configured() {
    let server = Server::replying([Reply::status(204)]);
    assert_eq!(post(&server, "headers = { X-Token = \"t0\" }"), "sent");
    let [request] = server.requests().try_into().unwrap();
    assert!(request.head.starts_with(&format!("POST /{SECRET} HTTP/1.1\r\n")), "{}", request.head);
    assert!(request.head.to_lowercase().contains("x-token: t0\r\n"), "{}", request.head);
    assert!(request.head.to_lowercase().contains("content-type: application/json"), "{}", request.head);
    assert_eq!(request.json()["next"], "signoff answer 29 retry|stop");
    assert_eq!(request.json()["question"]["choices"], serde_json::json!(["retry", "stop"]));
}

#[test]
fn a_server_that_stumbles_or_is_busy_is_asked_again() {
    let server = Server::replying([Reply::status(500), Reply::status(200)]);
    assert_eq!((post(&server, ""), server.requests().len()), ("sent".to_owned(), 2));
    let server = Server::replying([Reply::status(429).header("Retry-After: 0"), Reply::status(200)]);
    assert_eq!((post(&server, ""), server.requests().len()), ("sent".to_owned(), 2));
    let server = Server::replying([Reply::closes(), Reply::status(200)]);
    assert_eq!((post(&server, ""), server.requests().len()), ("sent".to_owned(), 2));
}

#[test]
fn nobody_is_asked_for_ever_or_when_it_is_of_no_use() {
    let server =
        Server::replying([Reply::status(503), Reply::status(503), Reply::status(503), Reply::status(200)]);
    insta::assert_snapshot!(post(&server, ""), @"HOST answered 503; it may be better later");
    assert_eq!(server.requests().len(), 3);
    let server = Server::replying([Reply::status(404), Reply::status(200)]);
    insta::assert_snapshot!(post(&server, ""), @"HOST answered 404; look whether its address is still right");
    assert_eq!(server.requests().len(), 1);
    let server = Server::replying([Reply::status(429).header("Retry-After: 3600"), Reply::status(200)]);
    insta::assert_snapshot!(post(&server, ""), @"HOST answered 429; it may be better later");
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn a_redirect_is_not_followed() {
    let other = Server::replying([Reply::status(200)]);
    let away = format!("Location: {}/elsewhere", other.address());
    for status in [301, 302, 307, 308] {
        let server = Server::replying([Reply::status(status).header(&away)]);
        let told = post(&server, "");
        assert_eq!(
            told,
            format!(
                "HOST answered {status}; it is not followed elsewhere: write the address that it leads to"
            )
        );
    }
    assert_eq!(other.requests().len(), 0);
}

#[test]
fn a_server_that_never_answers_is_given_up() {
    let server = Server::replying([Reply::hangs(), Reply::hangs(), Reply::hangs()]);
    let place = Place { answer: Duration::from_millis(50), ..Place::new() };
    let told = place.send(&webhook(&server, ""), &message(Occasion::Question));
    let told = told.replace(&server.host(), "HOST");
    insta::assert_snapshot!(told, @"HOST could not be reached: no answer in time; look at its address, and whether a proxy is needed");
}

#[test]
fn nobody_there_is_told_without_the_secret() {
    let place = Place::new();
    let settings = channel(&format!("kind = \"webhook\"\nurl = \"http://127.0.0.1:1/{SECRET}\""));
    let told = place.send(&settings, &message(Occasion::Question));
    assert!(told.starts_with("127.0.0.1:1 could not be reached: ") && !told.contains(SECRET), "{told}");
}

#[test]
fn an_address_can_come_from_a_variable() {
    let server = Server::replying([Reply::status(200)]);
    let settings = channel("kind = \"webhook\"\nurl_env = \"HOOK\"");
    let mut place = Place::new();
    let asks = message(Occasion::Question);
    insta::assert_snapshot!(place.send(&settings, &asks), @"the variable HOOK is not set: export it, with the address to post to");
    place.variables.insert("HOOK".to_owned(), SECRET.to_owned());
    insta::assert_snapshot!(place.send(&settings, &asks), @"the variable HOOK holds no address: expected https://HOST/…, without a name or a password before the host");
    place.variables.insert("HOOK".to_owned(), format!("{}/x\n", server.address()));
    assert_eq!(place.send(&settings, &asks), "sent");
}

#[test]
fn what_agents_write_calls_nobody_in_slack() {
    let server = Server::replying([Reply::status(200)]);
    let hostile = Message {
        title: "<!channel> *bold* & <@U1>".to_owned(),
        text: "<!here|now> <https://evil.example|click>".to_owned(),
        next: Some("`rm` <!everyone>".to_owned()),
        ..message(Occasion::Stuck)
    };
    assert_eq!(Place::new().send(&webhook(&server, "format = \"slack\""), &hostile), "sent");
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

/// Mattermost takes the same, but reads no blocks.
#[test]
fn what_agents_write_calls_nobody_and_links_nowhere_in_mattermost() {
    let server = Server::replying([Reply::status(200)]);
    let hostile = Message {
        title: "@channel look".to_owned(),
        text: "[click](https://evil.example) ![](http://evil.example/pixel) @all".to_owned(),
        ..message(Occasion::Question)
    };
    assert_eq!(Place::new().send(&webhook(&server, "format = \"slack\""), &hostile), "sent");
    let sent = server.requests()[0].json();
    let text = sent["text"].as_str().unwrap();
    assert!(text.contains("channel look") && text.contains("evil.example"), "{text}");
    for alive in ["@channel", "@all", "](", "://"] {
        assert!(!text.contains(alive), "{alive} in {text}");
    }
}

#[test]
fn how_it_ended_is_seen_at_a_glance() {
    let signs =
        [("approved", "✅"), ("accepted", "✅"), ("attention", "⚠️"), ("exhausted", "⚠️"), ("failed", "⛔")];
    for (outcome, sign) in signs {
        let server = Server::replying([Reply::status(200)]);
        let done = Message { outcome: Some(outcome.to_owned()), ..message(Occasion::Done) };
        Place::new().send(&webhook(&server, "format = \"slack\""), &done);
        let sent = server.requests()[0].json();
        assert!(sent["text"].as_str().unwrap().starts_with(sign), "{outcome}: {sent}");
    }
}

#[test]
fn a_command_finds_json_on_its_stdin_and_the_most_needed_in_its_environment() {
    let place = Place::new();
    let script = "#!/bin/sh\ncat > got.json\necho \"$SIGNOFF_EVENT $SIGNOFF_RUN_ID $SIGNOFF_TASK_ID $SIGNOFF_QUESTION_ID $1\" > got.txt\n";
    program(&place, "tell.sh", script);
    let settings = channel("kind = \"command\"\ncommand = [\"./tell.sh\", \"now\"]");
    assert_eq!(place.send(&settings, &message(Occasion::Question)), "sent");
    let got = |name: &str| fs::read_to_string(place.directory.path().join(name)).unwrap();
    assert_eq!(got("got.txt"), "question 3 29 q7 now\n");
    assert_eq!(serde_json::from_str::<Value>(&got("got.json")).unwrap()["version"], 1);
}

#[test]
fn a_command_that_fails_says_why() {
    let place = Place::new();
    program(&place, "tell.sh", "#!/bin/sh\necho 'no phone' >&2\nexit 3\n");
    let asks = message(Occasion::Question);
    let settings = channel("kind = \"command\"\ncommand = [\"./tell.sh\"]");
    insta::assert_snapshot!(place.send(&settings, &asks), @"`./tell.sh` ended with exit code 3: no phone");
    let settings = channel("kind = \"command\"\ncommand = [\"./nobody.sh\"]");
    insta::assert_snapshot!(place.send(&settings, &asks), @"`./nobody.sh` is not there: look at `command`");
}

#[test]
fn a_command_that_hangs_is_ended() {
    let place = Place { answer: Duration::from_millis(50), ..Place::new() };
    program(&place, "tell.sh", "#!/bin/sh\nexec sleep 1000\n");
    let settings = channel("kind = \"command\"\ncommand = [\"./tell.sh\"]");
    let told = place.send(&settings, &message(Occasion::Question));
    insta::assert_snapshot!(told, @"`./tell.sh` could not be run to its end: it did not end within 0.05 s and was killed");
}

#[test]
fn a_command_does_not_outlive_the_program() {
    let place = Place::new();
    // Whoever reads it waits until somebody writes.
    let started = place.directory.path().join("started");
    rustix::fs::mknodat(rustix::fs::CWD, &started, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    program(&place, "tell.sh", "#!/bin/sh\necho $$ > started\nexec sleep 1000\n");
    let settings = channel("kind = \"command\"\ncommand = [\"./tell.sh\"]");
    let around = place.around();
    let manners = Manners { end: Duration::from_millis(1), ..around.manners };
    let around = Surroundings { manners, ..around };
    let notifier = Notifier::start(&settings, &around, Receipts::none()).unwrap();
    notifier.tell(message(Occasion::Question), occurrence(1, Occasion::Question), NOON);
    let pid = fs::read_to_string(&started).unwrap();
    insta::assert_snapshot!(notifier.finish().join("\n"), @"notify: it did not take one message in time");
    let pid = rustix::process::Pid::from_raw(pid.trim().parse().unwrap()).unwrap();
    assert!(rustix::process::test_kill_process(pid).is_err(), "it still runs");
}

#[test]
fn what_a_channel_took_it_is_not_told_again_by_the_next_program() {
    let place = Place::new();
    let path = place.directory.path().join("notified");
    let server = Server::replying([Reply::status(404), Reply::status(200), Reply::status(200)]);
    let settings = webhook(&server, "");
    let tell = |seq| {
        let receipts = Receipts::in_file(path.clone(), NOON);
        let notifier = Notifier::start(&settings, &place.around(), receipts).unwrap();
        notifier.tell(message(Occasion::Question), occurrence(seq, Occasion::Question), NOON);
        notifier.finish();
        server.requests().len()
    };
    assert_eq!(tell(1), 1, "refused");
    assert_eq!(tell(1), 2, "so it is told again");
    assert_eq!(tell(1), 2, "it was taken");
    assert_eq!(tell(2), 3, "another one");
}

#[test]
fn what_a_channel_did_not_take_is_due_for_a_week_and_its_file_does_not_grow_for_ever() {
    let place = Place::new();
    let path = place.directory.path().join("notified");
    let of = |seq| occurrence(seq, Occasion::Stuck);
    let receipts = Receipts::in_file(path.clone(), NOON);
    for seq in 0..2000 {
        receipts.owe(&of(seq), "it", NOON).unwrap();
        receipts.keep(&of(seq), "it").unwrap();
    }
    receipts.owe(&of(7000), "it", NOON).unwrap();
    receipts.owe(&occurrence(7001, Occasion::Done), "it", NOON).unwrap();
    let again = Receipts::in_file(path.clone(), NOON);
    assert!(again.owes(&of(7000), "it") && !again.owes(&of(1), "it") && again.has(&of(1), "it"));
    assert_eq!(again.owed(), [RunId(3)].into());
    let lines = || fs::read_to_string(&path).unwrap().lines().count();
    assert_eq!(lines(), 501, "the newest that were taken, and what is due");
    let short = Receipts::in_file(path.clone(), NOON);
    assert!(short.has(&of(1999), "it") && !short.has(&of(1), "it") && short.owes(&of(7000), "it"));
    let later = Receipts::in_file(path, NOON + SignedDuration::from_hours(8 * 24));
    assert!(later.owed().is_empty() && later.has(&of(1999), "it"));
}

fn program(place: &Place, name: &str, text: &str) {
    let path = place.directory.path().join(name);
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// What a terminal is written when it is told of a question.
fn written(variables: &[(&str, &str)], kind: &str, told: &Message) -> String {
    let screen = Arc::new(Mutex::new(Vec::new()));
    let kept = screen.clone();
    let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let place = Place { variables: variables.collect(), ..Place::new() };
    let terminal = Arc::new(move |bytes: &[u8]| kept.lock().unwrap().extend_from_slice(bytes));
    let around = Surroundings { person: Person::AtTerminal(terminal), ..place.around() };
    let outlet = Outlet::new(channel(&format!("kind = \"{kind}\"")).channel("it").unwrap(), around);
    outlet.send(told).unwrap();
    let bytes = screen.lock().unwrap().clone();
    String::from_utf8(bytes).unwrap()
}

#[test]
fn a_terminal_rings_or_shows_a_message_that_cannot_steer_it() {
    let asks = message(Occasion::Question);
    assert_eq!(written(&[], "bell", &asks), "\x07");
    let text = "signoff: Task #29 asks you: Add login. The fixer failed. Retry or stop?";
    assert_eq!(written(&[], "desktop", &asks), format!("\x1b]9;{text}\x07"));
    assert_eq!(
        written(&[("TMUX", "/tmp/x")], "desktop", &asks),
        format!("\x1bPtmux;\x1b\x1b]9;{text}\x07\x1b\\")
    );
    let hostile = Message { text: "\x07\x1b]0;owned\x07\u{9b}2J\u{202e}".repeat(100), ..asks };
    let shown = written(&[], "desktop", &hostile);
    let inside = shown.strip_prefix("\x1b]9;").and_then(|rest| rest.strip_suffix('\x07')).unwrap();
    assert!(!inside.contains(char::is_control) && inside.chars().count() <= 250, "{inside:?}");
}

#[test]
fn without_a_terminal_or_a_desktop_there_is_nobody_to_show_it_to() {
    let told = Place::new().send(&channel("kind = \"desktop\""), &message(Occasion::Question));
    insta::assert_snapshot!(told, @"there is no terminal here, and no desktop that `notify-send` reaches");
}

#[test]
fn a_dead_channel_is_told_once_and_holds_up_no_other() {
    let alive = Server::replying([Reply::status(200), Reply::status(200), Reply::status(200)]);
    let dead = Server::replying([Reply::status(404), Reply::status(404)]);
    let text = format!(
        "[notify]\nquestion = [\"dead\", \"alive\"]\ndone = [\"alive\"]\n\
         [notify.channels.dead]\nkind = \"webhook\"\nurl = \"{}/{SECRET}\"\n\
         [notify.channels.alive]\nkind = \"webhook\"\nurl = \"{}/{SECRET}\"\n",
        dead.address(),
        alive.address()
    );
    let settings = read(&[Layer::repository("signoff.toml", text)], &[], &[]).unwrap();
    let notifier = Notifier::start(&settings, &Place::new().around(), Receipts::none()).unwrap();
    for (seq, event) in (1..).zip([Occasion::Question, Occasion::Question, Occasion::Done, Occasion::Budget])
    {
        notifier.tell(message(event), occurrence(seq, event), NOON);
    }
    let notes = notifier.finish().join("\n").replace(&dead.host(), "HOST");
    insta::assert_snapshot!(notes, @"notify: dead: HOST answered 404; look whether its address is still right");
    let events = |server: &Server| -> Vec<Value> {
        server.requests().iter().map(|request| request.json()["event"].clone()).collect()
    };
    assert_eq!(events(&dead), ["question", "question"]);
    assert_eq!(events(&alive), ["question", "question", "done"]);
}

#[test]
fn where_nobody_sits_the_bell_needs_no_thread() {
    let settings = read(&[], &[], &[]).unwrap();
    assert!(Notifier::start(&settings, &Place::new().around(), Receipts::none()).is_none());
}
