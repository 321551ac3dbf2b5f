//! Tells people who are not looking, through the channels they configured.
//!
//! Each channel has a thread and a queue of its own: one that hangs holds up neither the work nor the other channels.
//! Whoever tells something never waits, and nothing that goes wrong here is more than a note.

mod command;
mod desktop;
mod outlet;
mod queue;
mod receipts;
mod slack;
mod webhook;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use signoff_core::config::{Channel, Settings, Way};
use signoff_core::ids::RunId;
use signoff_core::notify::{Message, Occasion, Occurrence};

pub use outlet::{Outlet, Undelivered};
pub use receipts::Receipts;

use crate::process::door;
use queue::Queue;

/// Writes to the terminal that the person sees, whoever draws on it: a bell, or a sequence that draws nothing.
pub type Terminal = Arc<dyn Fn(&[u8]) + Send + Sync>;

/// Where the person is who could hear or see something at once.
#[derive(Clone)]
pub enum Person {
    /// In front of this terminal.
    AtTerminal(Terminal),
    /// At no terminal of ours; perhaps at the desktop.
    Elsewhere,
    /// Wherever: nothing is to ring or to pop up.
    Undisturbed,
}

/// What channels find around them.
#[derive(Clone)]
pub struct Surroundings {
    /// Where commands are started: the root of the repository.
    pub directory: PathBuf,
    pub variables: BTreeMap<String, String>,
    pub person: Person,
    /// Our own program: started as an escort it sees to it that no command outlives us.
    pub program: PathBuf,
    pub manners: Manners,
}

impl fmt::Debug for Surroundings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Surroundings({}, {:?})", self.directory.display(), self.manners)
    }
}

impl Person {
    /// Whether a channel has somebody to tell.
    fn hears(&self, channel: &Channel) -> bool {
        match (&channel.way, self) {
            (Way::Bell, Self::Elsewhere) | (Way::Bell | Way::Desktop, Self::Undisturbed) => false,
            (Way::Bell, Self::AtTerminal(_))
            | (Way::Desktop, Self::AtTerminal(_) | Self::Elsewhere)
            | (Way::Webhook(_) | Way::Command(_), _) => true,
        }
    }
}

/// How long is waited for others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Manners {
    /// Until a server takes the call.
    pub connect: Duration,
    /// Until it has answered, or a program has ended.
    pub answer: Duration,
    /// Before the second try; twice as long before the third.
    pub backoff: Duration,
    /// The longest that a server may make us wait.
    pub longest: Duration,
    /// For all that is on its way when the program ends.
    pub end: Duration,
}

impl Default for Manners {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        let (connect, answer, longest, end) = (seconds(5), seconds(10), seconds(30), seconds(5));
        Self { connect, answer, backoff: Duration::from_millis(500), longest, end }
    }
}

/// The channels at work.
pub struct Notifier {
    lanes: Vec<Lane>,
    shared: Shared,
    end: Duration,
}

/// What all channels have in common.
#[derive(Clone)]
struct Shared {
    notes: Notes,
    receipts: Arc<Receipts>,
    /// The time is up: whoever is still at it is ended.
    recalled: Arc<AtomicBool>,
}

/// Something to tell, and which notification it is.
type Letter = (Arc<Message>, Arc<Occurrence>);

/// How long it may take to end what is recalled.
const RECALL: Duration = Duration::from_secs(1);

/// What people should know about channels, until somebody asks.
type Notes = Arc<Mutex<Vec<String>>>;

struct Lane {
    name: String,
    runs_a_program: bool,
    occasions: Vec<Occasion>,
    queue: Arc<Queue<Letter>>,
}

impl Notifier {
    /// Gets every channel ready that is told of something and has somebody to tell; none if there is none.
    pub fn start(settings: &Settings, around: &Surroundings, receipts: Receipts) -> Option<Self> {
        let receipts = Arc::new(receipts);
        let shared = Shared { notes: Notes::default(), receipts, recalled: Arc::default() };
        let channels = settings.channels().into_iter().filter(|channel| around.person.hears(channel));
        let lanes: Vec<_> = channels
            .map(|channel| {
                let told = |occasion: &Occasion| settings.told_of(*occasion).contains(&channel.name);
                let occasions = Occasion::ALL.into_iter().filter(told).collect();
                Lane::open(Outlet::new(channel, around.clone()), occasions, shared.clone())
            })
            .collect();
        let end = around.manners.end;
        (!lanes.is_empty()).then_some(Self { lanes, shared, end })
    }

    /// Tells all channels that want to know and did not take it before. Never waits.
    pub fn tell(&self, message: Message, of: Occurrence, at: Timestamp) {
        let receipts = &self.shared.receipts;
        self.pass(message, &of, |lane| {
            let is_new = !receipts.has(&of, &lane.name);
            // What cannot be noted down is told now or never.
            let noted = is_new.then(|| receipts.owe(&of, &lane.name, at));
            noted.is_some()
        });
    }

    /// The runs of which something is due that nobody took.
    pub fn owed(&self) -> BTreeSet<RunId> {
        self.shared.receipts.owed()
    }

    /// Tells the channels to which it was due before, and which did not take it. Never waits.
    pub fn tell_again(&self, message: Message, of: &Occurrence) {
        self.pass(message, of, |lane| self.shared.receipts.owes(of, &lane.name));
    }

    fn pass(&self, message: Message, of: &Occurrence, told: impl Fn(&Lane) -> bool) {
        let (message, of) = (Arc::new(message), Arc::new(of.clone()));
        let wants = |lane: &&Lane| lane.occasions.contains(&message.event) && told(lane);
        for lane in self.lanes.iter().filter(wants) {
            if lane.queue.push((message.clone(), of.clone())) {
                let note = format!("notify: {} is behind; what is older is dropped", lane.name);
                note_down(&self.shared.notes, note);
            }
        }
    }

    /// What people should know about channels, each but once.
    pub fn notes(&self) -> Vec<String> {
        std::mem::take(&mut *self.shared.notes.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits a little for what is on its way, ends what takes longer, and says what did not get through.
    pub fn finish(self) -> Vec<String> {
        let deadline = door::after(door::now(), self.end);
        for lane in &self.lanes {
            let left = lane.queue.close(deadline.saturating_duration_since(door::now()));
            if left > 0 {
                let what = if left == 1 { "one message".to_owned() } else { format!("{left} messages") };
                note_down(&self.shared.notes, format!("notify: {} did not take {what} in time", lane.name));
            }
        }
        // No program of a channel outlives this one.
        self.shared.recalled.store(true, Ordering::Relaxed);
        let deadline = door::after(door::now(), RECALL);
        for lane in self.lanes.iter().filter(|lane| lane.runs_a_program) {
            lane.queue.close(deadline.saturating_duration_since(door::now()));
        }
        self.notes()
    }
}

fn note_down(notes: &Notes, note: String) {
    notes.lock().unwrap_or_else(PoisonError::into_inner).push(note);
}

impl Lane {
    fn open(outlet: Outlet, occasions: Vec<Occasion>, shared: Shared) -> Self {
        let (name, queue) = (outlet.name().to_owned(), Arc::new(Queue::<Letter>::default()));
        let runs_a_program = outlet.runs_a_program();
        let work = queue.clone();
        std::thread::spawn(move || {
            let mut told = false;
            while let Some((message, of)) = work.next() {
                let end = outlet.send_unless(&message, &shared.recalled);
                if end.is_ok() {
                    // What cannot be noted down is told once more.
                    shared.receipts.keep(&of, outlet.name()).ok();
                }
                // A channel that is dead is told once, not for every message; of one that is recalled all is said.
                if let (Err(why), false) = (&end, told || shared.recalled.load(Ordering::Relaxed)) {
                    note_down(&shared.notes, format!("notify: {}: {why}", outlet.name()));
                    told = true;
                }
                work.done();
            }
        });
        Self { name, runs_a_program, occasions, queue }
    }
}
