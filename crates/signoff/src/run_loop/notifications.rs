//! A renderer that also sends notifications for the facts it renders.

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write, stderr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use signoff_core::ids::RunId;
use signoff_core::notify::{Notification, NotificationWatcher};
use signoff_core::policy::Caps;
use signoff_core::settings::Settings;
use signoff_core::view::{QuestionRow, Transition};
use signoff_engine::dispatcher::{DispatcherNotice, Renderer};
use signoff_engine::notify::{ChannelContext, Notifier, NotifyTimeouts, TerminalPresence, runs_with_undelivered};
use signoff_store::Store;
use signoff_term::notification::{MessageContext, message};

use crate::console::{Console, Verbosity};
use crate::host;
use crate::project::Project;

/// Sends notifications and passes every notice on to the inner renderer.
pub struct NotifyingRenderer<R> {
    inner: R,
    /// `None` if no channel is configured.
    notifier: Option<Notifier>,
    watches: BTreeMap<RunId, NotificationWatcher>,
    task_caps: Caps,
    run_caps: Caps,
    store: Arc<dyn Store>,
    /// The name of the repository's directory.
    project: String,
}

impl<R: Renderer> NotifyingRenderer<R> {
    pub fn new(renderer: R, settings: &Settings, channels: &ChannelContext, store: Arc<dyn Store>) -> Self {
        let notifier = Notifier::start(settings, channels, store.clone());
        let limits = settings.limits();
        let (task_caps, run_caps) = (limits.task, limits.run);
        let (watches, project) = (BTreeMap::new(), project(&channels.directory));
        Self { inner: renderer, notifier, watches, task_caps, run_caps, store, project }
    }

    /// Waits a short time for pending notifications and returns the inner renderer.
    pub fn finish(mut self) -> R {
        let notes = self.notifier.take().map(Notifier::finish).unwrap_or_default();
        notes.iter().for_each(|note| self.inner.show(&DispatcherNotice::Note(note)));
        self.inner
    }

    fn recorded(&mut self, transition: &Transition) {
        if self.notifier.is_some() {
            let notifications = self.watch(transition.event.run).apply(transition);
            self.send(&notifications);
        }
    }

    fn replayed(&mut self, transition: &Transition) {
        if self.notifier.is_some() {
            self.watch(transition.event.run).replay(transition);
        }
    }

    /// Sends notifications about a resumed run that still apply: they may never have been delivered.
    fn resumed(&mut self, run: RunId) {
        if self.notifier.is_some() {
            let notifications = self.watch(run).pending_notifications();
            self.send(&notifications);
        }
    }

    fn watch(&mut self, run: RunId) -> &mut NotificationWatcher {
        self.watches.entry(run).or_insert_with(|| NotificationWatcher::new(self.task_caps, self.run_caps))
    }

    fn send(&self, all: &[Notification]) {
        let Some(notifier) = &self.notifier else { return };
        for notification in all {
            let question = self.question(notification);
            let context = MessageContext { project: &self.project, question: question.as_deref() };
            notifier.send(message(notification, context), notification.key());
        }
    }

    /// Resends undelivered notifications of finished runs if they still apply.
    pub fn resend_undelivered(&self) {
        let Some(notifier) = &self.notifier else { return };
        let undelivered = runs_with_undelivered(&*self.store);
        let open = if undelivered.is_empty() { Ok(Vec::new()) } else { self.store.open_runs() };
        let is_over = |run: &RunId| open.as_ref().is_ok_and(|open| open.iter().all(|row| row.id != *run));
        for run in undelivered.iter().filter(|run| is_over(run)) {
            let mut watcher = NotificationWatcher::new(self.task_caps, self.run_caps);
            // A run whose log is missing has nothing to send.
            self.store.load(*run, &mut |transition| watcher.replay(transition)).ok();
            for notification in watcher.pending_notifications() {
                let question = self.question(&notification);
                let context = MessageContext { project: &self.project, question: question.as_deref() };
                notifier.resend(message(&notification, context), &notification.key());
            }
        }
    }

    /// Looks up the number of the question a notification is about.
    fn question(&self, notification: &Notification) -> Option<String> {
        let row = notification.about.as_deref()?;
        let question = row.question.as_ref()?;
        let task = row.task.map(|task| task.0);
        let same = |stored: &QuestionRow| {
            stored.run_id == notification.run.0 && stored.task_id == task && stored.text == question.text
        };
        self.store.questions().ok()?.into_iter().rfind(same).map(|stored| stored.id)
    }

    /// Passes the notes of the channels on to the inner renderer.
    fn forward_notes(&mut self) {
        let notes = self.notifier.as_ref().map(Notifier::notes).unwrap_or_default();
        notes.iter().for_each(|note| self.inner.show(&DispatcherNotice::Note(note)));
    }
}

impl<R: Renderer> Renderer for NotifyingRenderer<R> {
    fn show(&mut self, notice: &DispatcherNotice<'_>) {
        self.inner.show(notice);
        match notice {
            DispatcherNotice::Recorded(transition) => self.recorded(transition),
            DispatcherNotice::Replayed(transition) => self.replayed(transition),
            DispatcherNotice::Resumed { run } => self.resumed(*run),
            DispatcherNotice::OutputLine { .. } | DispatcherNotice::Stopping | DispatcherNotice::Note(_) => {}
        }
        self.forward_notes();
    }
}

/// A renderer that prints only notes.
struct NoteRenderer<'a>(&'a Console);

impl Renderer for NoteRenderer<'_> {
    fn show(&mut self, notice: &DispatcherNotice<'_>) {
        match notice {
            DispatcherNotice::Note(note) => self.0.note(note),
            DispatcherNotice::Recorded(_)
            | DispatcherNotice::Replayed(_)
            | DispatcherNotice::Resumed { .. }
            | DispatcherNotice::OutputLine { .. }
            | DispatcherNotice::Stopping => {}
        }
    }
}

/// Resends undelivered notifications when there is nothing to work on.
pub fn resend_undelivered(project: &Project, console: &Console) {
    if !runs_with_undelivered(&*project.store).is_empty() {
        let channels = channel_context(project.repository.root(), user_presence(console));
        let store = project.store.clone();
        let renderer = NotifyingRenderer::new(NoteRenderer(console), &project.settings, &channels, store);
        renderer.resend_undelivered();
        renderer.finish();
    }
}

/// The environment in which channels run.
pub fn channel_context(root: &Path, presence: TerminalPresence) -> ChannelContext {
    let text = |value: std::ffi::OsString| value.to_string_lossy().into_owned();
    let variables = host::environment().into_iter().map(|(name, value)| (text(name), text(value)));
    let variables = variables.collect();
    // Without its own path signoff can start no command either; starting one then fails with an error.
    let program = host::program().unwrap_or_default();
    ChannelContext { directory: root.to_owned(), variables, presence, program, timeouts: notify_timeouts() }
}

/// Where the user can be reached; with `--quiet` nowhere on this terminal.
pub fn user_presence(console: &Console) -> TerminalPresence {
    if console.verbosity == Verbosity::Quiet { TerminalPresence::Undisturbed } else { terminal_presence() }
}

/// The user is at the terminal if stderr is one.
pub fn terminal_presence() -> TerminalPresence {
    if !stderr().is_terminal() {
        return TerminalPresence::Elsewhere;
    }
    // A failed write is ignored.
    TerminalPresence::AtTerminal(Arc::new(|bytes: &[u8]| stderr().lock().write_all(bytes).unwrap_or_default()))
}

/// The name of the repository: that of its directory.
pub fn project(root: &Path) -> String {
    root.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// The retry options; tests set a shorter backoff.
fn notify_timeouts() -> NotifyTimeouts {
    let backoff = host::test_number("SIGNOFF_TEST_NOTIFY_MS").map(Duration::from_millis);
    let default = NotifyTimeouts::default();
    NotifyTimeouts { backoff: backoff.unwrap_or(default.backoff), ..default }
}
