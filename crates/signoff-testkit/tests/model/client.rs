//! A minimal HTTP client that distinguishes complete responses from truncated ones.

use std::fmt;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};
use signoff_testkit::model::ScriptedModel;

/// Read timeout, so that a hanging server does not hang the test.
const READ_TIMEOUT: Duration = Duration::from_secs(60);

/// A parsed HTTP response.
#[derive(Debug)]
pub struct HttpResponse {
    pub status: u16,
    pub head: String,
    pub body: String,
    /// Whether the body ended as the headers announced.
    pub is_complete: bool,
}

/// An open request and the part of the response read so far.
pub struct OpenHttpRequest(TcpStream, Vec<u8>);

pub fn get(model: &ScriptedModel, path: &str) -> HttpResponse {
    ask(model, "GET", path, "").answer()
}

pub fn post(model: &ScriptedModel, path: &str, body: &Value) -> HttpResponse {
    ask(model, "POST", path, &body.to_string()).answer()
}

pub fn ask(model: &ScriptedModel, method: &str, path: &str, body: &str) -> OpenHttpRequest {
    let address = model.url().trim_start_matches("http://");
    let mut stream = TcpStream::connect(address).expect("a server");
    stream.set_read_timeout(Some(READ_TIMEOUT)).expect("a limit");
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Length: {}\r\n\
         Authorization: Bearer key\r\nUser-Agent: test\r\n\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes()).expect("a sent request");
    OpenHttpRequest(stream, Vec::new())
}

impl OpenHttpRequest {
    pub fn answer(mut self) -> HttpResponse {
        // A broken connection ends the response; the test inspects the part that was read.
        self.0.read_to_end(&mut self.1).ok();
        HttpResponse::read(&self.text())
    }

    /// Reads until the response contains `words`.
    pub fn wait_for(&mut self, words: &str) {
        let mut bytes = [0; 4096];
        while !self.text().contains(words) {
            let count = self.0.read(&mut bytes).expect("more to read");
            assert_ne!(count, 0, "it ended with {}", self.text());
            self.1.extend(&bytes[..count]);
        }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.1).into_owned()
    }
}

impl HttpResponse {
    fn read(text: &str) -> Self {
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((text, ""));
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
        let is_chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
        let (body, is_complete) = if is_chunked { decode_chunks(body) } else { (body.to_owned(), true) };
        Self { status, head: head.to_owned(), body, is_complete }
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self}"))
    }
}

/// The status, the relevant headers and the body.
impl fmt::Display for HttpResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let matters = |line: &&str| line.starts_with("content-type") || line.starts_with("retry-after");
        writeln!(f, "{}", self.status)?;
        for line in self.head.lines().filter(matters) {
            writeln!(f, "{line}")?;
        }
        let end = if self.is_complete { "" } else { "(broken off)" };
        write!(f, "\n{}{end}", self.body.replace("\n\n", "\n"))
    }
}

fn decode_chunks(mut text: &str) -> (String, bool) {
    let mut body = String::new();
    while let Some((size, rest)) = text.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).expect("a size");
        if size == 0 {
            return (body, true);
        }
        body.push_str(&rest[..size.min(rest.len())]);
        text = rest.get(size + 2..).unwrap_or("");
    }
    (body, false)
}

/// The same request in each API dialect: a prompt and two tools.
pub fn dialects() -> [(&'static str, Value); 4] {
    let schema = json!({
        "type": "object",
        "properties": { "file_path": { "type": "string" }, "content": { "type": "string" } },
        "required": ["file_path", "content"],
    });
    let messages = json!([{ "role": "user", "content": "Please build it" }]);
    [
        (
            "/v1/messages",
            json!({
                "model": "m", "messages": messages, "system": "Be good.",
                "tools": [{ "name": "Write", "input_schema": schema }],
            }),
        ),
        (
            "/v1/responses",
            json!({
                "model": "m", "input": "Please build it", "instructions": "Be good.",
                "tools": [{ "type": "function", "name": "write", "parameters": schema }],
            }),
        ),
        (
            "/v1/chat/completions",
            json!({
                "model": "m", "messages": messages,
                "tools": [{ "type": "function", "function": { "name": "write", "parameters": schema } }],
            }),
        ),
        (
            "/v1beta/models/m:generateContent",
            json!({
                "contents": [{ "role": "user", "parts": [{ "text": "Please build it" }] }],
                "tools": [{ "functionDeclarations": [{ "name": "write_file", "parametersJsonSchema": schema }] }],
            }),
        ),
    ]
}

/// The same request with streaming enabled.
pub fn streamed((path, mut body): (&'static str, Value)) -> (String, Value) {
    if path.contains(':') {
        return (path.replace(":generateContent", ":streamGenerateContent?alt=sse"), body);
    }
    body["stream"] = json!(true);
    (path.to_owned(), body)
}
