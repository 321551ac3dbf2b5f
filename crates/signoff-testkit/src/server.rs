//! A server on the loopback interface that replies as it is told, and remembers what it was asked.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::Value;

/// What it does with one request.
#[derive(Debug)]
pub enum Reply {
    Answer(String),
    Close,
    /// Holds the connection and says nothing.
    Hang,
}

impl Reply {
    pub fn status(status: u16) -> Self {
        Self::Answer(format!("HTTP/1.1 {status} Whatever\r\nContent-Length: 0\r\nConnection: close\r\n"))
    }

    pub fn header(self, line: &str) -> Self {
        let Self::Answer(head) = self else { panic!("only answers have headers") };
        Self::Answer(format!("{head}{line}\r\n"))
    }

    pub fn closes() -> Self {
        Self::Close
    }

    pub fn hangs() -> Self {
        Self::Hang
    }
}

#[derive(Debug, Clone)]
pub struct Request {
    pub head: String,
    body: String,
}

impl Request {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).expect("JSON")
    }
}

#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Server {
    /// Takes as many requests as there are replies, one after the other.
    pub fn replying<const N: usize>(replies: [Reply; N]) -> Self {
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
                    Reply::Answer(head) => {
                        stream.write_all(format!("{head}\r\n").as_bytes()).expect("somebody who listens")
                    }
                    Reply::Close => {}
                    Reply::Hang => held.push(stream),
                }
            }
            // Nobody is left hanging before the test is over.
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

    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().expect("a server that did not panic").clone()
    }
}

fn request(stream: &TcpStream) -> Request {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert_ne!(reader.read_line(&mut head).expect("text"), 0, "a whole request");
    }
    let length =
        head.to_lowercase().lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).expect("a body");
    Request { head, body: String::from_utf8(body).expect("text") }
}
