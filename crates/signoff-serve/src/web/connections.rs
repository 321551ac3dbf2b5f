//! Connections: so many at once, and none that keeps its place without saying what it wants, or without hearing it.
//!
//! Any program of this machine can open them, without a token.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::serve::Listener;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::headers::parting;
use super::live::{HEARTBEAT, Live};
use super::patience::Patient;

/// How much is given to those who come, and how often they hear of us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// So many may be connected at once; others wait until one of them leaves.
    pub connections: usize,
    /// How long the head of a request may take, and how long nobody need ask for anything.
    pub head: Duration,
    /// How long nothing need be taken of an answer.
    pub answer: Duration,
    /// How often those who listen and have nothing to hear are told that somebody is there.
    pub heartbeat: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 256,
            head: Duration::from_secs(10),
            answer: Duration::from_secs(20),
            heartbeat: HEARTBEAT,
        }
    }
}

/// What all connections share.
#[derive(Clone)]
struct House {
    router: Router,
    live: Arc<Live>,
    limits: Limits,
    /// Whether somebody waits for a place.
    short: watch::Receiver<bool>,
}

/// Serves until it ends; then those who are being answered are answered to the end.
pub async fn serve(mut listener: TcpListener, router: Router, live: Arc<Live>, limits: Limits) {
    let (shortage, short) = watch::channel(false);
    let ended = live.ended();
    let house = House { router, live, limits, short };
    let mut connections = JoinSet::new();
    let mut next: Option<TcpStream> = None;
    tokio::pin!(ended);
    loop {
        if connections.len() < limits.connections
            && let Some(stream) = next.take()
        {
            connections.spawn(one(stream, house.clone()));
        }
        shortage.send_if_modified(|short| std::mem::replace(short, next.is_some()) != next.is_some());
        tokio::select! {
            () = &mut ended => break,
            Some(_) = connections.join_next() => {}
            (stream, _) = Listener::accept(&mut listener), if next.is_none() => next = Some(stream),
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

/// One connection. What becomes of it is no matter to anybody but who made it.
async fn one(stream: TcpStream, mut house: House) {
    // What is told as it happens is told in small pieces.
    stream.set_nodelay(true).ok();
    let (asked, router) = (AtomicBool::new(false), TowerToHyperService::new(house.router));
    let crowd = house.short.clone();
    let service = service_fn(|request| {
        asked.store(true, Ordering::Relaxed);
        let answering = router.call(request);
        async { answering.await.map(|answer| if *crowd.borrow() { parting(answer) } else { answer }) }
    });
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(house.limits.head);
    let stream = TokioIo::new(Patient::new(stream, house.limits.answer));
    let connection = server.serve_connection(stream, service);
    let ended = house.live.ended();
    tokio::pin!(connection, ended);
    loop {
        tokio::select! {
            _ = connection.as_mut() => return,
            () = &mut ended => break,
            // Who was answered has no need of a place; who has only just come may have asked already.
            Ok(()) = house.short.changed() => {
                if *house.short.borrow_and_update() && asked.load(Ordering::Relaxed) { break }
            }
        }
    }
    connection.as_mut().graceful_shutdown();
    connection.await.ok();
}
