//! Stands in for the program: as a keeper, and as a program that is killed while its agent works.
//!
//! `__keep DIR` keeps, `__escort …` escorts. `drive LIVE DIR LAUNCH` starts the attempt that the JSON `LAUNCH` describes and waits.

use std::path::PathBuf;
use std::process::ExitCode;

use signoff_engine::process::{AttemptDir, ESCORT, KEEP, Keeper, Launch, escort, keep};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match *arguments {
        [ESCORT, ref words @ ..] => escort(&words.iter().map(Into::into).collect::<Vec<_>>()),
        [KEEP, dir] => keep(dir.as_ref()),
        ["drive", live, dir, launch] => drive(live, dir, launch),
        _ => ExitCode::FAILURE,
    }
}

fn drive(live: &str, dir: &str, launch: &str) -> ExitCode {
    let program = std::env::current_exe().expect("a program knows itself");
    let keeper = Keeper { program, live: PathBuf::from(live), person: PathBuf::new(), hidden: Vec::new() };
    let launch: Launch = serde_json::from_str(launch).expect("a launch as JSON");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let running = keeper.start(&launch, &AttemptDir::new(dir)).await.expect("a started keeper");
        running.wait().await;
    });
    ExitCode::SUCCESS
}
