//! Landing what belongs to no loop at work: a person's wish about a commit that was approved before.

use std::sync::Arc;

use signoff_core::ids::{Commit, RunId};

use super::bring::{self, Brought, Wish};
use super::turn::Turn;
use crate::attempt::{self, Workshop};
use crate::error::EngineError;

/// A commit that goes to the default branch.
#[derive(Debug, Clone)]
pub struct Direct {
    pub run: RunId,
    /// What it is called where its files are kept.
    pub name: String,
    pub commit: Commit,
    pub message: String,
}

/// Brings it in, or tells why not; nothing is changed then.
pub async fn land(shop: &Arc<Workshop>, direct: Direct) -> Result<Brought, EngineError> {
    let Some(_turn) = Turn::wait(shop, None).await? else { return Ok(Brought::Stopped) };
    let beginning = (shop.clone(), direct);
    let wish = attempt::blocking(move || wish(&beginning.0, beginning.1)).await?;
    bring::bring(shop, &wish, None).await
}

fn wish(shop: &Workshop, direct: Direct) -> Result<Wish, EngineError> {
    let Direct { run, name, commit, message } = direct;
    shop.repository.finish_forward()?;
    let directory = shop.layout.landing(run, &name);
    // What an earlier try left is of no use to anybody.
    std::fs::remove_dir_all(&directory).ok();
    Ok(Wish {
        target: shop.repository.default_branch()?,
        commit,
        begins: None,
        message,
        environment: attempt::bare_environment(run),
        directory,
    })
}
