//! `signoff serve`: the tasks on a page, for a browser.

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use signoff_serve::web::{Limits, Web};
use signoff_term::json::{ServeReport, VERSION};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::console::{Console, say};
use crate::desk;
use crate::door;
use crate::drive;
use crate::failure::{Exit, Failure};
use crate::serving::Serving;

/// The port where nobody says another one.
const PORT: u16 = 7447;

/// Show the tasks on a page, and decide about them there
///
/// Prints the address of the page, which follows what happens: what needs you, what runs, what was found, what changed and
/// what it cost. Questions are answered there, tasks added, retried and called off. The page works nothing itself:
/// `signoff work` does, beside it or later. Whoever has the address may decide everything, so it is a new one with
/// each start, and only programs of this machine reach it. Ctrl-C ends it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  signoff serve --open\n  signoff serve --port 0 --json")]
pub struct Args {
    /// The port; 0 takes a free one
    #[arg(long, value_name = "N", default_value_t = PORT)]
    port: u16,
    /// The address of this machine that it listens on
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1", value_parser = address)]
    host: IpAddr,
    /// Let others than this machine reach it; without encryption
    #[arg(long)]
    allow_remote: bool,
    /// Open it in the browser
    #[arg(long)]
    open: bool,
}

fn address(text: &str) -> Result<IpAddr, String> {
    match text {
        "localhost" => Ok(Ipv4Addr::LOCALHOST.into()),
        text => text.parse().map_err(|_| format!("`{text}` is no address: 127.0.0.1 is one")),
    }
}

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<Exit, Failure> {
    check_reach(args)?;
    let root = desk::root()?;
    let runtime = drive::runtime()?;
    let served = runtime.block_on(serve(args, root, console));
    // What still hangs in a thread must not keep the program from ending.
    runtime.shutdown_background();
    served.map(|()| Exit::Done)
}

/// Nobody lets the world in by a slip.
fn check_reach(args: &Args) -> Result<(), Failure> {
    if args.host.is_loopback() || args.allow_remote {
        return Ok(());
    }
    Err(Failure::usage(format!("others than this machine would reach {}", args.host)).hint(
        "leave --host out; or add --allow-remote if that is meant: whoever sees the address on its way may decide \
         everything. `ssh -L` brings the page to another machine safely",
    ))
}

async fn serve(args: &Args, root: std::path::PathBuf, console: &Console) -> Result<(), Failure> {
    // Whoever reads the address may end us at once.
    let ends = ends()?;
    let at = SocketAddr::new(args.host, args.port);
    let web = Web::start_with(Arc::new(Serving::new(root)), at, limits()).await;
    let web = web.map_err(|error| not_served(&error, at))?;
    if !args.host.is_loopback() {
        say(
            "warning: others than this machine can reach this page, and nothing that is sent is encrypted: whoever \
             sees the address on its way may decide everything\n",
        );
    }
    tell(&web, console)?;
    if args.open {
        open(&web, console);
    }
    ended(ends).await;
    web.end().await;
    Ok(())
}

fn limits() -> Limits {
    let usual = Limits::default();
    let heartbeat = door::test_number("SIGNOFF_TEST_HEARTBEAT_MS").map(Duration::from_millis);
    Limits { heartbeat: heartbeat.unwrap_or(usual.heartbeat), ..usual }
}

fn tell(web: &Web, console: &Console) -> Result<(), Failure> {
    let (url, port) = (web.url(), web.port());
    if console.json {
        console.json_line(&ServeReport { version: VERSION, url, port })?;
    } else {
        console.text(&format!("{url}\n"))?;
    }
    console.note("Open it in a browser. Whoever has it may decide everything. Ctrl-C ends it");
    Ok(())
}

/// What is told to open it is seen by everybody on this machine: so it is good for one visit.
fn open(web: &Web, console: &Console) {
    if let Err(error) = door::open(&web.url_for_once()) {
        console.note(&format!("it could not be opened ({error}): open it yourself"));
    }
}

fn not_served(error: &std::io::Error, at: SocketAddr) -> Failure {
    if error.kind() == ErrorKind::AddrInUse {
        return Failure::failed(format!("port {} is taken by another program", at.port()))
            .hint("`signoff serve --port 0` takes a free one");
    }
    Failure::failed(format!("cannot serve on {at}: {error}"))
        .hint("`signoff serve --port 0` takes a port that everybody may use, on this machine alone")
}

/// All that ends it. One that is told to end has done its work.
fn ends() -> Result<[Signal; 3], Failure> {
    let broken = |error: std::io::Error| Failure::failed(format!("cannot start: {error}"));
    let [interrupt, terminate, hangup] =
        [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()].map(signal);
    Ok([interrupt.map_err(broken)?, terminate.map_err(broken)?, hangup.map_err(broken)?])
}

async fn ended([mut interrupt, mut terminate, mut hangup]: [Signal; 3]) {
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
        _ = hangup.recv() => {}
    }
}
