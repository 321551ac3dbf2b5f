//! The screen on this terminal: one thread draws it and hears the keys; everybody else only tells it.
//!
//! At most thirty frames a second are drawn, and only when something changed. So nobody who works waits for a terminal,
//! and sixty loops cost hardly more than one.

mod answers;
mod clerk;
mod drawing;
mod driving;
mod keys;
mod press;
mod queue;
mod signals;
mod standing;
mod terminal;

pub use answers::Answers;
pub use clerk::Clerk;
pub use driving::Driving;
pub use queue::{Queue, is_queued};
pub use signals::Ends;
pub use standing::Standing;
pub use terminal::Patience;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use jiff::Timestamp;
use signoff_core::ids::{AttemptId, LoopId, RunId};
use signoff_core::view::TaskRow;
use signoff_core::wire::Recorded;
use signoff_engine::notify::Terminal;
use signoff_term::tui::{Ink, Material, Mode, Standings, Tui, Wish};

use self::drawing::Drawing;
use self::signals::Told;
use crate::console::Console;
use crate::door;

/// How many facts are handed over at once: between two such pieces a frame may be drawn.
const PIECE: usize = 1000;

/// How much of a line that an agent said is handed over: no screen shows more.
const LINE: usize = 2000;

/// How often it is looked whether the terminal still takes something.
const MOMENT: Duration = Duration::from_millis(100);

/// What the drawing thread is told.
enum News {
    Facts(Vec<Recorded>),
    Said {
        run: RunId,
        loop_id: LoopId,
        attempt: AttemptId,
        line: String,
        /// Held until the line was taken in: a terminal that takes nothing must not pile them up.
        unheard: Arc<()>,
    },
    Queue(Vec<TaskRow>),
    Standings(Standings),
    /// What was shown is not there any more.
    Anew,
    /// What time it is in what is shown.
    Time(Timestamp),
    Supply(Box<Material>),
    /// The same, of which no more comes before it was taken in.
    SupplySlowly(Box<Material>, Arc<()>),
    Note(String),
    Ending,
    Ring(Vec<u8>),
    /// There is a signal: those do not wait behind what agents say.
    Signal,
    /// Nothing more will come.
    Over,
}

/// Why the screen is not shown any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    /// The person left it.
    Quit,
    /// They want the program to end, or somebody else does.
    Interrupted,
    /// There is no terminal any more.
    Gone,
}

/// Whoever fulfils what the screen wishes for. The screen stands still meanwhile, so it must take no time.
pub trait Fulfil: Send {
    fn fulfil(&mut self, wish: Wish);

    /// Whether anybody sees the screen: nobody does in the background.
    fn seen(&mut self, seen: bool);

    /// It is not shown any more.
    fn left(&mut self, left: Left);
}

/// Tells the screen what is new. Nobody there to draw is no reason to fail.
#[derive(Clone)]
pub struct Teller(Sender<News>);

impl Teller {
    /// New facts, in order.
    pub fn facts(&self, facts: Vec<Recorded>) {
        let mut rest = facts;
        while rest.len() > PIECE {
            let next = rest.split_off(PIECE);
            self.send(News::Facts(std::mem::replace(&mut rest, next)));
        }
        self.send(News::Facts(rest));
    }

    /// A line of an agent. `unheard` is held until it is on the screen.
    pub fn said(&self, (run, loop_id): (RunId, &LoopId), attempt: AttemptId, line: &str, unheard: &Arc<()>) {
        let line = line.chars().take(LINE).collect();
        let (loop_id, unheard) = (loop_id.clone(), unheard.clone());
        self.send(News::Said { run, loop_id, attempt, line, unheard });
    }

    /// The tasks that no run has taken up.
    pub fn queue(&self, tasks: Vec<TaskRow>) {
        self.send(News::Queue(tasks));
    }

    /// What `signoff` alone would say about all tasks.
    pub fn standings(&self, standings: Standings) {
        self.send(News::Standings(standings));
    }

    /// Another store has taken the place of the one that was shown.
    pub fn anew(&self) {
        self.send(News::Anew);
    }

    /// What time it is in what is shown, where that is not now.
    pub fn time(&self, time: Timestamp) {
        self.send(News::Time(time));
    }

    /// What was wished for.
    pub fn supply(&self, material: Material) {
        self.send(News::Supply(Box::new(material)));
    }

    /// A piece of what was wished for. `unheard` is held until it was taken in.
    pub fn supply_slowly(&self, material: Material, unheard: &Arc<()>) {
        self.send(News::SupplySlowly(Box::new(material), unheard.clone()));
    }

    /// Something a person should know.
    pub fn note(&self, note: &str) {
        self.send(News::Note(note.to_owned()));
    }

    /// Nobody is asked any more.
    pub fn ending(&self) {
        self.send(News::Ending);
    }

    /// Sends the terminal what draws nothing: a bell, a notification. Where nobody draws any more, nothing is in the way.
    fn ring(&self, bytes: Vec<u8>) {
        if let Err(mpsc::SendError(News::Ring(bytes))) = self.0.send(News::Ring(bytes)) {
            terminal::ring(&bytes);
        }
    }

    fn send(&self, news: News) {
        self.0.send(news).ok();
    }
}

/// The screen. It is taken away when this is dropped, and what was said meanwhile is said.
pub struct Screen {
    teller: Teller,
    drawing: Option<JoinHandle<()>>,
    /// Closed when it draws no more.
    drawn: Receiver<()>,
    /// Somebody wants it to end.
    ends: Arc<AtomicBool>,
}

impl Screen {
    /// Of the repository whose top this is. None if the terminal is not to be had: it belongs to somebody else, or nothing can be drawn on it.
    pub fn open(
        console: &Console,
        (mode, ends): (Mode, Ends),
        root: &Path,
        fulfil: impl FnOnce(Teller) -> Box<dyn Fulfil>,
    ) -> Option<Self> {
        if !console.is_live() || !terminal::is_ours() {
            return None;
        }
        let ((tell, news), (signals, signalled)) = (mpsc::channel(), mpsc::channel());
        let (teller, wake) = (Teller(tell.clone()), tell);
        let ink = if door::variable("NO_COLOR").is_some() { Ink::Plain } else { Ink::Color };
        let mut tui = Tui::new(mode, ink);
        tui.name(&root.file_name().unwrap_or_default().to_string_lossy());
        let mut drawing = Drawing::new(tui, fulfil(teller.clone()), *console, (ends, signalled));
        drawing.begin().ok()?;
        let wanted = Arc::new(AtomicBool::new(false));
        let told = wanted.clone();
        let heard = move |one| {
            told.fetch_or(one == Told::End, Ordering::AcqRel);
            signals.send(one).is_ok() && wake.send(News::Signal).is_ok()
        };
        signals::listen(ends, heard).ok()?;
        let (draws, drawn) = mpsc::channel();
        let drawing = std::thread::spawn(move || {
            let _draws = draws;
            drawing.draw_until_told_off(&news);
        });
        Some(Self { teller, drawing: Some(drawing), drawn, ends: wanted })
    }

    pub fn teller(&self) -> &Teller {
        &self.teller
    }

    /// Whether it was told to end and cannot hear it: the terminal takes nothing. To be asked again and again.
    pub fn is_deaf(&self, patience: &mut Patience) -> bool {
        patience.is_over() && self.ends.load(Ordering::Acquire)
    }

    /// Where notifications go meanwhile: who draws also rings, so that neither gets in the way of the other.
    pub fn terminal(&self) -> Terminal {
        let teller = self.teller.clone();
        Arc::new(move |bytes: &[u8]| teller.ring(bytes.to_vec()))
    }
}

/// Also when something panicked: the terminal must be given back.
impl Drop for Screen {
    fn drop(&mut self) {
        self.teller.send(News::Over);
        let Some(drawing) = self.drawing.take() else { return };
        let mut patience = Patience::default();
        while self.drawn.recv_timeout(MOMENT) == Err(RecvTimeoutError::Timeout) {
            if patience.is_over() {
                return terminal::abandon();
            }
        }
        drawing.join().ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A terminal that was stopped takes nothing: whoever reads the agents' lines sees it and sends no more.
    #[test]
    fn a_line_is_unheard_until_it_is_taken_in() {
        let (tell, news) = mpsc::channel();
        let teller = Teller(tell);
        let heard = Arc::new(());
        for line in ["Reading", "Writing"] {
            teller.said((RunId(1), &LoopId::new("1")), AttemptId(1), line, &heard);
        }
        assert_eq!(Arc::strong_count(&heard), 3);
        news.try_iter().for_each(drop);
        assert_eq!(Arc::strong_count(&heard), 1);
    }
}
