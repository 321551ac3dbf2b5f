//! A scripted model server, for trying out agents by hand.
//!
//! `scripted_model --script FILE` prints its URL, then each request as a line of JSON, until it is killed. The script
//! is JSON, or TOML if the file name ends in `.toml`, in the format of `signoff_testkit::model::ModelScript`.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use signoff_testkit::model::{ModelScript, ScriptedModel};
use thiserror::Error;

/// Serve a model that follows a script.
#[derive(Debug, Parser)]
struct Args {
    /// The script, as JSON or TOML.
    #[arg(long)]
    script: PathBuf,
    /// The port; 0 picks a free one.
    #[arg(long, default_value_t = 0)]
    port: u16,
}

#[derive(Debug, Error)]
enum ScriptedModelError {
    #[error("{}: {error}", path.display())]
    Unreadable { path: PathBuf, error: io::Error },
    #[error("{}: {error}", path.display())]
    InvalidScript { path: PathBuf, error: Box<dyn std::error::Error> },
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

/// Serves until stdout closes.
fn serve(args: &Args) -> Result<(), ScriptedModelError> {
    let model = ScriptedModel::listen(read(&args.script)?, args.port)?;
    let mut out = io::stdout();
    writeln!(out, "{}", model.url())?;
    out.flush()?;
    for number in 1.. {
        let line = serde_json::to_string(&model.wait_for_request(number)).map_err(io::Error::from)?;
        writeln!(out, "{line}")?;
        out.flush()?;
    }
    Ok(())
}

fn read(path: &Path) -> Result<ModelScript, ScriptedModelError> {
    let text = fs::read_to_string(path).map_err(|error| ScriptedModelError::Unreadable { path: path.into(), error })?;
    let script = if path.extension().is_some_and(|end| end == "toml") {
        toml::from_str(&text).map_err(Box::from)
    } else {
        serde_json::from_str(&text).map_err(Box::from)
    };
    script.map_err(|error| ScriptedModelError::InvalidScript { path: path.into(), error })
}
