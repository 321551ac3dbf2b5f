//! A model that follows a script, for agents' programs to be pointed at by hand.
//!
//! `scripted_model --script FILE` prints its URL, then each request as a line of JSON, until it is ended. The script is
//! JSON, or TOML if its name says so, in the format of [`signoff_testkit::model::Script`].

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use signoff_testkit::model::{Script, ScriptedModel};
use thiserror::Error;

/// Follow a script instead of thinking.
#[derive(Debug, Parser)]
struct Args {
    /// JSON or TOML.
    #[arg(long)]
    script: PathBuf,
    /// 0 is any that is free.
    #[arg(long, default_value_t = 0)]
    port: u16,
}

#[derive(Debug, Error)]
enum Failure {
    #[error("{}: {error}", path.display())]
    Unreadable { path: PathBuf, error: io::Error },
    #[error("{}: {error}", path.display())]
    NoScript { path: PathBuf, error: Box<dyn std::error::Error> },
    #[error(transparent)]
    Io(#[from] io::Error),
}

fn main() -> ExitCode {
    match serve(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("scripted_model: {failure}");
            ExitCode::FAILURE
        }
    }
}

/// Ends when nobody listens any more.
fn serve(args: &Args) -> Result<(), Failure> {
    let model = ScriptedModel::listen(read(&args.script)?, args.port)?;
    let mut out = io::stdout();
    writeln!(out, "{}", model.url())?;
    out.flush()?;
    for number in 1.. {
        let line = serde_json::to_string(&model.nth(number)).map_err(io::Error::from)?;
        writeln!(out, "{line}")?;
        out.flush()?;
    }
    Ok(())
}

fn read(path: &Path) -> Result<Script, Failure> {
    let text = fs::read_to_string(path).map_err(|error| Failure::Unreadable { path: path.into(), error })?;
    let script = if path.extension().is_some_and(|end| end == "toml") {
        toml::from_str(&text).map_err(Box::from)
    } else {
        serde_json::from_str(&text).map_err(Box::from)
    };
    script.map_err(|error| Failure::NoScript { path: path.into(), error })
}
