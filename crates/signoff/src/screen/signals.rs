//! Signals that concern the terminal.

use std::io;

use rustix::process::Signal;
use tokio::signal::unix::{Signal as Signals, SignalKind, signal};

/// What a signal means for the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TerminalSignal {
    /// Close the screen.
    End,
    /// Restore the terminal and stop the process.
    Stop,
    /// Continue after a stop. The terminal may have changed.
    Continue,
    /// The terminal was resized.
    Resized,
}

/// Where termination signals are handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TerminationSignals {
    /// By the screen.
    HandledByScreen,
    /// By the dispatcher, which then ends the screen.
    HandledElsewhere,
}

/// Starts a thread that passes signals to `tell` until it returns false.
pub fn listen(ends: TerminationSignals, tell: impl Fn(TerminalSignal) -> bool + Send + 'static) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let _inside = runtime.enter();
    let handler = |kind: Signal| signal(SignalKind::from_raw(kind.as_raw()));
    let (stop, go_on, size) = (handler(Signal::TSTP)?, handler(Signal::CONT)?, handler(Signal::WINCH)?);
    let ends = match ends {
        TerminationSignals::HandledByScreen => {
            vec![handler(Signal::INT)?, handler(Signal::TERM)?, handler(Signal::HUP)?]
        }
        TerminationSignals::HandledElsewhere => Vec::new(),
    };
    drop(_inside);
    std::thread::spawn(move || runtime.block_on(forward(stop, go_on, size, ends, tell)));
    Ok(())
}

async fn forward(
    mut stop: Signals,
    mut go_on: Signals,
    mut size: Signals,
    mut ends: Vec<Signals>,
    tell: impl Fn(TerminalSignal) -> bool,
) {
    loop {
        let received = tokio::select! {
            _ = stop.recv() => TerminalSignal::Stop,
            _ = go_on.recv() => TerminalSignal::Continue,
            _ = size.recv() => TerminalSignal::Resized,
            () = any_signal(&mut ends) => TerminalSignal::End,
        };
        if !tell(received) {
            return;
        }
    }
}

/// Waits for the first signal; forever if the slice is empty.
async fn any_signal(signals: &mut [Signals]) {
    std::future::poll_fn(|context| {
        let ready = |one: &mut Signals| one.poll_recv(context).is_ready();
        if signals.iter_mut().any(ready) { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
}
