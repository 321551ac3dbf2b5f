//! Rules for names, words and parameters in the files of the workspace. `scripts/check` runs them after every change.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Command;

use signoff_testkit::source_code::{
    FunctionItem, ItemVisibility, SourceFile, SourceText, workspace_files, workspace_root,
};

/// Words that hide the subject of a sentence.
const VAGUE_WORDS: [&str; 6] = ["whoever", "somebody", "nobody", "told", "heard", "wish"];

/// Strings with such a word that are serialized, and the files that may contain them.
const SERIALIZED: [(&str, &str); 5] = [
    ("crates/signoff-core/src/sandbox.rs", "nobody"),
    ("crates/signoff-engine/src/process/attempt_dir.rs", "heard.json"),
    ("crates/signoff-term/src/agents.rs", "nobody"),
    ("crates/signoff-term/src/json.rs", "nobody"),
    ("crates/signoff-term/src/show/attempt.rs", "nobody"),
];

/// Recorded answers, and files that earlier versions wrote.
const RECORDED: [&str; 4] =
    ["testdata/contracts/", "testdata/databases/", "testdata/projects/", "crates/signoff-engine/testdata/"];

/// The first vague word of a text or an identifier.
fn vague_word(text: &str) -> Option<&str> {
    text.split(|letter: char| !letter.is_alphanumeric()).flat_map(camel_case_words).find(|word| {
        let word = word.to_lowercase();
        VAGUE_WORDS.contains(&word.as_str())
    })
}

/// `FirstSecond` as its two words.
fn camel_case_words(name: &str) -> impl Iterator<Item = &str> {
    let is_start = |at: &usize| {
        name[..*at].ends_with(|before: char| !before.is_uppercase()) && name[*at..].starts_with(char::is_uppercase)
    };
    let mut starts: Vec<usize> = name.char_indices().map(|(at, _)| at).filter(is_start).collect();
    starts.insert(0, 0);
    let ends: Vec<usize> = starts.iter().copied().skip(1).chain([name.len()]).collect();
    starts.into_iter().zip(ends).map(|(start, end)| &name[start..end])
}

#[test]
fn vague_words_are_found_within_names() {
    let found = ["of_nobody", "isTold", "NOBODY", "Somebody else", "told_after", "who\nheard it"].map(vague_word);
    assert_eq!(found, ["nobody", "Told", "NOBODY", "Somebody", "told", "heard"].map(Some));
    assert_eq!(["wishes", "untold", "anybody", "", "Überheard"].map(vague_word), [None; 5]);
}

/// Each text with a vague word, with its place.
fn vague_texts<'a>(path: &str, texts: impl IntoIterator<Item = &'a SourceText>) -> Vec<String> {
    let vague = texts.into_iter().filter(|text| vague_word(&text.text).is_some());
    vague.map(|text| format!("{path}:{}: a vague word: {}", text.line, text.text.trim())).collect()
}

/// Commands about a task or a run. `view::inbox` decides which one to type next, and `Action` spells it.
const TASK_COMMANDS: [&str; 10] =
    ["work", "retry", "answer", "edit", "land", "merge", "show", "review", "improve", "cancel"];

/// Files that spell such commands themselves: they name no task, or explain an error of git. The list only gets shorter.
const SPELLED_BY_HAND: [&str; 5] = [
    "signoff-engine/src/dispatcher/run_stages.rs",
    "signoff-engine/src/landing/run_branch.rs",
    "signoff-term/src/inbox.rs",
    "signoff/src/command/dispute.rs",
    "signoff/src/command/run/resume.rs",
];

/// Files that format commands by hand and are not listed, and listed files that no longer do.
fn commands_by_hand(files: &[SourceFile]) -> Vec<String> {
    let is_command = |rest: &str| {
        let word = rest.split(|letter: char| !letter.is_ascii_lowercase() && letter != '-').next();
        word.is_some_and(|word| TASK_COMMANDS.contains(&word))
    };
    let spells =
        |string: &SourceText| !string.text.contains("Example") && string.text.split("signoff ").skip(1).any(is_command);
    let apart = ["crates/signoff-core/src/view/inbox", "crates/signoff-testkit/", "crates/signoff/src/error.rs"];
    let is_apart = |path: &str| apart.iter().any(|prefix| path.starts_with(prefix));
    let product = files.iter().filter(|file| file.is_product() && !is_apart(&file.path));
    let by_hand: BTreeSet<&str> =
        product.filter(|file| file.strings.iter().any(spells)).map(|file| file.path.as_str()).collect();
    let listed: Vec<String> = SPELLED_BY_HAND.iter().map(|path| format!("crates/{path}")).collect();
    let listed: BTreeSet<&str> = listed.iter().map(String::as_str).collect();
    let differs = by_hand.symmetric_difference(&listed);
    differs.map(|path| format!("{path}: use `Action` or `NextStep`, and drop the file from SPELLED_BY_HAND")).collect()
}

/// All rules are one test, since parsing all files takes seconds. It fails with all places at once.
#[test]
fn source_files_follow_the_rules() {
    let files = workspace_files();
    let broken = files.iter().flat_map(broken_rules).chain(shared_names(&files));
    let broken: Vec<String> = broken.chain(commands_by_hand(&files)).collect();
    assert!(broken.is_empty(), "\n{}", broken.join("\n"));
}

fn broken_rules(file: &SourceFile) -> Vec<String> {
    let (path, is_product) = (&file.path, file.is_product());
    let is_serialized = |text: &str| SERIALIZED.contains(&(path.as_str(), text));
    let strings = file.strings.iter().filter(|string| is_product && !is_serialized(&string.text));
    let mut broken = vague_texts(path, file.comments.iter().chain(strings).chain(&file.identifiers));
    broken.extend(vague_word(path).map(|word| format!("{path}: a path with the vague word {word}")));
    if !file.has_module_doc {
        broken.push(format!("{path}: does not start with a `//!` line"));
    }
    let modules = file.undocumented_modules.iter();
    broken.extend(modules.map(|one| format!("{path}:{}: module `{}` has no doc comment", one.line, one.text)));
    let functions = file.functions.iter().filter(|_| is_product);
    broken.extend(functions.filter_map(broken_signature).map(|problem| format!("{path}:{problem}")));
    broken
}

/// A function has at most five parameters. A tuple has no names: unrelated values are separate parameters, related values
/// are fields of a struct.
fn broken_signature(function: &FunctionItem) -> Option<String> {
    let (name, line) = (&function.name, function.lines.start());
    let (parameters, tuples) = (function.parameters, function.tuple_parameters);
    (parameters > 5 || tuples > 0).then(|| {
        format!("{line}: `{name}` has {parameters} parameters (at most 5), and {tuples} of them are tuples (at most 0)")
    })
}

/// Types that other modules can name, public, `pub(crate)` or `pub(super)`, have unique names.
fn shared_names(files: &[SourceFile]) -> Vec<String> {
    let mut places: BTreeMap<String, String> = BTreeMap::new();
    let mut shared = Vec::new();
    for file in files.iter().filter(|file| file.is_product() && !file.is_wire()) {
        let public = file.types.iter().filter(|item| item.visibility != ItemVisibility::Private);
        for item in public.filter(|item| item.name != "Args") {
            let place = format!("{}:{}", file.path, item.line);
            let other = places.insert(item.name.clone(), place.clone());
            shared.extend(other.map(|other| format!("{place}: the type `{}` is also defined at {other}", item.name)));
        }
    }
    shared
}

/// Whether a file is a document, a prompt, a preset, a script, a migration, a setting or a file of the page.
fn is_prose(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let is_script = !name.contains('.');
    let extension = name.rsplit('.').next().unwrap_or_default();
    let is_known = ["md", "toml", "sql", "js", "css", "sh", "svg", "html"].contains(&extension);
    (is_script || is_known) && !RECORDED.iter().any(|recorded| path.starts_with(recorded))
}

#[expect(clippy::disallowed_methods, reason = "git knows the files of the workspace")]
fn listed_files() -> String {
    let mut git = Command::new("git");
    git.args(["ls-files", "--cached", "--others", "--exclude-standard"]).current_dir(workspace_root());
    let listed = git.output().expect("git lists the files");
    String::from_utf8(listed.stdout).expect("paths in UTF-8")
}

#[test]
fn documents_and_scripts_name_their_subject() {
    let mut found = Vec::new();
    let mut count = 0;
    for path in listed_files().lines().filter(|path| is_prose(path)) {
        // A deleted file is listed until the deletion is staged.
        let Ok(text) = fs::read_to_string(workspace_root().join(path)) else { continue };
        count += 1;
        for (number, line) in text.lines().enumerate() {
            // In Markdown, code may contain serialized words.
            let is_markdown = path.ends_with(".md");
            let prose = if is_markdown { line.split('`').step_by(2).collect() } else { line.to_owned() };
            found.extend(vague_word(&prose).map(|_| format!("{path}:{}: {line}", number + 1)));
        }
    }
    assert!(count > 400, "only {count} files");
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}
