//! A minimal HTTP client for the web UI. It sends exactly the given bytes.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

/// Read timeout, so that a hanging server does not hang the test.
const READ_TIMEOUT: Duration = Duration::from_secs(60);

/// A client with the URL of the web UI. It sends the headers that a browser sends.
#[derive(Debug, Clone)]
pub struct WebClient {
    pub port: u16,
    pub token: String,
}

/// One HTTP request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebRequest {
    /// `GET /tasks/1`
    pub line: String,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

/// The server's response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebResponse {
    pub status: u16,
    /// Names are in lower case.
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl WebRequest {
    /// Sets a header, replacing existing ones; `None` removes it.
    #[must_use]
    pub fn with(mut self, name: &str, value: Option<&str>) -> Self {
        self.headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self.headers.extend(value.map(|value| (name.to_owned(), value.to_owned())));
        self
    }

    /// Adds a header, keeping existing ones.
    #[must_use]
    pub fn with_added(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    fn text(&self) -> String {
        let headers: String = self.headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        format!("{} HTTP/1.1\r\n{headers}\r\n{}", self.line, self.body)
    }
}

impl WebResponse {
    /// The value of a header; empty if it is missing.
    pub fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }
}

impl WebClient {
    /// Creates a client for a URL like `http://127.0.0.1:4711/?token=…`.
    ///
    /// # Panics
    /// If the URL has another form.
    pub fn from_url(url: &str) -> Self {
        let rest = url.trim().strip_prefix("http://127.0.0.1:").expect("an address of this machine");
        let (port, token) = rest.split_once("/?token=").expect("a token");
        Self { port: port.parse().expect("a port"), token: token.to_owned() }
    }

    pub fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub fn cookie(&self) -> String {
        format!("signoff-{}={}", self.port, self.token)
    }

    /// The request that a browser sends for a page.
    pub fn get_request(&self, path: &str) -> WebRequest {
        let headers = [("Host", self.host()), ("Cookie", self.cookie()), ("Connection", "close".to_owned())];
        let headers = headers.map(|(name, value)| (name.to_owned(), value)).to_vec();
        WebRequest { line: format!("GET {path}"), headers, body: String::new() }
    }

    /// The request that a browser sends for a form.
    pub fn form_request(&self, path: &str, form: &str) -> WebRequest {
        let request = WebRequest { line: format!("POST {path}"), body: form.to_owned(), ..self.get_request(path) };
        request
            .with_added("Origin", &format!("http://{}", self.host()))
            .with_added("Content-Type", "application/x-www-form-urlencoded")
            .with_added("Content-Length", &form.len().to_string())
    }

    pub fn get(&self, path: &str) -> WebResponse {
        self.request(&self.get_request(path))
    }

    pub fn post(&self, path: &str, form: &str) -> WebResponse {
        self.request(&self.form_request(path, form))
    }

    /// Sends a form and follows the redirect.
    ///
    /// # Panics
    /// If the response is no redirect.
    pub fn submit(&self, path: &str, form: &str) -> WebResponse {
        let answer = self.post(path, form);
        assert_eq!(answer.status, 303, "{path}: {}", answer.body);
        self.get(answer.header("location"))
    }

    /// Sends a request and reads the full response.
    ///
    /// # Panics
    /// If there is no server or no response.
    pub fn request(&self, request: &WebRequest) -> WebResponse {
        let mut stream = self.connect();
        // A server may refuse a long body before it has read it.
        stream.write_all(request.text().as_bytes()).ok();
        let mut answer = Vec::new();
        let read = stream.read_to_end(&mut answer);
        assert!(read.is_ok() || !answer.is_empty(), "no answer to {}: {read:?}", request.line);
        parse(&String::from_utf8_lossy(&answer))
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).expect("a server");
        stream.set_read_timeout(Some(READ_TIMEOUT)).expect("a limit");
        stream
    }

    /// Opens the event stream.
    ///
    /// # Panics
    /// If the server refuses.
    pub fn listen(&self) -> EventStream {
        self.listen_after(None).expect("a place to listen")
    }

    /// Opens the event stream after the event `last`. Returns the response as an error if the server refuses.
    pub fn listen_after(&self, last: Option<u64>) -> Result<EventStream, WebResponse> {
        let request = self.get_request("/events").with("Last-Event-ID", last.map(|last| last.to_string()).as_deref());
        let mut stream = self.connect();
        stream.write_all(request.text().as_bytes()).expect("a server that listens");
        let mut lines = BufReader::new(stream);
        let mut first = String::new();
        lines.read_line(&mut first).expect("an answer");
        if first.contains(" 200 ") {
            return Ok(EventStream { lines });
        }
        lines.read_to_string(&mut first).expect("an answer");
        Err(parse(&first))
    }
}

/// An open event stream.
#[derive(Debug)]
pub struct EventStream {
    lines: BufReader<TcpStream>,
}

/// Yields change events until the server closes the stream. Panics if none arrives within a minute, or on bad JSON.
impl Iterator for EventStream {
    type Item = Value;

    fn next(&mut self) -> Option<Value> {
        loop {
            let mut line = String::new();
            if self.lines.read_line(&mut line).expect("a line") == 0 {
                return None;
            }
            // Events without a number are heartbeats.
            let data = line.strip_prefix("data:").map(|data| serde_json::from_str(data.trim()).expect("JSON"));
            if let Some(change) = data.filter(|data: &Value| data["seq"].is_u64()) {
                return Some(change);
            }
        }
    }
}

impl EventStream {
    /// Waits for a change of a task.
    ///
    /// # Panics
    /// If the stream ends before.
    pub fn wait_for_task(&mut self, task: u64) -> Value {
        loop {
            let change = self.next().expect("a server that goes on");
            let tasks = change["tasks"].as_array().cloned().unwrap_or_default();
            if tasks.contains(&task.into()) {
                return change;
            }
        }
    }
}

fn parse(text: &str) -> WebResponse {
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((text, ""));
    let mut lines = head.lines();
    let status = lines.next().and_then(|line| line.split(' ').nth(1)?.parse().ok()).expect("a status");
    let header = |line: &str| {
        let (name, value) = line.split_once(':')?;
        Some((name.to_ascii_lowercase(), value.trim().to_owned()))
    };
    WebResponse { status, headers: lines.filter_map(header).collect(), body: body.to_owned() }
}
