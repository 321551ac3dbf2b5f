//! An HTTP server on the loopback interface with canned replies. It records its requests.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::Value;

/// The reply to one request.
#[derive(Debug)]
pub enum CannedReply {
    Answer(String),
    Close,
    /// Keeps the connection open without a response.
    Hang,
}

impl CannedReply {
    pub fn status(status: u16) -> Self {
        Self::Answer(format!("HTTP/1.1 {status} Whatever\r\nContent-Length: 0\r\nConnection: close\r\n"))
    }

    pub fn header(self, line: &str) -> Self {
        let Self::Answer(head) = self else { panic!("only answers have headers") };
        Self::Answer(format!("{head}{line}\r\n"))
    }

    pub fn close() -> Self {
        Self::Close
    }

    pub fn hang() -> Self {
        Self::Hang
    }
}

#[derive(Debug, Clone)]
pub struct RecordedRequest {
    pub head: String,
    body: String,
}

impl RecordedRequest {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).expect("JSON")
    }
}

#[derive(Debug)]
pub struct TestServer {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<RecordedRequest>>>,
}

impl TestServer {
    /// Serves one request per reply, in order.
    pub fn with_replies<const N: usize>(replies: [CannedReply; N]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = requests.clone();
        std::thread::spawn(move || {
            let mut held = Vec::new();
            for reply in replies {
                let (mut stream, _) = listener.accept().expect("a connection");
                seen.lock().expect("a server that did not panic").push(request(&stream));
                match reply {
                    CannedReply::Answer(head) => {
                        stream.write_all(format!("{head}\r\n").as_bytes()).expect("a client that reads the reply")
                    }
                    CannedReply::Close => {}
                    CannedReply::Hang => held.push(stream),
                }
            }
            // Keep hanging connections open until the test ends.
            std::thread::park();
        });
        Self { address, requests }
    }

    pub fn address(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn host(&self) -> String {
        self.address.to_string()
    }

    pub fn requests(&self) -> Vec<RecordedRequest> {
        self.requests.lock().expect("a server that did not panic").clone()
    }
}

fn request(stream: &TcpStream) -> RecordedRequest {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert_ne!(reader.read_line(&mut head).expect("text"), 0, "a whole request");
    }
    let length = head.to_lowercase().lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).expect("a body");
    RecordedRequest { head, body: String::from_utf8(body).expect("text") }
}
