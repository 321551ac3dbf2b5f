//! A client of the page over HTTP, as small as can be: it sends exactly what it is told to.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

/// A server that hangs must not hang the test.
const PATIENCE: Duration = Duration::from_secs(60);

/// Somebody who has the address of the page, and behaves as a browser does.
#[derive(Debug, Clone)]
pub struct Visitor {
    pub port: u16,
    pub token: String,
}

/// One request: its head without what is added by itself, and its body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// `GET /tasks/1`
    pub line: String,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

/// What the server said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    /// Names in small letters.
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl Asked {
    /// Sets a header, in place of those that are there; none takes it away.
    #[must_use]
    pub fn with(mut self, name: &str, value: Option<&str>) -> Self {
        self.headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self.headers.extend(value.map(|value| (name.to_owned(), value.to_owned())));
        self
    }

    /// Adds a header to those that are there.
    #[must_use]
    pub fn and(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    fn text(&self) -> String {
        let headers: String =
            self.headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        format!("{} HTTP/1.1\r\n{headers}\r\n{}", self.line, self.body)
    }
}

impl Answer {
    /// The value of a header; empty where it is not there.
    pub fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }
}

impl Visitor {
    /// Of an address like `http://127.0.0.1:4711/?token=…`.
    ///
    /// # Panics
    /// If it is none.
    pub fn of(url: &str) -> Self {
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

    /// What a browser would send for a page.
    pub fn asks(&self, path: &str) -> Asked {
        let headers = [("Host", self.host()), ("Cookie", self.cookie()), ("Connection", "close".to_owned())];
        let headers = headers.map(|(name, value)| (name.to_owned(), value)).to_vec();
        Asked { line: format!("GET {path}"), headers, body: String::new() }
    }

    /// What a browser would send for a form.
    pub fn sends(&self, path: &str, form: &str) -> Asked {
        let asked = Asked { line: format!("POST {path}"), body: form.to_owned(), ..self.asks(path) };
        asked
            .and("Origin", &format!("http://{}", self.host()))
            .and("Content-Type", "application/x-www-form-urlencoded")
            .and("Content-Length", &form.len().to_string())
    }

    pub fn get(&self, path: &str) -> Answer {
        self.request(&self.asks(path))
    }

    pub fn post(&self, path: &str, form: &str) -> Answer {
        self.request(&self.sends(path, form))
    }

    /// Sends a form, and looks at the page that it leads to.
    ///
    /// # Panics
    /// If it leads to none.
    pub fn submit(&self, path: &str, form: &str) -> Answer {
        let answer = self.post(path, form);
        assert_eq!(answer.status, 303, "{path}: {}", answer.body);
        self.get(answer.header("location"))
    }

    /// Sends a request, and hears the answer to its end.
    ///
    /// # Panics
    /// If there is no server, or no answer.
    pub fn request(&self, asked: &Asked) -> Answer {
        let mut stream = self.connect();
        // A server may refuse a long body before it has read it.
        stream.write_all(asked.text().as_bytes()).ok();
        let mut answer = Vec::new();
        let read = stream.read_to_end(&mut answer);
        assert!(read.is_ok() || !answer.is_empty(), "no answer to {}: {read:?}", asked.line);
        parse(&String::from_utf8_lossy(&answer))
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).expect("a server");
        stream.set_read_timeout(Some(PATIENCE)).expect("a limit");
        stream
    }

    /// Listens to what changes.
    ///
    /// # Panics
    /// If the server does not let it.
    pub fn listen(&self) -> Listening {
        self.listen_after(None).expect("a place to listen")
    }

    /// The same from what was heard last; otherwise what the server says instead.
    pub fn listen_after(&self, last: Option<u64>) -> Result<Listening, Answer> {
        let asked = self.asks("/events").with("Last-Event-ID", last.map(|last| last.to_string()).as_deref());
        let mut stream = self.connect();
        stream.write_all(asked.text().as_bytes()).expect("a server that listens");
        let mut lines = BufReader::new(stream);
        let mut first = String::new();
        lines.read_line(&mut first).expect("an answer");
        if first.contains(" 200 ") {
            return Ok(Listening { lines });
        }
        lines.read_to_string(&mut first).expect("an answer");
        Err(parse(&first))
    }
}

/// Somebody who listens.
#[derive(Debug)]
pub struct Listening {
    lines: BufReader<TcpStream>,
}

/// Changes, as they come; it ends with the server. Panics if nothing comes for a minute, or something that is no change.
impl Iterator for Listening {
    type Item = Value;

    fn next(&mut self) -> Option<Value> {
        loop {
            let mut line = String::new();
            if self.lines.read_line(&mut line).expect("a line") == 0 {
                return None;
            }
            // What has no number is a sign of life.
            let told =
                line.strip_prefix("data:").map(|data| serde_json::from_str(data.trim()).expect("JSON"));
            if let Some(change) = told.filter(|told: &Value| told["seq"].is_u64()) {
                return Some(change);
            }
        }
    }
}

impl Listening {
    /// Listens until a change is about a task.
    ///
    /// # Panics
    /// If the server ends before.
    pub fn hears_of_task(&mut self, task: u64) -> Value {
        loop {
            let change = self.next().expect("a server that goes on");
            let tasks = change["tasks"].as_array().cloned().unwrap_or_default();
            if tasks.contains(&task.into()) {
                return change;
            }
        }
    }
}

fn parse(text: &str) -> Answer {
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((text, ""));
    let mut lines = head.lines();
    let status = lines.next().and_then(|line| line.split(' ').nth(1)?.parse().ok()).expect("a status");
    let header = |line: &str| {
        let (name, value) = line.split_once(':')?;
        Some((name.to_ascii_lowercase(), value.trim().to_owned()))
    };
    Answer { status, headers: lines.filter_map(header).collect(), body: body.to_owned() }
}
