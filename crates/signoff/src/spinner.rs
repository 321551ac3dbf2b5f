//! One spinner per loop at work, drawn by `indicatif` below the lines.

use std::collections::BTreeMap;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use signoff_core::ids::{LoopId, RunId};
use signoff_core::view::{Badge, LoopView};

use crate::console::plain_text;

/// The spinners on the screen.
pub struct Spinners {
    screen: MultiProgress,
    bars: BTreeMap<(RunId, LoopId), (ProgressBar, LoopView)>,
    draw: fn(&LoopView, usize) -> String,
}

/// Room for the spinner itself and a margin.
const WIDTH: usize = 96;

impl Spinners {
    pub fn new() -> Self {
        Self { screen: MultiProgress::new(), bars: BTreeMap::new(), draw: |_, _| String::new() }
    }

    /// Draws the rows that are at work, takes the others away.
    pub fn show(&mut self, run: RunId, rows: &[LoopView], draw: fn(&LoopView, usize) -> String) {
        self.draw = draw;
        for row in rows {
            let key = (run, row.id.clone());
            if !is_at_work(row.badge) {
                if let Some((bar, _)) = self.bars.remove(&key) {
                    bar.finish_and_clear();
                }
                continue;
            }
            let screen = &self.screen;
            let (bar, known) = self.bars.entry(key).or_insert_with(|| (spinner(screen), row.clone()));
            bar.set_message(plain_text(&draw(row, WIDTH)).into_owned());
            *known = row.clone();
        }
    }

    /// Shows the last line of an agent beside its loop.
    pub fn said(&mut self, run: RunId, loop_id: &LoopId, line: &str) {
        if let Some((bar, row)) = self.bars.get_mut(&(run, loop_id.clone())) {
            row.last_line = line.to_owned();
            bar.set_message(plain_text(&(self.draw)(row, WIDTH)).into_owned());
        }
    }

    /// Writes lines above the spinners.
    pub fn above(&self, write: impl FnOnce()) {
        self.screen.suspend(write);
    }

    pub fn clear(self) {
        self.screen.clear().ok();
    }
}

fn spinner(screen: &MultiProgress) -> ProgressBar {
    let bar = screen.add(ProgressBar::new_spinner());
    if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} {elapsed}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(120));
    bar
}

fn is_at_work(badge: Badge) -> bool {
    match badge {
        Badge::Spawn | Badge::Work | Badge::Review | Badge::Fix | Badge::Check | Badge::Land => true,
        Badge::Wait | Badge::Ask | Badge::Paused | Badge::Done | Badge::Stuck => false,
    }
}
