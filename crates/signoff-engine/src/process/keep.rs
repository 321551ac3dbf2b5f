//! The keeper: what runs when the program is started as `__keep DIR`.

mod live;
mod supervisor;
mod transcript;

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use rustix::io::Errno;
use signoff_core::hold::Hold;
use signoff_core::redact::Secrets;

use super::attempt_dir::{Kept, Order};
use super::table::{self, Identity};
use super::{AttemptDir, COOKIE, Ended, Exit, Launch, door};
use live::Live;
use supervisor::{Outcome, Supervisor, Watched};
use transcript::Transcript;

use crate::agent::credentials::at_home;
use crate::confine::{self, Held};
use crate::detect;

/// Told by the program, one byte each.
pub(super) const GO: u8 = b'g';
pub(super) const STOP: u8 = b't';
pub(super) const KILL: u8 = b'k';

/// The keeper finds here what else nobody is to read, a line each. The agent does not.
pub(super) const HIDDEN: &str = "SIGNOFF_KEEP_HIDDEN";

/// Keeps the attempt in `dir`: starts its agent when told to on stdin, and sees to its end.
pub fn keep(dir: &Path) -> ExitCode {
    match run(&AttemptDir::new(dir)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // A program that is gone need not know.
            writeln!(io::stderr(), "{error}").ok();
            ExitCode::FAILURE
        }
    }
}

fn run(dir: &AttemptDir) -> io::Result<()> {
    become_the_ancestor()?;
    if !told_to_go() {
        return Ok(());
    }
    // Held until this process is over; whoever gets it knows that nothing will be started here any more.
    let _lock = dir.lock()?;
    if dir.is_abandoned() {
        return Err(io::Error::other("the attempt was given up before it was started"));
    }
    let order = dir.order()?;
    // The agent gets our environment, but for what is withheld: what it could give away is in there, and in the person's
    // own files.
    let secrets = secrets(&order.person);
    if let Some(open) = order.without(&secrets) {
        dir.write_order(&open)?;
    }
    let kept = announce(dir, &order)?;
    let (ended, live) = run_agent(dir, &order, (&kept, &secrets));
    dir.tidy_usage(&secrets);
    dir.write_ended(&ended)?;
    fs::remove_file(&kept.link).ok();
    if let Some(live) = live {
        live.finish();
    }
    Ok(())
}

fn secrets(person: &Path) -> Secrets {
    let variables = door::variables();
    let set = Secrets::of_variables(variables.iter().map(|(name, value)| (name.as_str(), value.as_str())));
    let hidden = variables.iter().find(|(name, _)| name == HIDDEN).map_or("", |(_, value)| value);
    set.and(&Secrets::of_keys(hidden.lines())).and(&at_home(person))
}

/// Leaves the program's session, so that no key pressed there reaches us or the agent, and becomes the parent
/// of everything the agent starts and leaves behind.
fn become_the_ancestor() -> io::Result<()> {
    rustix::process::setsid()?;
    #[cfg(target_os = "linux")]
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    Ok(())
}

/// Whether the program said so. It may have died before. Reads that one byte and no further.
fn told_to_go() -> bool {
    let mut byte = [0];
    loop {
        match rustix::io::read(io::stdin(), &mut byte) {
            Ok(1) => return byte == [GO],
            Err(Errno::INTR) => {}
            Ok(_) | Err(_) => return false,
        }
    }
}

/// Leaves word of this keeper, before there is anything to keep.
fn announce(dir: &AttemptDir, order: &Order) -> io::Result<Kept> {
    let pid = rustix::process::getpid().as_raw_nonzero().get();
    let keeper = Identity::of(pid);
    let boot = table::boot();
    let name = format!("{pid}-{}-{boot}", keeper.map_or(0, |keeper| keeper.start));
    let link = link(&order.live, &name, dir.path())?;
    let kept = Kept { boot, keeper, agent: None, cookie: dir.path().to_owned(), link };
    dir.write_kept(&kept)?;
    Ok(kept)
}

fn link(live: &Path, name: &str, to: &Path) -> io::Result<PathBuf> {
    fs::create_dir_all(live)?;
    let link = live.join(name);
    // Only where processes have no start time can an older keeper have had this name.
    fs::remove_file(&link).ok();
    symlink(to, &link)?;
    Ok(link)
}

/// Runs the agent to its end, and gives what is left of its output to be told.
fn run_agent(dir: &AttemptDir, order: &Order, (kept, secrets): (&Kept, &Secrets)) -> (Ended, Option<Live>) {
    let (started_at, started) = (door::time_of_day(), door::now());
    let (outcome, live) = match start(dir, order, secrets) {
        Ok(mut supervisor) => {
            let kept = Kept { agent: supervisor.agent(), ..kept.clone() };
            if let Err(error) = dir.write_kept(&kept) {
                supervisor.end_unkept(&error);
            }
            supervisor.run()
        }
        Err(exit) => (Outcome::not_started(exit), None),
    };
    let ended = Ended {
        exit: if wrapped(&order.launch).is_some() { seen_through(dir, outcome.exit) } else { outcome.exit },
        started_at,
        ended_at: door::time_of_day(),
        duration_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
        stdout_bytes: outcome.stdout_bytes,
        stderr_bytes: outcome.stderr_bytes,
        strays_ended: outcome.strays_ended,
        keeper_cpu_us: u64::try_from(door::processor_time().as_micros()).unwrap_or(u64::MAX),
    };
    (ended, live)
}

/// Starts the agent; how the attempt ended if that fails.
fn start(dir: &AttemptDir, order: &Order, secrets: &Secrets) -> Result<Supervisor, Exit> {
    let launch = &order.launch;
    let prompt = File::open(dir.prompt()).map_err(|error| unready("read", &dir.prompt(), &error))?;
    let transcript =
        |path: &Path| Transcript::create(path, secrets).map_err(|error| unready("write", path, &error));
    let (stdout, stderr) = (transcript(&dir.stdout())?, transcript(&dir.stderr())?);
    let mut agent = command(launch)?;
    agent
        .current_dir(&launch.directory)
        .env(COOKIE, dir.path())
        .stdin(prompt)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    for name in order.withheld.iter().map(String::as_str).chain([HIDDEN]) {
        agent.env_remove(name);
    }
    let started = match &launch.held {
        Some(Held { by: Hold::Landlock, writable, ports }) => {
            confine::within(writable.clone(), ports.clone(), move || agent.spawn())
        }
        Some(Held { by: Hold::Bubblewrap | Hold::Nobody, .. }) | None => agent.spawn(),
    };
    let agent = started.map_err(|error| why_not(launch, &error))?;
    let agent = if wrapped(launch).is_some() { Watched::Wrapped(agent) } else { Watched::Plain(agent) };
    Ok(Supervisor::new(agent, stdout, stderr, launch.limits))
}

/// The agent's command line, behind that of whoever holds it.
fn command(launch: &Launch) -> Result<Command, Exit> {
    let Some(writable) = wrapped(launch) else {
        let mut agent = door::command(&launch.program);
        agent.args(&launch.arguments);
        return Ok(agent);
    };
    // Bubblewrap itself can be started; of what is behind it, it says no more than an exit code.
    if !launch.program.contains('/') && !detect::is_installed(&launch.program) {
        return Err(why_not(launch, &io::Error::from(io::ErrorKind::NotFound)));
    }
    let mut agent = door::command(confine::BUBBLEWRAP);
    let before = confine::command_line(writable, &launch.directory);
    agent.args(before).arg(&launch.program).args(&launch.arguments);
    Ok(agent)
}

/// How the agent itself ended: what held it says in its own name why it could not start it.
fn seen_through(dir: &AttemptDir, exit: Exit) -> Exit {
    let Exit::Code(code) = exit else { return exit };
    // Shells tell the end by a signal in the same way.
    if (129..=192).contains(&code) {
        return Exit::Signal(code - 128);
    }
    if code != 1 {
        return exit;
    }
    let mut said = Vec::new();
    // Nobody's last word is longer.
    File::open(dir.stderr()).and_then(|file| file.take(4096).read_to_end(&mut said)).ok();
    let said = String::from_utf8_lossy(&said);
    match said.strip_prefix(confine::BUBBLEWRAP).and_then(|rest| rest.strip_prefix(": ")) {
        Some(why) if why.lines().count() == 1 => {
            let message = format!("bubblewrap cannot hold it: {}", why.trim_end());
            Exit::NotStarted { message, missing: false }
        }
        Some(_) | None => Exit::Code(1),
    }
}

/// Where it may write, if another program holds it to that.
fn wrapped(launch: &Launch) -> Option<&[PathBuf]> {
    match launch.held.as_ref()? {
        Held { by: Hold::Bubblewrap, writable, .. } => Some(writable),
        Held { by: Hold::Landlock | Hold::Nobody, .. } => None,
    }
}

fn unready(what: &str, path: &Path, error: &io::Error) -> Exit {
    Exit::NotStarted { message: format!("cannot {what} {}: {error}", path.display()), missing: false }
}

/// Why a start failed: the system says "no such file" of a missing directory and of a missing program.
fn why_not(launch: &Launch, error: &io::Error) -> Exit {
    if !launch.directory.is_dir() {
        let message = format!("the directory {} is not there", launch.directory.display());
        return Exit::NotStarted { message, missing: false };
    }
    let missing = error.kind() == io::ErrorKind::NotFound;
    Exit::NotStarted { message: format!("cannot start {}: {error}", launch.program), missing }
}
