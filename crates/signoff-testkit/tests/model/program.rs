//! The `scripted_model` program, which serves a script from a file.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

const JSON: &str =
    r#"{ "rules": [{ "name": "build", "when": { "pattern": "build" }, "turns": [{ "say": "Built." }] }] }"#;

const TOML: &str = r#"
[[rules]]
name = "build"
when = { prompt = "build" }
turns = [
    { calls = [{ write = { path = "a", content = "b" } }, { mcp = { tool = "t" } }], usage = { input = 3, output = 4 } },
    { fault = { status = { status = 429, retry_after = 2 } }, times = 1, say = "Built." },
    { fault = "cut" },
    { fault = { delay = 5 } },
]
"#;

#[expect(clippy::disallowed_methods, reason = "the only place where these tests spawn a process")]
fn command(directory: &TempDir, name: &str, script: &str) -> Command {
    let path = directory.path().join(name);
    fs::write(&path, script).expect("write the script");
    let mut command = Command::new(env!("CARGO_BIN_EXE_scripted_model"));
    command.arg("--script").arg(path).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn refused(name: &str, script: &str) -> Output {
    let output =
        command(&TempDir::new().expect("a temporary directory"), name, script).output().expect("run the program");
    assert!(!output.status.success());
    output
}

/// Returns the open connection: the server may ignore a request whose connection is closed at once.
fn ask(url: &str, prompt: &str) -> TcpStream {
    let mut stream = TcpStream::connect(url.trim().trim_start_matches("http://")).expect("connect");
    let body =
        format!(r#"{{ "messages": [{{ "role": "user", "content": "{prompt}" }}], "tools": [{{ "name": "Bash" }}] }}"#);
    let head = format!("POST /v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n", body.len());
    stream.write_all(format!("{head}{body}").as_bytes()).expect("send the request");
    stream
}

fn first_lines(mut child: Child) -> (Value, Value) {
    let mut out = BufReader::new(child.stdout.take().expect("a piped stdout"));
    let (mut url, mut line) = (String::new(), String::new());
    out.read_line(&mut url).expect("read the URL");
    let _open = ask(&url, "build it");
    out.read_line(&mut line).expect("read the request line");
    child.kill().expect("kill");
    child.wait().expect("wait");
    let seen: Value = serde_json::from_str(&line).expect("JSON");
    (seen["rule"].clone(), seen["usage"]["output"].clone())
}

#[test]
fn json_and_toml_scripts_are_served_and_requests_printed() {
    let directory = TempDir::new().unwrap();
    let json = command(&directory, "a.json", JSON).spawn().unwrap();
    assert_eq!(first_lines(json), ("build".into(), 2.into()));
    let toml = command(&directory, "a.toml", TOML).spawn().unwrap();
    assert_eq!(first_lines(toml), ("build".into(), 4.into()));
}

#[test]
fn errors_in_a_script_are_reported() {
    let error_of = |name, script| {
        let text = String::from_utf8(refused(name, script).stderr).unwrap();
        text.split_once(name).unwrap().1.to_owned()
    };
    insta::assert_snapshot!(error_of("a.json", r#"{ "rule": [] }"#), @": unknown field `rule`, expected one of `models`, `find`, `rules`, `default` at line 1 column 8");
    insta::assert_snapshot!(error_of("b.toml", "[[rules]]\nname = 'a'\nturns = []\nwhen = { pattern = '(' }\n"), @r#"
    : TOML parse error at line 4, column 20
      |
    4 | when = { pattern = '(' }
      |                    ^^^
    regex parse error:
        (
        ^
    error: unclosed group
    "#);
}
