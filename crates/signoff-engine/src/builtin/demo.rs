//! `signoff __demo`: an agent without a model, for a complete run that needs no key.
//!
//! It supports one small project with two tasks and their possible flaws. Like any agent it works from the prompt and
//! the files: it reports a flaw that exists, and fixes what the prompt mentions. In the first task it forgets
//! two things, which the reviewers find. The second task needs a user's decision.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::ExitCode;
use std::{env, fs};

/// The project's known files with their texts.
pub type DemoFiles = BTreeMap<&'static str, String>;

/// Every file the agent reads or writes.
const KNOWN_FILES: [&str; 6] = ["README.md", "bye.sh", "greet.sh", "test.sh", "test_bye.sh", "test_greet.sh"];

/// The files of the demo repository.
pub fn project_files() -> Vec<(&'static str, &'static str)> {
    vec![
        ("README.md", include_str!("demo/project/README.md")),
        ("greet.sh", include_str!("demo/project/greet.sh")),
        ("test.sh", include_str!("demo/project/test.sh")),
        ("test_greet.sh", include_str!("demo/project/test_greet.sh")),
    ]
}

/// The tasks of the demo, with the title on the first line: one that gets approved, one that needs a decision.
pub fn tasks() -> Vec<&'static str> {
    DemoTask::ALL.into_iter().map(DemoTask::text).collect()
}

/// The `signoff.toml` of the demo.
pub fn config() -> &'static str {
    include_str!("demo/signoff.toml")
}

/// The agent's input besides the prompt.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DemoEnvironment {
    /// `SIGNOFF_ROLE`
    pub role: String,
    /// `SIGNOFF_REVIEWER`
    pub reviewer: String,
    /// `SIGNOFF_NONCE`
    pub nonce: String,
}

/// The agent's final message and the files it changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DemoAnswer {
    pub message: String,
    pub changed: DemoFiles,
}

/// Why the agent does nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DemoError {
    #[error("the demo agent cannot `{0}`, only implement, fix and review")]
    Role(String),
    #[error("the demo agent supports only its own two tasks")]
    Task,
}

/// Computes the agent's answer from the prompt, the environment and the files.
pub fn answer(prompt: &str, environment: &DemoEnvironment, files: &DemoFiles) -> Result<DemoAnswer, DemoError> {
    let story = DemoTask::from_prompt(prompt).ok_or(DemoError::Task)?;
    match environment.role.as_str() {
        "implement" => Ok(story.implement(files)),
        "fix" => Ok(fix(prompt, files)),
        "review" => Ok(DemoAnswer { message: review(prompt, environment, files), changed: DemoFiles::new() }),
        role => Err(DemoError::Role(role.to_owned())),
    }
}

/// Repairs the flaws the prompt mentions, or every flaw if it mentions none of them.
fn fix(prompt: &str, files: &DemoFiles) -> DemoAnswer {
    let present = || Flaw::ALL.into_iter().filter(|flaw| flaw.line(files).is_some());
    let mentioned: Vec<_> = present().filter(|flaw| prompt.contains(flaw.facts().description)).collect();
    let flaws = if mentioned.is_empty() { present().collect() } else { mentioned };
    let mut changed = DemoFiles::new();
    let mut message = String::new();
    for flaw in flaws {
        let now: DemoFiles = files.iter().chain(&changed).map(|(name, text)| (*name, text.clone())).collect();
        changed.extend(flaw.repair(&now));
        message += &format!("- {}: fixed. {}\n", flaw.facts().file, flaw.facts().suggestion);
    }
    if message.is_empty() {
        message = "There is nothing left to fix.\n".to_owned();
    }
    DemoAnswer { message, changed }
}

fn review(prompt: &str, environment: &DemoEnvironment, files: &DemoFiles) -> String {
    let reviewer = DemoReviewer::from_name(&environment.reviewer);
    let flaws: Vec<_> = Flaw::ALL
        .into_iter()
        .filter(|flaw| reviewer == DemoReviewer::General || reviewer == flaw.facts().reviewer)
        .filter_map(|flaw| flaw.line(files).map(|line| FoundFlaw { flaw, line }))
        .collect();
    AnswerFormat::from_prompt(prompt, &environment.nonce).write(&flaws)
}

/// Runs the program: the prompt on stdin, the project in the current directory, the message on stdout.
pub fn run() -> ExitCode {
    super::exit_code(work(Path::new(".")).map(|()| ExitCode::SUCCESS))
}

fn work(directory: &Path) -> io::Result<()> {
    let mut prompt = String::new();
    io::stdin().read_to_string(&mut prompt)?;
    let answer = answer(&prompt, &environment(), &read_files(directory)?).map_err(io::Error::other)?;
    for (name, text) in &answer.changed {
        fs::write(directory.join(name), text)?;
    }
    let mut stdout = io::stdout();
    stdout.write_all(answer.message.as_bytes())?;
    stdout.flush()
}

#[expect(clippy::disallowed_methods, reason = "the only place where the demo agent reads its environment")]
fn environment() -> DemoEnvironment {
    let read = |name| env::var(name).unwrap_or_default();
    DemoEnvironment { role: read("SIGNOFF_ROLE"), reviewer: read("SIGNOFF_REVIEWER"), nonce: read("SIGNOFF_NONCE") }
}

/// Reads the known files that exist.
fn read_files(directory: &Path) -> io::Result<DemoFiles> {
    let mut files = DemoFiles::new();
    for name in KNOWN_FILES {
        match fs::read_to_string(directory.join(name)) {
            Ok(text) => drop(files.insert(name, text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(files)
}

/// The format, with the values the prompt asks to copy.
#[derive(Debug, Clone, PartialEq, Eq)]
enum AnswerFormat {
    /// `<code-review nonce="…" commit="…">`: the root's name and its whole opening tag.
    Xml { name: String, tag: String, nonce: String },
    /// The comment line below the verdict.
    Markdown { comment: String },
}

impl AnswerFormat {
    /// Finds the requested format. The instructions are at the end of a prompt, after material that may look
    /// like them.
    fn from_prompt(prompt: &str, nonce: &str) -> Self {
        let tag = prompt.lines().rfind(|line| line.starts_with("<code-review") || line.starts_with("<spec-review"));
        let name = tag.and_then(|tag| tag.trim_start_matches('<').split([' ', '>']).next());
        if let (Some(tag), Some(name)) = (tag, name) {
            return Self::Xml { name: name.to_owned(), tag: tag.to_owned(), nonce: nonce.to_owned() };
        }
        let marker = prompt.lines().rfind(|line| line.starts_with("<!-- signoff:"));
        Self::Markdown { comment: marker.map_or_else(|| comment(nonce), str::to_owned) }
    }

    fn write(&self, flaws: &[FoundFlaw]) -> String {
        match self {
            // The XML format cannot express that a user has to decide.
            Self::Xml { nonce, .. } if flaws.iter().any(|found| found.flaw.facts().needs_decision) => {
                markdown(&comment(nonce), flaws)
            }
            Self::Xml { name, tag, .. } => xml(name, tag, flaws),
            Self::Markdown { comment } => markdown(comment, flaws),
        }
    }
}

fn comment(nonce: &str) -> String {
    if nonce.is_empty() { String::new() } else { format!("<!-- signoff:{nonce} -->") }
}

fn markdown(comment: &str, flaws: &[FoundFlaw]) -> String {
    let verdict = match flaws {
        [] => "APPROVED",
        flaws if flaws.iter().any(|found| found.flaw.facts().needs_decision) => "NEEDS_DISCUSSION",
        _ => "CHANGES_REQUESTED",
    };
    let list: String = flaws
        .iter()
        .map(|FoundFlaw { flaw, line }| {
            format!("- [Important] {}:{line} {}\n", flaw.facts().file, flaw.facts().description)
        })
        .collect();
    let body = if list.is_empty() { "All that the task asks for is there.\n" } else { &list };
    format!("{body}\n**Verdict: {verdict}**\n{comment}\n")
}

fn xml(name: &str, tag: &str, flaws: &[FoundFlaw]) -> String {
    let verdict = if flaws.is_empty() { "APPROVED" } else { "ISSUES" };
    let issues: String = flaws.iter().map(|found| xml_issue(name, found)).collect();
    let summary = if flaws.is_empty() { "The scripts do what they should." } else { "Not yet." };
    format!(
        "{tag}\n  <verdict>{verdict}</verdict>\n  <confidence>high</confidence>\n  <issues>\n{issues}  </issues>\n  \
         <checked>\n    <item>What the scripts do with and without a name</item>\n  </checked>\n  \
         <summary>{summary}</summary>\n</{name}>\n"
    )
}

/// Both kinds of reviewers describe the flaw. The second element depends on the kind.
fn xml_issue(root: &str, FoundFlaw { flaw, line }: &FoundFlaw) -> String {
    let more = if root == "spec-review" { "requirement" } else { "fix" };
    format!(
        "    <issue type=\"{}\" severity=\"important\">\n      <location file=\"{}\" line=\"{line}\"/>\n      \
         <description>{}</description>\n      <{more}>{}</{more}>\n    </issue>\n",
        flaw.facts().kind,
        flaw.facts().file,
        flaw.facts().description,
        flaw.facts().suggestion,
    )
}

/// A task of the demo.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DemoTask {
    Greeting,
    Goodbye,
}

impl DemoTask {
    const ALL: [Self; 2] = [Self::Greeting, Self::Goodbye];

    fn text(self) -> &'static str {
        match self {
            Self::Greeting => include_str!("demo/task/greeting.md"),
            Self::Goodbye => include_str!("demo/task/goodbye.md"),
        }
    }

    /// A word that only the task's own text contains.
    fn keyword(self) -> &'static str {
        match self {
            Self::Greeting => "greeting",
            Self::Goodbye => "goodbye",
        }
    }

    /// The task in a prompt. Only the task section counts, because others may be mentioned elsewhere.
    fn from_prompt(prompt: &str) -> Option<Self> {
        let section = prompt.split("\n## ").find(|section| section.starts_with("Task"))?;
        Self::ALL.into_iter().find(|story| section.contains(story.keyword()))
    }

    /// The first version of the work. Leaves existing work unchanged.
    fn implement(self, files: &DemoFiles) -> DemoAnswer {
        let (message, work) = match self {
            Self::Greeting => (
                "`greet.sh` takes a name now, and `test_greet.sh` checks that it is greeted.\n",
                [
                    ("greet.sh", include_str!("demo/work/greet.sh")),
                    ("test_greet.sh", include_str!("demo/work/test_greet.sh")),
                ],
            ),
            Self::Goodbye => (
                "`bye.sh` says goodbye. The task does not say where the language comes from; I took English.\n",
                [("bye.sh", include_str!("demo/work/bye.sh")), ("test_bye.sh", include_str!("demo/work/test_bye.sh"))],
            ),
        };
        let is_done = files.get(work[0].0).is_some_and(|text| text.contains("name=$1"));
        let work = work.into_iter().filter(|_| !is_done);
        DemoAnswer { message: message.to_owned(), changed: work.map(|(name, text)| (name, text.to_owned())).collect() }
    }
}

/// The reviewer's role.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DemoReviewer {
    Spec,
    Code,
    /// Any other reviewer checks everything.
    General,
}

impl DemoReviewer {
    fn from_name(name: &str) -> Self {
        match name {
            "spec" => Self::Spec,
            "code" => Self::Code,
            _ => Self::General,
        }
    }
}

/// A flaw and the number of its line.
struct FoundFlaw {
    flaw: Flaw,
    line: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flaw {
    /// `greet.sh` without a name prints an empty greeting and succeeds.
    NameUnchecked,
    /// The README does not show how to greet by name.
    ReadmeSilent,
    /// The task does not say where the visitor's language comes from.
    LanguageOpen,
}

/// What reviewers report about a flaw.
struct FlawFacts {
    file: &'static str,
    kind: &'static str,
    description: &'static str,
    suggestion: &'static str,
    /// Reviewers of requirements and of code each check their own.
    reviewer: DemoReviewer,
    /// Only a user can decide.
    needs_decision: bool,
}

impl Flaw {
    const ALL: [Self; 3] = [Self::ReadmeSilent, Self::NameUnchecked, Self::LanguageOpen];

    fn facts(self) -> FlawFacts {
        match self {
            Self::NameUnchecked => FlawFacts {
                file: "greet.sh",
                kind: "error_handling",
                description: "The name is not checked: called without one, the script prints `Hello, !` and exits 0",
                suggestion: "Without a name, print the usage on stderr and exit 2",
                reviewer: DemoReviewer::Code,
                needs_decision: false,
            },
            Self::ReadmeSilent => FlawFacts {
                file: "README.md",
                kind: "missing_requirement",
                description: "The README still shows the call without a name",
                suggestion: "Show `sh greet.sh NAME`",
                reviewer: DemoReviewer::Spec,
                needs_decision: false,
            },
            Self::LanguageOpen => FlawFacts {
                file: "bye.sh",
                kind: "misunderstanding",
                description: "It always says goodbye in English. The task asks for the visitor's language and does not \
                              say where that comes from: the environment, an option, or a list of names?",
                suggestion: "Take the language from LANG, and English where it is not known",
                reviewer: DemoReviewer::Spec,
                needs_decision: true,
            },
        }
    }

    /// The line of the flaw, if it exists.
    fn line(self, files: &DemoFiles) -> Option<usize> {
        let text = files.get(self.facts().file)?;
        let greets_by_name = || files.get("greet.sh").is_some_and(|script| script.contains("name=$1"));
        match self {
            Self::NameUnchecked if text.contains("[ -z ") => None,
            Self::NameUnchecked => find_line(text, "name=$1"),
            Self::ReadmeSilent if !greets_by_name() => None,
            Self::ReadmeSilent => find_line(text, "    sh greet.sh"),
            Self::LanguageOpen if text.contains("LANG") => None,
            Self::LanguageOpen => find_line(text, "echo \"Goodbye, $name!\""),
        }
    }

    /// The files changed by the repair of this flaw alone.
    fn repair(self, files: &DemoFiles) -> DemoFiles {
        let (Some(line), Some(text)) = (self.line(files), files.get(self.facts().file)) else {
            return DemoFiles::new();
        };
        let mut lines: Vec<_> = text.lines().collect();
        match self {
            Self::NameUnchecked => lines.insert(line, include_str!("demo/work/check_name.sh").trim_end()),
            Self::ReadmeSilent => lines[line - 1] = "    sh greet.sh NAME",
            Self::LanguageOpen => lines[line - 1] = include_str!("demo/work/languages.sh").trim_end(),
        }
        let mut changed = DemoFiles::from([(self.facts().file, lines.join("\n") + "\n")]);
        if self == Self::NameUnchecked {
            let tests = files.get("test_greet.sh").map_or("", String::as_str);
            changed.insert("test_greet.sh", format!("{tests}{}", include_str!("demo/work/test_no_name.sh")));
        }
        changed
    }
}

/// The number of the first line that equals `wanted`.
fn find_line(text: &str, wanted: &str) -> Option<usize> {
    text.lines().position(|line| line == wanted).map(|index| index + 1)
}
