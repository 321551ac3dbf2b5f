//! Test binary: runs the supervisor, the reaper, or one attempt that a test can kill.
//!
//! `__keep DIR` runs the supervisor, `__escort …` the process inside the sandbox. `run LIVE DIR LAUNCH` starts the
//! attempt that the JSON `LAUNCH` describes and waits for its end.

use std::path::PathBuf;
use std::process::ExitCode;

use signoff_engine::process::{
    AttemptDir, ProcessLaunch, REAPER_SUBCOMMAND, SUPERVISOR_SUBCOMMAND, SupervisorLauncher, run_reaper, run_supervisor,
};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match *arguments {
        [REAPER_SUBCOMMAND, ref words @ ..] => run_reaper(&words.iter().map(Into::into).collect::<Vec<_>>()),
        [SUPERVISOR_SUBCOMMAND, dir] => run_supervisor(dir.as_ref()),
        ["run", live, dir, launch] => run_attempt(live, dir, launch),
        _ => ExitCode::FAILURE,
    }
}

fn run_attempt(live: &str, dir: &str, launch: &str) -> ExitCode {
    let program = std::env::current_exe().expect("current_exe");
    let launcher =
        SupervisorLauncher { program, live_dir: PathBuf::from(live), user_home: PathBuf::new(), secrets: Vec::new() };
    let launch: ProcessLaunch = serde_json::from_str(launch).expect("a launch as JSON");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let running = launcher.start(&launch, &AttemptDir::new(dir)).await.expect("a running supervisor");
        running.wait().await;
    });
    ExitCode::SUCCESS
}
