//! Connections: so many at once, and none that keeps its place without saying what it wants.
//!
//! Any program of this machine can open them, without a token.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::serve::Listener;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::live::Live;

/// How much is given to those who did not show a token yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// So many may be connected at once; others wait until one of them leaves.
    pub connections: usize,
    /// How long the head of a request may take, and how long nobody need ask for anything.
    pub head: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { connections: 256, head: Duration::from_secs(10) }
    }
}

/// Serves until it ends; then those who are being answered are answered to the end.
pub async fn serve(mut listener: TcpListener, router: Router, live: Arc<Live>, limits: Limits) {
    let mut connections = JoinSet::new();
    let ended = live.ended();
    tokio::pin!(ended);
    loop {
        tokio::select! {
            () = &mut ended => break,
            Some(_) = connections.join_next() => {}
            (stream, _) = Listener::accept(&mut listener), if connections.len() < limits.connections => {
                connections.spawn(one(stream, router.clone(), live.clone(), limits.head));
            }
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

/// One connection. What becomes of it is no matter to anybody but who made it.
async fn one(stream: TcpStream, router: Router, live: Arc<Live>, head: Duration) {
    // What is told as it happens is told in small pieces.
    stream.set_nodelay(true).ok();
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(head);
    let connection = server.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    tokio::pin!(connection);
    tokio::select! {
        _ = connection.as_mut() => return,
        () = live.ended() => {}
    }
    connection.as_mut().graceful_shutdown();
    connection.await.ok();
}
