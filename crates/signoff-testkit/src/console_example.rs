//! Examples in documentation that are run as they stand.
//!
//! A fence `console` holds commands behind `$ `, their further lines behind `> `, and below each command what
//! it prints. A fence whose info string has `file=NAME` is written to that file first. All fences of one
//! document share one working directory, from top to bottom.

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
    let mut replayed = String::new();
    for part in parts(document) {
        match part {
            Part::Text(line) => push_line(&mut replayed, line),
            Part::File { name, body } => {
                let body: String = body.iter().flat_map(|line| [line, "\n"]).collect();
                env.write(name, &body);
                replayed.push_str(&body);
            }
            Part::Console(lines) => replayed.push_str(&replay_console(&lines, env)),
        }
    }
    replayed
}

fn replay_console(lines: &[&str], env: &TestEnv) -> String {
    let mut replayed = String::new();
    let mut lines = lines.iter().peekable();
    while let Some(line) = lines.next() {
        let Some(first) = line.strip_prefix("$ ") else { continue };
        push_line(&mut replayed, line);
        let mut script = first.to_owned();
        while let Some(more) = lines.peek().and_then(|line| line.strip_prefix('>')) {
            script.push('\n');
            script.push_str(more.strip_prefix(' ').unwrap_or(more));
            push_line(&mut replayed, lines.next().unwrap_or(&""));
        }
        replayed.push_str(&env.shell(&format!("exec 2>&1\n{script}")).stdout);
    }
    replayed
}

fn parts(document: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let mut lines = document.lines();
    while let Some(line) = lines.next() {
        parts.push(Part::Text(line));
        let Some((fence, info)) = opening(line) else { continue };
        let mut body = Vec::new();
        let mut closing = None;
        for line in lines.by_ref() {
            if line.trim_end() == fence {
                closing = Some(line);
                break;
            }
            body.push(line);
        }
        parts.extend(inside(info, body));
        parts.extend(closing.map(Part::Text));
    }
    parts
}

fn inside<'a>(info: &'a str, body: Vec<&'a str>) -> Vec<Part<'a>> {
    if let Some(name) = info.split_whitespace().find_map(|word| word.strip_prefix("file=")) {
        vec![Part::File { name, body }]
    } else if info.split_whitespace().next() == Some("console") {
        vec![Part::Console(body)]
    } else {
        body.into_iter().map(Part::Text).collect()
    }
}

/// The backticks of a fence at the start of a line, and what follows them.
fn opening(line: &str) -> Option<(&str, &str)> {
    let info = line.trim_start_matches('`');
    let fence = line.strip_suffix(info)?;
    (fence.len() >= 3).then_some((fence, info))
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
