//! Signals, for whoever has the terminal.

use std::io;

use rustix::process::Signal;
use tokio::signal::unix::{Signal as Signals, SignalKind, signal};

/// What a signal means for whoever has the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    /// Come to an end.
    End,
    /// Give the terminal back, and stop.
    Stop,
    /// It goes on after it was stopped: the terminal may have been another's.
    GoOn,
    /// The terminal has another size.
    Resized,
}

/// Who ends by signals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ends {
    /// Whoever has the terminal.
    Here,
    /// Somebody else, who tells.
    Elsewhere,
}

/// Tells of signals from now on, in a thread of its own.
pub fn listen(ends: Ends, tell: impl Fn(Told) -> bool + Send + 'static) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let _inside = runtime.enter();
    let heard = |kind: Signal| signal(SignalKind::from_raw(kind.as_raw()));
    let (stop, go_on, size) = (heard(Signal::TSTP)?, heard(Signal::CONT)?, heard(Signal::WINCH)?);
    let ends = match ends {
        Ends::Here => vec![heard(Signal::INT)?, heard(Signal::TERM)?, heard(Signal::HUP)?],
        Ends::Elsewhere => Vec::new(),
    };
    drop(_inside);
    std::thread::spawn(move || runtime.block_on(hear((stop, [go_on, size]), ends, tell)));
    Ok(())
}

async fn hear(
    (mut stop, [mut go_on, mut size]): (Signals, [Signals; 2]),
    mut ends: Vec<Signals>,
    tell: impl Fn(Told) -> bool,
) {
    loop {
        let told = tokio::select! {
            _ = stop.recv() => Told::Stop,
            _ = go_on.recv() => Told::GoOn,
            _ = size.recv() => Told::Resized,
            () = any(&mut ends) => Told::End,
        };
        if !tell(told) {
            return;
        }
    }
}

/// Waits for the first of them; for ever where there are none.
async fn any(signals: &mut [Signals]) {
    std::future::poll_fn(|context| {
        let ready = |one: &mut Signals| one.poll_recv(context).is_ready();
        if signals.iter_mut().any(ready) { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
}
