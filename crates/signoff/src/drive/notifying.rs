//! Tells people who are not looking what happens, beside showing it: one more fold over the same facts.

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write, stderr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use signoff_core::config::Settings;
use signoff_core::ids::RunId;
use signoff_core::notify::{Notification, Watch};
use signoff_core::policy::Caps;
use signoff_core::wire::Recorded;
use signoff_engine::dispatcher::{Notice, Renderer};
use signoff_engine::layout::Layout;
use signoff_engine::notify::{Manners, Notifier, Person, Receipts, Surroundings};
use signoff_store::Store;
use signoff_term::notification::{Known, message};

use crate::console::{Console, Talk};
use crate::desk::Bench;
use crate::door;

/// A renderer that also notifies. What is shown is left to the one inside.
pub struct Notifying<R> {
    shown: R,
    /// None where nobody is to be told anything: then nothing is watched.
    notifier: Option<Notifier>,
    watches: BTreeMap<RunId, Watch>,
    /// The caps of a task and of a run.
    caps: (Caps, Caps),
    store: Arc<dyn Store>,
    /// The name of the repository's directory.
    project: String,
}

impl<R: Renderer> Notifying<R> {
    /// `root` is that of the repository.
    pub fn new(
        shown: R,
        settings: &Settings,
        (root, person): (&Path, Person),
        receipts: Receipts,
        store: Arc<dyn Store>,
    ) -> Self {
        let notifier = Notifier::start(settings, &surroundings(root, person), receipts);
        let limits = settings.limits();
        let (watches, caps) = (BTreeMap::new(), (limits.task, limits.run));
        Self { shown, notifier, watches, caps, store, project: project(root) }
    }

    /// Waits a little for what is on its way, and gives back what was inside.
    pub fn finish(mut self) -> R {
        let notes = self.notifier.take().map(Notifier::finish).unwrap_or_default();
        notes.iter().for_each(|note| self.shown.take(&Notice::Note(note)));
        self.shown
    }

    fn recorded(&mut self, recorded: &Recorded) {
        if self.notifier.is_some() {
            let told = self.watch(recorded.run).take(recorded);
            self.tell(&told);
        }
    }

    /// What still holds of what was recorded before may have got through to nobody.
    fn taken_up(&mut self, run: RunId, log: &[Recorded]) {
        if self.notifier.is_some() {
            let told = self.watch(run).catch_up(log);
            self.tell(&told);
        }
    }

    fn watch(&mut self, run: RunId) -> &mut Watch {
        let (task, whole) = self.caps;
        self.watches.entry(run).or_insert_with(|| Watch::within(task, whole))
    }

    fn tell(&self, all: &[Notification]) {
        let Some(notifier) = &self.notifier else { return };
        for told in all {
            let question = self.question(told);
            let known = Known { project: &self.project, question: question.as_deref() };
            notifier.tell(message(told, known), told.occurrence(), told.at);
        }
    }

    /// What was due before to a channel that did not take it, of runs that nobody takes up any more, is told again where it
    /// still holds.
    pub fn tell_again(&self) {
        let Some(notifier) = &self.notifier else { return };
        let owed = notifier.owed();
        let open = if owed.is_empty() { Ok(Vec::new()) } else { self.store.open_runs() };
        let is_over = |run: &RunId| open.as_ref().is_ok_and(|open| open.iter().all(|row| row.id != *run));
        let (task, whole) = self.caps;
        for run in owed.iter().filter(|run| is_over(run)) {
            // A run that is gone needs nobody.
            let log = self.store.log(*run).unwrap_or_default();
            for told in Watch::within(task, whole).catch_up(&log) {
                let question = self.question(&told);
                let known = Known { project: &self.project, question: question.as_deref() };
                notifier.tell_again(message(&told, known), &told.occurrence());
            }
        }
    }

    /// The name of the question it is about. Only the store knows it.
    fn question(&self, told: &Notification) -> Option<String> {
        let row = told.about.as_deref()?;
        let asked = row.question.as_ref()?;
        let task = row.task.map(|task| task.0);
        let same = |one: &signoff_core::view::QuestionRow| {
            one.run_id == told.run.0 && one.task_id == task && one.text == asked.text
        };
        self.store.questions().ok()?.into_iter().rfind(same).map(|one| one.id)
    }

    /// What people should know about channels goes where all else is said.
    fn pass_on_notes(&mut self) {
        let notes = self.notifier.as_ref().map(Notifier::notes).unwrap_or_default();
        notes.iter().for_each(|note| self.shown.take(&Notice::Note(note)));
    }
}

impl<R: Renderer> Renderer for Notifying<R> {
    fn take(&mut self, notice: &Notice<'_>) {
        self.shown.take(notice);
        match notice {
            Notice::Recorded(recorded) => self.recorded(recorded),
            Notice::TakenUp { run, log } => self.taken_up(*run, log),
            Notice::Said { .. } | Notice::Ending | Notice::Note(_) => {}
        }
        self.pass_on_notes();
    }
}

/// Says what channels have to say where nothing else is shown.
struct Noting<'a>(&'a Console);

impl Renderer for Noting<'_> {
    fn take(&mut self, notice: &Notice<'_>) {
        match notice {
            Notice::Note(note) => self.0.note(note),
            Notice::Recorded(_) | Notice::TakenUp { .. } | Notice::Said { .. } | Notice::Ending => {}
        }
    }
}

/// Tells what was due before, where there is nothing to work on.
pub fn tell_again(bench: &Bench, console: &Console) {
    let receipts = receipts(&bench.layout);
    if !receipts.owed().is_empty() {
        let place = (bench.repository.root(), person(console));
        let store = bench.store.clone();
        let telling = Notifying::new(Noting(console), &bench.settings, place, receipts, store);
        telling.tell_again();
        telling.finish();
    }
}

/// What channels took and did not take.
pub fn receipts(layout: &Layout) -> Receipts {
    Receipts::in_file(layout.notified(), door::now())
}

/// What channels find here.
pub fn surroundings(root: &Path, person: Person) -> Surroundings {
    let text = |word: std::ffi::OsString| word.to_string_lossy().into_owned();
    let variables = door::environment().into_iter().map(|(name, value)| (text(name), text(value)));
    let variables = variables.collect();
    // Who cannot find itself can start no command either, and says so then.
    let program = door::program().unwrap_or_default();
    Surroundings { directory: root.to_owned(), variables, person, program, manners: manners() }
}

/// Where the person is, unless they want to be left in peace.
pub fn person(console: &Console) -> Person {
    if console.talk == Talk::Quiet { Person::Undisturbed } else { seated() }
}

/// Where the person is: at the terminal that stderr is, if it is one.
pub fn seated() -> Person {
    if !stderr().is_terminal() {
        return Person::Elsewhere;
    }
    // Nobody there to listen is no reason to fail.
    Person::AtTerminal(Arc::new(|bytes: &[u8]| stderr().lock().write_all(bytes).unwrap_or_default()))
}

/// The name that people know a repository by.
pub fn project(root: &Path) -> String {
    root.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Tests do not wait.
fn manners() -> Manners {
    let backoff = door::test_number("SIGNOFF_TEST_NOTIFY_MS").map(Duration::from_millis);
    let usual = Manners::default();
    Manners { backoff: backoff.unwrap_or(usual.backoff), ..usual }
}
