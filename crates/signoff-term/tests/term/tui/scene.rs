//! Sample runs, and a UI that displays them.

use crossterm::event::{KeyCode, KeyEvent};
use jiff::{SignedDuration, Timestamp};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use signoff_core::ids::TaskId;
use signoff_core::machine::{Event, JobKind, LimitPlan};
use signoff_core::review::Severity::{Critical, Important, Minor};
use signoff_core::review::{Review, Verdict};
use signoff_core::view::{Badge, RunState, TaskRow, TaskStatus};
use signoff_core::wire::{Fact, LoopFact};
use signoff_core::workflow::PRESETS;
use signoff_term::show::TaskReport;
use signoff_term::tui::{DataRequest, Theme, Tui, TuiData, TuiMode, TuiRequest};

use crate::rows::row;
use crate::story::{Story, id, note, review, reviewed, task_report};

/// The tested screen sizes.
pub const SMALL: (u16, u16) = (80, 24);
pub const LARGE: (u16, u16) = (200, 60);
pub const TINY: (u16, u16) = (20, 5);

/// A UI, its log, and the current time.
pub struct Scene {
    pub tui: Tui,
    pub story: Story,
}

impl Scene {
    pub fn new(story: Story) -> Self {
        Self::shown(story, TuiMode::Driving, Theme::Color)
    }

    pub fn shown(story: Story, mode: TuiMode, theme: Theme) -> Self {
        let mut tui = Tui::new(mode, theme);
        tui.set_project("shop");
        story.transitions.iter().for_each(|transition| tui.apply(transition));
        Self { tui, story }
    }

    pub fn now(&self) -> Timestamp {
        self.story.view.last_at.expect("a fact") + SignedDuration::from_secs(13)
    }

    /// Adds another run.
    pub fn with_run(mut self, other: &Story) -> Self {
        other.in_run(4).iter().for_each(|transition| self.tui.apply(transition));
        self
    }

    /// Presses keys, and answers the requests that can be answered from the log.
    pub fn press<K: Into<KeyEvent> + Copy>(&mut self, keys: &[K]) -> Vec<TuiRequest> {
        let mut requests = Vec::new();
        let now = self.now();
        for key in keys {
            let new = self.tui.handle_key(*key, now);
            new.iter().for_each(|request| self.answer_request(request));
            requests.extend(new);
        }
        requests
    }

    pub fn type_in(&mut self, text: &str) -> Vec<TuiRequest> {
        self.press(&text.chars().map(KeyCode::Char).collect::<Vec<_>>())
    }

    fn answer_request(&mut self, request: &TuiRequest) {
        match request {
            TuiRequest::Load(DataRequest::Report(task)) => {
                let report = Box::new(report(&self.story, *task));
                self.tui.receive(TuiData::Report { task: *task, report });
            }
            TuiRequest::Load(DataRequest::Diff(task)) => {
                let (patch, stat) = (PATCH.to_owned(), STAT.to_owned());
                self.tui.receive(TuiData::Diff { task: *task, patch, stat });
            }
            TuiRequest::Load(DataRequest::Transcript { run, loop_id, attempt }) => {
                let (run, loop_id, attempt) = (*run, loop_id.clone(), *attempt);
                let text = format!("I am {attempt}.\n{TRANSCRIPT}");
                self.tui.receive(TuiData::Transcript { run, loop_id, attempt, text });
            }
            TuiRequest::Quit
            | TuiRequest::Interrupt
            | TuiRequest::QuestionDecided(_)
            | TuiRequest::Decide(..)
            | TuiRequest::Replay(_) => {}
        }
    }

    /// Extends the log while it is displayed.
    pub fn then(mut self, next: impl FnOnce(Story) -> Story) -> Self {
        let length = self.story.log.len();
        self.story = next(self.story);
        self.story.transitions[length..].iter().for_each(|transition| self.tui.apply(transition));
        for request in self.tui.requests() {
            self.answer_request(&request);
        }
        self
    }

    pub fn draw(&mut self, (width, height): (u16, u16)) -> Buffer {
        let now = self.now();
        let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a screen");
        terminal.draw(|frame| self.tui.draw(frame, now)).expect("a frame");
        terminal.backend().buffer().clone()
    }

    pub fn text(&mut self, size: (u16, u16)) -> String {
        text(&self.draw(size))
    }
}

/// The text of a buffer, without trailing spaces.
pub fn text(buffer: &Buffer) -> String {
    let lines = (0..buffer.area.height).map(|y| line(buffer, y).trim_end().to_owned());
    let lines: Vec<_> = lines.collect();
    lines.join("\n").trim_end().to_owned()
}

fn line(buffer: &Buffer, y: u16) -> String {
    let (mut shown, mut skip) = (String::new(), 0);
    for x in 0..buffer.area.width {
        let symbol = buffer[(x, y)].symbol();
        if skip == 0 {
            shown.push_str(symbol);
            skip = signoff_term::fit::columns(symbol);
        }
        skip = skip.saturating_sub(1);
    }
    shown
}

fn report(story: &Story, task: TaskId) -> TaskReport {
    let status = story.view.row(&id(task.0)).map_or(TaskStatus::Pending, |row| row.status);
    task_report(row(task.0, "Add user authentication", status), story.log.clone(), &id(task.0), Vec::new())
}

/// Twelve tasks in two groups, with a task for each badge but those of the last steps.
pub fn busy() -> Story {
    let groups: &[&[(u64, &str)]] = &[
        &[
            (21, "Read the configuration once"),
            (22, "Log in with a password"),
            (23, "Log in with a key"),
            (24, "Send a mail when a password changes"),
            (25, "Keep sessions over a restart"),
            (26, "Refuse passwords that are too short"),
            (27, "Count failed logins"),
            (28, "Lock an account for a while"),
        ],
        &[(29, "Write the manual"), (30, "Translate the manual")],
    ];
    let bug = (Critical, "src/login.rs:12", "the password is logged");
    let mut story = Story::new(reviewed("loops")).plan(groups).starts(21).works().approves("general");
    story = story.then(Event::LandingGranted).lands();
    story = story.starts(22).works();
    story = story.starts(23).works().objects("general", &[bug]);
    story = story.starts(24);
    story = story.starts(25).works().answers_unclearly("general").answers_unclearly("general");
    story = story.starts(26).gives_up("there is no place where passwords are checked");
    story = limited(story.starts(27));
    story.starts(28).works().approves("general").then(Event::LandingGranted)
}

/// Rate-limits the current attempt.
pub fn limited(story: Story) -> Story {
    let attempt = story.jobs()[0].attempt;
    let until = "2026-01-29T12:31:08Z".parse().expect("a time");
    story.then(Event::RateLimited { attempt, plan: LimitPlan::WaitUntil(until), error: None, next_agent: None })
}

/// A task whose agent has not been started yet.
pub fn spawning() -> Story {
    let mut story = Story::task(reviewed("task"));
    // The last events are the start of its attempt and the update of the run.
    let started = story.log.iter().position(|recorded| is_start(&recorded.fact)).expect("a start");
    story.log.truncate(started);
    story.transitions.truncate(started);
    story.view = RunState::from_log(&story.log);
    story
}

fn is_start(fact: &Fact) -> bool {
    matches!(fact, Fact::Loop(_, LoopFact::AttemptStarted { .. }))
}

/// A loop in the checks phase, in the first workflow that has one.
pub fn checking() -> Story {
    let checks = |name: &str| {
        let mut story = Story::task(reviewed(name));
        for _ in 0..40 {
            if story.view.row(&id(29)).is_some_and(|row| row.badge == Badge::Check) {
                return Some(story);
            }
            story = match story.jobs().into_iter().next()?.kind {
                JobKind::Work { .. } | JobKind::Research { .. } | JobKind::Fix { .. } => story.works(),
                JobKind::Review { reviewer, .. } => story.approves(reviewer.as_str()),
                JobKind::Check | JobKind::Combine { .. } | JobKind::Land => return None,
            };
        }
        None
    };
    PRESETS.into_iter().find_map(checks).expect("a workflow with checks")
}

/// Two reviewers and two cycles; before the third there is a question.
pub fn judged() -> Story {
    let with_notes = Review {
        minor: vec![note("src/auth.rs", 30, "a magic number")],
        summary: "Good, but for one thing: two people who log in at the same time get each other's session.".into(),
        checked: vec!["the tests pass".into()],
        ..review("code", Verdict::ChangesRequested, &[(Important, "src/auth.rs:14", "two logins race")])
    };
    let missing = (Critical, "src/auth.rs:12", "missing input validation");
    let story = Story::task(reviewed("plan")).works().objects("spec", &[missing]).answers("code", with_notes);
    let story = story.works().objects("spec", &[missing]).approves("code");
    let typo = (Minor, "README.md:3", "a typo");
    story.works().objects("spec", &[missing, typo]).approves("code")
}

/// Tasks without a run.
pub fn queued() -> Vec<TaskRow> {
    let task = |id: u64, title: &str| TaskRow { run_id: None, ..row(id, title, TaskStatus::Pending) };
    vec![task(40, "Greet people by name"), TaskRow { depends_on: vec![40], ..task(41, "Say goodbye") }]
}

pub const PATCH: &str = "\
diff --git a/src/auth.rs b/src/auth.rs
index 1..2 100644
--- a/src/auth.rs
+++ b/src/auth.rs
@@ -8,7 +8,9 @@ impl Login {
 
     // Who is it?
     pub fn login(&mut self, name: &str) -> bool {
-        self.sessions.push(name);
+        let session = Session::of(name);
+\tself.sessions.push(session);
+        log(\"logged in\", 42);
         true
     }
 }
diff --git a/README.md b/README.md
index 1..2 100644
--- a/README.md
+++ b/README.md
@@ -1,2 +1,3 @@
 # Shop
 
+Log in wiht your name.
";

pub const STAT: &str = " README.md   | 1 +\n src/auth.rs | 4 +++-\n 2 files changed, 4 insertions(+), 1 deletion(-)\n";

const TRANSCRIPT: &str = "\
I read the task: people shall log in.
\tcargo test
   running 12 tests
It is done; the session is kept in memory, and whoever restarts the server has everybody log in again, which is what was asked for.
Not yet at the end of a li";
