//! The list of what is at work, drawn below the lines by `indicatif`, and below it what a person is asked.
//!
//! One thread draws, at most ten times a second, whatever happened in between; everybody else only tells it. So the
//! dispatcher never waits for a terminal, and sixty loops cost hardly more than one.

mod answers;
mod asking;
mod keys;

pub use answers::Answers;

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use ::console::Term;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use signoff_core::ids::{LoopId, RunId};
use signoff_core::view::{LoopView, Overview};
use signoff_term::dialogue::Question;
use signoff_term::progress::{List, Room};

use crate::console::{Console, plain_text};
use crate::door;
use asking::Asking;
use keys::Heard;

/// How long what is new may wait to be drawn.
const FRAME: Duration = Duration::from_millis(100);

/// How often it is drawn when nothing is new: the clocks go on.
const CLOCK: Duration = Duration::from_secs(1);

/// The lines of the terminal that are left to what scrolls by.
const SCROLLING: usize = 4;

/// The same while somebody is asked, and must see what: with a line for what is at work.
const BESIDE_A_QUESTION: usize = 3;

/// What the drawing thread is told.
enum News {
    Run(RunId, Box<Overview>),
    Row(RunId, Box<LoopView>),
    Said {
        run: RunId,
        loop_id: LoopId,
        line: String,
        /// Held until the line is on the list: a terminal that takes nothing must not pile them up.
        unheard: Arc<()>,
    },
    /// A line to print above the list, for good: progress, or else a note.
    Line(String),
    Note(String),
    /// What a loop asks, if it does.
    Asks(RunId, LoopId, Option<Box<Question>>),
    /// Nobody is asked any more.
    AskNoMore,
    Heard(Heard),
    /// Nothing more will come.
    Over,
}

/// The list on the screen. It is taken away when this is dropped, once everything that was told is on the screen.
pub struct Live {
    tell: Sender<News>,
    drawing: Option<JoinHandle<()>>,
}

impl Live {
    /// `answers` is where answers go, if anybody can be asked.
    pub fn new(console: Console, answers: Option<Answers>) -> Self {
        let (tell, news) = mpsc::channel();
        let keys = tell.clone();
        let heard = Arc::new(move |heard| keys.send(News::Heard(heard)).unwrap_or_default());
        let screen = move || Screen::new(console, answers.map(|answers| Asking::new(answers, heard)));
        let drawing = std::thread::spawn(move || screen().draw_until_told_off(&news));
        Self { tell, drawing: Some(drawing) }
    }

    /// How far a run is.
    pub fn run(&self, run: RunId, overview: Overview) {
        self.send(News::Run(run, Box::new(overview)));
    }

    /// How a loop stands.
    pub fn row(&self, run: RunId, row: LoopView) {
        self.send(News::Row(run, Box::new(row)));
    }

    /// Shows the last line of an agent beside its loop.
    pub fn said(&self, (run, loop_id): (RunId, &LoopId), line: &str, unheard: &Arc<()>) {
        let (loop_id, line, unheard) = (loop_id.clone(), line.to_owned(), unheard.clone());
        self.send(News::Said { run, loop_id, line, unheard });
    }

    /// Writes a line of progress above the list.
    pub fn line(&self, line: &str) {
        self.send(News::Line(line.to_owned()));
    }

    /// Says something above the list that is no progress.
    pub fn note(&self, note: &str) {
        self.send(News::Note(note.to_owned()));
    }

    /// What a loop asks, if it does.
    pub fn asks(&self, (run, loop_id): (RunId, &LoopId), question: Option<Question>) {
        self.send(News::Asks(run, loop_id.clone(), question.map(Box::new)));
    }

    /// Takes the question away that is shown, and shows no other.
    pub fn ask_no_more(&self) {
        self.send(News::AskNoMore);
    }

    /// Nobody there to draw is no reason to fail.
    fn send(&self, news: News) {
        self.tell.send(news).ok();
    }
}

/// Also when something panicked: the terminal must be given back.
impl Drop for Live {
    fn drop(&mut self) {
        self.send(News::Over);
        self.drawing.take().map(JoinHandle::join);
    }
}

/// What the drawing thread owns.
struct Screen {
    console: Console,
    term: Term,
    list: List,
    /// None if nobody can be asked.
    asking: Option<Asking>,
    /// What is to be written above the list.
    above: Vec<News>,
    /// None while there is nothing to draw.
    bar: Option<ProgressBar>,
    drawn: Vec<String>,
}

/// How long what was told last may wait to be drawn.
enum Next {
    /// More may come with it.
    Soon,
    /// A person waits for it.
    Now,
    /// It is the last.
    Over,
}

impl Screen {
    fn new(console: Console, asking: Option<Asking>) -> Self {
        let (list, term) = (List::default(), Term::stderr());
        Self { console, term, list, asking, above: Vec::new(), bar: None, drawn: Vec::new() }
    }

    /// Draws what is new, after a moment in which more may come, and now and then in any case.
    fn draw_until_told_off(mut self, news: &Receiver<News>) {
        let mut told_off = false;
        while !told_off {
            match news.recv_timeout(CLOCK) {
                Ok(first) => told_off = self.take_for_a_frame(first, news),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => told_off = true,
            }
            self.draw();
        }
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
    }

    /// Takes what comes within a frame. Whether nothing more will come.
    fn take_for_a_frame(&mut self, first: News, news: &Receiver<News>) -> bool {
        let begin = door::now();
        let mut one = first;
        loop {
            match self.take(one) {
                Next::Soon => {}
                Next::Now => return false,
                Next::Over => return true,
            }
            let passed = door::now().duration_since(begin).unsigned_abs();
            let Some(left) = FRAME.checked_sub(passed) else { return false };
            one = match news.recv_timeout(left) {
                Ok(next) => next,
                Err(RecvTimeoutError::Timeout) => return false,
                Err(RecvTimeoutError::Disconnected) => return true,
            };
        }
    }

    fn take(&mut self, news: News) -> Next {
        match (news, &mut self.asking) {
            (News::Run(run, overview), _) => self.list.run(run, *overview),
            (News::Row(run, row), _) => self.list.row(run, *row),
            (News::Said { run, loop_id, line, unheard: _heard }, _) => self.list.said(run, &loop_id, &line),
            (news @ (News::Line(_) | News::Note(_)), _) => self.above.push(news),
            (News::Asks(run, loop_id, question), Some(asking)) => {
                asking.take((run, &loop_id), question.map(|question| *question));
            }
            (News::AskNoMore, Some(asking)) => asking.close(),
            (News::Heard(heard), Some(asking)) => {
                self.above.extend(asking.hear(heard).map(News::Note));
                return Next::Now;
            }
            (News::Asks(..) | News::AskNoMore | News::Heard(_), None) => {}
            (News::Over, _) => return Next::Over,
        }
        Next::Soon
    }

    fn draw(&mut self) {
        let lines = self.lines();
        let above = std::mem::take(&mut self.above);
        let write = || above.iter().for_each(|news| self.write(news));
        match &self.bar {
            Some(bar) if !above.is_empty() => bar.suspend(write),
            Some(_) | None => write(),
        }
        if lines != self.drawn {
            self.redraw(lines);
        }
    }

    /// The list, and below it the question: there is less room for the list then.
    fn lines(&mut self) -> Vec<String> {
        let (height, width) = self.term.size();
        let columns = usize::from(width).saturating_sub(1);
        let room = |taken: usize| Room { columns, lines: usize::from(height).saturating_sub(taken).max(1) };
        let question = self.asking.as_mut().map(|asking| {
            asking.attend();
            asking.lines(room(BESIDE_A_QUESTION))
        });
        let question = question.unwrap_or_default();
        let mut lines = self.list.lines(door::now(), room(SCROLLING + question.len()));
        lines.extend(question);
        lines
    }

    fn write(&self, news: &News) {
        match news {
            News::Line(line) => self.console.progress(&format!("{line}\n")),
            News::Note(note) => self.console.note(note),
            News::Run(..)
            | News::Row(..)
            | News::Said { .. }
            | News::Asks(..)
            | News::AskNoMore
            | News::Heard(_)
            | News::Over => {}
        }
    }

    fn redraw(&mut self, lines: Vec<String>) {
        if lines.is_empty() {
            if let Some(bar) = self.bar.take() {
                bar.finish_and_clear();
            }
        } else {
            let text = plain_text(&lines.join("\n")).into_owned();
            self.bar.get_or_insert_with(bar).set_message(text);
        }
        self.drawn = lines;
    }
}

/// A text on the screen that is drawn over.
fn bar() -> ProgressBar {
    // The frames are ours: what is drawn here is meant to be seen.
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(u8::MAX));
    if let Ok(style) = ProgressStyle::with_template("{msg}") {
        bar.set_style(style);
    }
    bar
}

#[cfg(test)]
mod tests {
    use signoff_term::fit::columns;

    use super::*;

    /// A terminal that was stopped takes nothing: whoever reads the agents' lines sees it and sends no more.
    #[test]
    fn a_line_is_unheard_until_it_is_taken_in() {
        let (tell, news) = mpsc::channel();
        let live = Live { tell, drawing: None };
        let heard = Arc::new(());
        for line in ["Reading", "Writing"] {
            live.said((RunId(1), &LoopId::new("1")), line, &heard);
        }
        assert_eq!(Arc::strong_count(&heard), 3);
        news.try_iter().for_each(drop);
        assert_eq!(Arc::strong_count(&heard), 1);
    }

    /// Otherwise it takes a row for two, or two for one, and draws over the wrong one.
    #[test]
    fn what_draws_the_list_counts_columns_as_we_do() {
        for title in ["Add a login", "漢字の題名", "🚀 ship it", "e\u{301}te\u{301}"] {
            assert_eq!(::console::measure_text_width(title), columns(title), "{title}");
        }
    }
}
