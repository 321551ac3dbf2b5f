//! A minimal MCP client over HTTP: one request per connection.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};

/// Read timeout, so that a hanging server does not hang the test.
const READ_TIMEOUT: Duration = Duration::from_secs(60);

/// An MCP client, with or without a token.
#[derive(Debug, Clone)]
pub struct McpClient {
    /// `127.0.0.1:PORT`
    address: String,
    path: String,
    headers: Vec<(String, String)>,
}

/// The server's response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpReply {
    pub status: u16,
    pub body: String,
}

impl McpClient {
    /// Creates a client for a URL like `http://127.0.0.1:4711/mcp`.
    pub fn new(url: &str) -> Self {
        let rest = url.trim_start_matches("http://");
        let (address, path) = rest.split_once('/').unwrap_or((rest, ""));
        let headers = [
            ("Host", address),
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
            ("Connection", "close"),
        ];
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        Self { address: address.to_owned(), path: format!("/{path}"), headers }
    }

    #[must_use]
    pub fn with_token(self, token: &str) -> Self {
        self.with_header("Authorization", &format!("Bearer {token}"))
    }

    /// Sets a header, replacing an existing one.
    #[must_use]
    pub fn with_header(mut self, name: &str, value: &str) -> Self {
        self.headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Calls a tool.
    pub fn call(&self, tool: &str, arguments: &Value) -> io::Result<McpReply> {
        self.request("tools/call", &json!({ "name": tool, "arguments": arguments }))
    }

    /// The names of the available tools.
    pub fn tools(&self) -> io::Result<Vec<String>> {
        let reply = self.request("tools/list", &json!({}))?;
        let body: Value = serde_json::from_str(&reply.body).unwrap_or_default();
        let tools = body["result"]["tools"].as_array().cloned().unwrap_or_default();
        Ok(tools.iter().filter_map(|tool| Some(tool["name"].as_str()?.to_owned())).collect())
    }

    pub fn request(&self, method: &str, params: &Value) -> io::Result<McpReply> {
        self.post(&json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string())
    }

    /// Sends a raw body.
    pub fn post(&self, body: &str) -> io::Result<McpReply> {
        let mut stream = TcpStream::connect(&self.address)?;
        stream.set_read_timeout(Some(READ_TIMEOUT))?;
        let mut text = format!("POST {} HTTP/1.1\r\nContent-Length: {}\r\n", self.path, body.len());
        for (name, value) in &self.headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        stream.write_all(format!("{text}\r\n{body}").as_bytes())?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        let answer = String::from_utf8_lossy(&answer);
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
        let status = status.ok_or_else(|| io::Error::other(format!("no HTTP: {head}")))?;
        Ok(McpReply { status, body: body.to_owned() })
    }
}

impl McpReply {
    /// Whether the tool call succeeded.
    pub fn is_success(&self) -> bool {
        self.status == 200 && self.result()["isError"].as_bool() != Some(true) && !self.result().is_null()
    }

    fn result(&self) -> Value {
        let body: Value = serde_json::from_str(&self.body).unwrap_or_default();
        body["result"].clone()
    }
}

/// The status and the readable text of the result.
impl fmt::Display for McpReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let result = self.result();
        let text = result["content"][0]["text"].as_str().unwrap_or(self.body.trim_end());
        let refused = if result["isError"].as_bool() == Some(true) { "refused: " } else { "" };
        write!(f, "{} {refused}{text}", self.status)
    }
}
