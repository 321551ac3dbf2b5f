//! Runs the examples in documentation.
//!
//! A `console` fence contains commands after `$ `, their continuation lines after `> `, and the output below each
//! command. A fence with `file=NAME` in its info string is written to that file first. All fences of a document share
//! one working directory, from top to bottom; `cd` affects the commands after it. Fences in HTML comments run, too:
//! there a document can prepare what its readers need not see.
//!
//! Values that differ on each run — commit ids, dates, times, durations — are not compared: see [`volatile`].

mod fence;
mod volatile;

use volatile::lines_match;

pub use fence::{MarkdownBlock, MarkdownFence, blocks};

use crate::TestEnv;

/// One part of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
enum DocumentPart<'a> {
    /// Text that is kept unchanged.
    Text(&'a str),
    /// A file for the examples.
    File { name: &'a str, body: Vec<&'a str> },
    /// Commands with their output.
    Console(Vec<&'a str>),
}

/// Runs all examples and returns the document with their actual output.
///
/// The result equals `document` if all examples are up to date.
pub fn replay(document: &str, env: &TestEnv) -> String {
    let mut session = ExampleSession { env, directory: String::new() };
    let mut replayed = String::new();
    for part in parts(document) {
        match part {
            DocumentPart::Text(line) => push_line(&mut replayed, line),
            DocumentPart::File { name, body } => {
                let body: String = body.iter().flat_map(|line| [line, "\n"]).collect();
                session.write(name, &body);
                replayed.push_str(&body);
            }
            DocumentPart::Console(lines) => replayed.push_str(&replay_console(&lines, &mut session)),
        }
    }
    replayed
}

fn replay_console(lines: &[&str], session: &mut ExampleSession<'_>) -> String {
    let mut replayed = String::new();
    let mut lines = lines.iter().copied().peekable();
    while let Some(line) = lines.next() {
        let Some(first) = line.strip_prefix("$ ") else { continue };
        push_line(&mut replayed, line);
        let mut script = first.to_owned();
        while let Some(more) = lines.peek().and_then(|line| line.strip_prefix('>')) {
            script.push('\n');
            script.push_str(more.strip_prefix(' ').unwrap_or(more));
            push_line(&mut replayed, lines.next().unwrap_or(""));
        }
        let mut shown = Vec::new();
        while let Some(line) = lines.next_if(|line| !line.starts_with("$ ")) {
            shown.push(line);
        }
        replayed.push_str(&merge_volatile(&session.run(&script), &shown));
    }
    replayed
}

/// The actual output, with the document's line wherever only volatile values differ.
fn merge_volatile(printed: &str, shown: &[&str]) -> String {
    let shown = shown.iter().map(Some).chain(std::iter::repeat(None));
    let mut text = String::new();
    for (line, shown) in printed.lines().zip(shown) {
        push_line(&mut text, shown.filter(|shown| lines_match(shown, line)).unwrap_or(&line));
    }
    text
}

/// The shell session of one document.
struct ExampleSession<'a> {
    env: &'a TestEnv,
    /// The current directory, relative to the first command's.
    directory: String,
}

impl ExampleSession<'_> {
    fn write(&self, name: &str, body: &str) {
        self.env.write(&format!("./{}/{name}", self.directory), body);
    }

    /// Runs a command and returns its stdout and stderr.
    fn run(&mut self, script: &str) -> String {
        let printed = self.env.shell(&format!(
            "exec 2>&1\ntop=$PWD\ncd './{}'\ntrap 'echo; echo \"{DIRECTORY_MARKER}${{PWD#\"$top\"}}\"' EXIT\n{script}",
            self.directory
        ));
        let (printed, place) = printed.stdout.rsplit_once(DIRECTORY_MARKER).unwrap_or((&printed.stdout, ""));
        self.directory = place.trim_end().to_owned();
        let printed = printed.strip_suffix('\n').unwrap_or(printed);
        printed.replace("[ROOT]/work", DOCUMENTED_HOME)
    }
}

/// Precedes the final directory in a command's output.
const DIRECTORY_MARKER: &str = "[now in] ";

/// The name of the working directory in documents.
const DOCUMENTED_HOME: &str = "/home/ann";

fn parts(document: &str) -> Vec<DocumentPart<'_>> {
    let mut parts = Vec::new();
    for block in blocks(document) {
        match block {
            MarkdownBlock::Line(line) => parts.push(DocumentPart::Text(line)),
            MarkdownBlock::Fence(fence) => {
                parts.push(DocumentPart::Text(fence.opening));
                let closing = fence.closing;
                parts.extend(fence_parts(fence));
                parts.extend(closing.map(DocumentPart::Text));
            }
        }
    }
    parts
}

fn fence_parts(fence: MarkdownFence<'_>) -> Vec<DocumentPart<'_>> {
    if let Some(name) = fence.file() {
        vec![DocumentPart::File { name, body: fence.body }]
    } else if fence.language() == "console" {
        vec![DocumentPart::Console(fence.body)]
    } else {
        fence.body.into_iter().map(DocumentPart::Text).collect()
    }
}

fn push_line(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = "\
Some words.

```text file=greeting.txt
hello
```

```console
$ cat greeting.txt
stale
lines
$ cat <<'END'
> one
> two
> END
$ false; echo \"exit $?\"
```

```rust
$ not run
```
";

    #[test]
    fn the_directory_persists_and_volatile_values_are_ignored() {
        let document = "```console\n$ mkdir -p a/b; cd a/b\n$ pwd; printf 3ms\n/home/ann/a/b\n12ms\n```\n";
        let env = TestEnv::new("/nonexistent/signoff");
        assert_eq!(replay(document, &env), document);
        let other = document.replace("12ms", "twelve");
        assert_eq!(replay(&other, &env), document.replace("12ms", "3ms"));
    }

    #[test]
    fn output_is_replaced_and_other_text_is_kept() {
        let env = TestEnv::new("/nonexistent/signoff");
        let replayed = replay(DOCUMENT, &env);
        assert_eq!(
            replayed,
            DOCUMENT
                .replace("stale\nlines\n", "hello\n")
                .replace("> END\n", "> END\none\ntwo\n")
                .replace("?\"\n", "?\"\nexit 1\n")
        );
        assert_eq!(replay(&replayed, &TestEnv::new("/nonexistent/signoff")), replayed);
    }
}
