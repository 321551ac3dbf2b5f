//! Accepts connections, with a limit on their number and timeouts for idle and stalled clients.
//!
//! Any program on this machine can open a connection without a token.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::serve::Listener;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Sleep, sleep};

use super::app_state::close_connection;
use super::live_updates::{HEARTBEAT_INTERVAL, LiveUpdates};

/// Limits on connections, and the heartbeat interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// Maximum number of open connections; further clients wait for a free slot.
    pub max_connections: usize,
    /// Timeout for the head of a request, also for idle keep-alive connections.
    pub header_timeout: Duration,
    /// Timeout for a client that stops reading its response.
    pub write_timeout: Duration,
    /// Interval of heartbeats on an idle event stream.
    pub heartbeat: Duration,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self {
            max_connections: 256,
            header_timeout: Duration::from_secs(10),
            write_timeout: Duration::from_secs(20),
            heartbeat: HEARTBEAT_INTERVAL,
        }
    }
}

/// State that all connections share.
#[derive(Clone)]
struct ConnectionContext {
    router: Router,
    live: Arc<LiveUpdates>,
    limits: ConnectionLimits,
    /// Whether a client waits for a free slot.
    slots_exhausted: watch::Receiver<bool>,
}

/// Serves until `LiveUpdates` stops, then finishes the responses in progress.
pub async fn serve(mut listener: TcpListener, router: Router, live: Arc<LiveUpdates>, limits: ConnectionLimits) {
    let (slots_exhausted_sender, slots_exhausted) = watch::channel(false);
    let ended = live.stopped();
    let context = ConnectionContext { router, live, limits, slots_exhausted };
    let mut connections = JoinSet::new();
    let mut next: Option<TcpStream> = None;
    tokio::pin!(ended);
    loop {
        if connections.len() < limits.max_connections
            && let Some(stream) = next.take()
        {
            connections.spawn(handle_connection(stream, context.clone()));
        }
        slots_exhausted_sender
            .send_if_modified(|exhausted| std::mem::replace(exhausted, next.is_some()) != next.is_some());
        tokio::select! {
            () = &mut ended => break,
            Some(_) = connections.join_next() => {}
            (stream, _) = Listener::accept(&mut listener), if next.is_none() => next = Some(stream),
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

/// Serves one connection. Its errors concern only this client.
async fn handle_connection(stream: TcpStream, mut context: ConnectionContext) {
    // Live updates are sent in small pieces.
    stream.set_nodelay(true).ok();
    let (had_request, router) = (AtomicBool::new(false), TowerToHyperService::new(context.router));
    let slots_exhausted = context.slots_exhausted.clone();
    let service = service_fn(|request| {
        had_request.store(true, Ordering::Relaxed);
        let response = router.call(request);
        async {
            response.await.map(|response| if *slots_exhausted.borrow() { close_connection(response) } else { response })
        }
    });
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(context.limits.header_timeout);
    let stream = TokioIo::new(WriteTimeoutStream::new(stream, context.limits.write_timeout));
    let connection = server.serve_connection(stream, service);
    let ended = context.live.stopped();
    tokio::pin!(connection, ended);
    loop {
        tokio::select! {
            _ = connection.as_mut() => return,
            () = &mut ended => break,
            // When slots run out, close connections that had a request. A new one may have a request in progress.
            Ok(()) = context.slots_exhausted.changed() => {
                if *context.slots_exhausted.borrow_and_update() && had_request.load(Ordering::Relaxed) { break }
            }
        }
    }
    connection.as_mut().graceful_shutdown();
    connection.await.ok();
}

/// Fails if the client accepts no data for too long while some is pending. An idle connection does not fail.
pub struct WriteTimeoutStream {
    stream: TcpStream,
    limit: Duration,
    /// Runs while a write is pending.
    timer: Option<Pin<Box<Sleep>>>,
}

impl WriteTimeoutStream {
    pub fn new(stream: TcpStream, limit: Duration) -> Self {
        Self { stream, limit, timer: None }
    }

    fn check_timeout<T>(&mut self, context: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.timer = None;
            return written;
        }
        let limit = self.limit;
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(limit)));
        timer.as_mut().poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for WriteTimeoutStream {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, into)
    }
}

impl AsyncWrite for WriteTimeoutStream {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.check_timeout(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.check_timeout(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    // TCP streams do not buffer here: neither of these waits for the client.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
