//! Examples in documentation that are run as they stand.
//!
//! A fence `console` holds commands behind `$ `, their further lines behind `> `, and below each command what
//! it prints. A fence whose info string has `file=NAME` is written to that file first. All fences of one
//! document share one working directory, from top to bottom; `cd` holds for the commands after it. A fence
//! within an HTML comment is run, too: that is where a document prepares what its reader need not see.
//!
//! What differs each time — commit ids, dates, times, durations — is not compared: see [`volatile`].

mod fence;
mod volatile;

use volatile::is_same;

pub use fence::{Block, Fence, blocks};

use crate::TestEnv;

/// One part of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Part<'a> {
    /// Text that is kept as it is.
    Text(&'a str),
    /// A file the examples work on.
    File { name: &'a str, body: Vec<&'a str> },
    /// Commands with what they print.
    Console(Vec<&'a str>),
}

/// The document as it would be if every example printed what it prints today.
///
/// Equal to `document` exactly if all its examples are true.
pub fn replay(document: &str, env: &TestEnv) -> String {
    let mut session = Session { env, directory: String::new() };
    let mut replayed = String::new();
    for part in parts(document) {
        match part {
            Part::Text(line) => push_line(&mut replayed, line),
            Part::File { name, body } => {
                let body: String = body.iter().flat_map(|line| [line, "\n"]).collect();
                session.write(name, &body);
                replayed.push_str(&body);
            }
            Part::Console(lines) => replayed.push_str(&replay_console(&lines, &mut session)),
        }
    }
    replayed
}

fn replay_console(lines: &[&str], session: &mut Session<'_>) -> String {
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
        replayed.push_str(&as_shown(&session.run(&script), &shown));
    }
    replayed
}

/// What was printed, in the words of the document wherever only the volatile differs.
fn as_shown(printed: &str, shown: &[&str]) -> String {
    let shown = shown.iter().map(Some).chain(std::iter::repeat(None));
    let mut text = String::new();
    for (line, shown) in printed.lines().zip(shown) {
        push_line(&mut text, shown.filter(|shown| is_same(shown, line)).unwrap_or(&line));
    }
    text
}

/// The commands of one document, one after the other.
struct Session<'a> {
    env: &'a TestEnv,
    /// Where the last command ended up, below the first one's directory.
    directory: String,
}

impl Session<'_> {
    fn write(&self, name: &str, body: &str) {
        self.env.write(&format!("./{}/{name}", self.directory), body);
    }

    /// What a command prints, to wherever.
    fn run(&mut self, script: &str) -> String {
        let printed = self.env.shell(&format!(
            "exec 2>&1\ntop=$PWD\ncd './{}'\ntrap 'echo; echo \"{MARK}${{PWD#\"$top\"}}\"' EXIT\n{script}",
            self.directory
        ));
        let (printed, place) = printed.stdout.rsplit_once(MARK).unwrap_or((&printed.stdout, ""));
        self.directory = place.trim_end().to_owned();
        let printed = printed.strip_suffix('\n').unwrap_or(printed);
        printed.replace("[ROOT]/work", HOME)
    }
}

/// Before the directory that a command ended up in.
const MARK: &str = "[now in] ";

/// How documents call the directory that the first command runs in.
const HOME: &str = "/home/ann";

fn parts(document: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    for block in blocks(document) {
        match block {
            Block::Line(line) => parts.push(Part::Text(line)),
            Block::Fence(fence) => {
                parts.push(Part::Text(fence.opening));
                let closing = fence.closing;
                parts.extend(inside(fence));
                parts.extend(closing.map(Part::Text));
            }
        }
    }
    parts
}

fn inside(fence: Fence<'_>) -> Vec<Part<'_>> {
    if let Some(name) = fence.file() {
        vec![Part::File { name, body: fence.body }]
    } else if fence.language() == "console" {
        vec![Part::Console(fence.body)]
    } else {
        fence.body.into_iter().map(Part::Text).collect()
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
    fn a_directory_is_kept_and_what_differs_each_time_is_not_compared() {
        let document = "```console\n$ mkdir -p a/b; cd a/b\n$ pwd; printf 3ms\n/home/ann/a/b\n12ms\n```\n";
        let env = TestEnv::new("/nonexistent/signoff");
        assert_eq!(replay(document, &env), document);
        let other = document.replace("12ms", "twelve");
        assert_eq!(replay(&other, &env), document.replace("12ms", "3ms"));
    }

    #[test]
    fn examples_are_replaced_by_what_they_print_and_all_else_is_kept() {
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
