//! `signoff serve`: serves the tasks as web pages.

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use signoff_serve::web::{ConnectionLimits, WebServer};
use signoff_term::json::{ServeReport, VERSION};

use crate::console::write_stderr;
use crate::web_backend::WebBackend;
use crate::{CliError, CommandExit, Console, Result, host, project, run_loop};

/// The default port.
const PORT: u16 = 7447;

/// Show and manage the tasks in a browser
///
/// Prints the address of a page that updates itself: what needs you, what is running, findings, changes and cost. There
/// you can answer questions and add, retry and cancel tasks. It does not run tasks: `signoff work` does. Anyone with
/// the address can decide everything, so each start uses a new one, and only this machine can reach it. Ctrl-C stops
/// it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  signoff serve --open\n  signoff serve --port 0 --json")]
pub struct Args {
    /// The port; 0 selects a free one
    #[arg(long, value_name = "N", default_value_t = PORT)]
    port: u16,
    /// The address to listen on
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1", value_parser = address)]
    host: IpAddr,
    /// Allow access from other machines, without encryption
    #[arg(long)]
    allow_remote: bool,
    /// Open the page in the browser
    #[arg(long)]
    open: bool,
}

fn address(text: &str) -> Result<IpAddr, String> {
    match text {
        "localhost" => Ok(Ipv4Addr::LOCALHOST.into()),
        text => text.parse().map_err(|_| format!("`{text}` is not an IP address such as 127.0.0.1")),
    }
}

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<CommandExit> {
    check_remote(args)?;
    let root = project::root()?;
    let runtime = run_loop::runtime()?;
    let served = runtime.block_on(serve(args, root, console));
    // A blocked thread must not delay the exit.
    runtime.shutdown_background();
    served.map(|()| CommandExit::Done)
}

/// Fails if other machines could reach the page and `--allow-remote` is not given.
fn check_remote(args: &Args) -> Result<()> {
    if args.host.is_loopback() || args.allow_remote {
        return Ok(());
    }
    Err(CliError::usage(format!("other machines could reach {}", args.host)).hint(
        "leave --host out; or add --allow-remote if you want that: anyone who sees the address on the network can \
         decide everything. `ssh -L` brings the page to another machine safely",
    ))
}

async fn serve(args: &Args, root: std::path::PathBuf, console: &Console) -> Result<()> {
    // Install the handlers first: a reader of the address may send a signal at once.
    // A signal ends the server successfully.
    let signals = run_loop::termination_signals().map_err(run_loop::cannot_start)?;
    let addr = SocketAddr::new(args.host, args.port);
    let default = ConnectionLimits::default();
    let heartbeat = host::test_number("SIGNOFF_TEST_HEARTBEAT_MS").map(Duration::from_millis);
    let limits = ConnectionLimits { heartbeat: heartbeat.unwrap_or(default.heartbeat), ..default };
    let web = WebServer::start(Arc::new(WebBackend::new(root)), addr, limits).await;
    let web = web.map_err(|error| bind_error(&error, addr))?;
    if !args.host.is_loopback() {
        write_stderr(
            "warning: other machines can reach this page, and the connection is not encrypted: anyone who sees the \
             address on the network can decide everything\n",
        );
    }
    let (url, port) = (web.url(), web.port());
    match console.json {
        true => console.json_line(&ServeReport { version: VERSION, url, port })?,
        false => console.text(&format!("{url}\n"))?,
    }
    console.note("Open it in a browser. Anyone with this address can decide everything. Ctrl-C stops it");
    if args.open
        // A one-time address, because other users of this machine can see the arguments of the browser.
        && let Err(error) = host::open_in_browser(&web.one_time_url())
    {
        console.note(&format!("cannot open a browser ({error}): open the page yourself"));
    }
    run_loop::any_signal(signals).await;
    web.shutdown().await;
    Ok(())
}

fn bind_error(error: &std::io::Error, addr: SocketAddr) -> CliError {
    if error.kind() == ErrorKind::AddrInUse {
        return CliError::failed(format!("port {} is in use by another program", addr.port()))
            .hint("`signoff serve --port 0` selects a free one");
    }
    CliError::failed(format!("cannot serve on {addr}: {error}"))
        .hint("`signoff serve --port 0` selects a free port on 127.0.0.1")
}
