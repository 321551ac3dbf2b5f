//! Every command in the documentation is run or parsed.
//!
//! Fences `console` are run, see [`crate::documentation`]; so are the lines of scripts and of CI systems'
//! files, see [`crate::documented_scripts`]. Commands within a sentence cannot be run: the shell and the program parse
//! them instead, so an unknown command or flag is found.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use signoff_testkit::TestEnv;
use signoff_testkit::console_example::{MarkdownBlock, MarkdownFence, blocks};

use crate::documentation::documents;
use crate::test_env;

/// Languages of fences that contain no commands.
const DATA: [&str; 5] = ["text", "toml", "json", "markdown", "xml"];

/// Placeholders in commands, each with a value for it.
const PLACEHOLDERS: [(&str, &str); 6] =
    [("ID", "1"), ("RUN", "1"), ("N", "1"), ("V", "APPROVED"), ("KEY=VALUE", "jobs=2"), ("NAME", "json")];

#[test]
fn no_fence_with_a_command_is_left_untested() {
    let env = test_env();
    for path in documents() {
        let document = fs::read_to_string(&path).unwrap();
        for block in blocks(&document) {
            match block {
                MarkdownBlock::Line(line) => {
                    assert!(!line.starts_with("    signoff "), "{}: make it a fence: {line}", path.display());
                }
                MarkdownBlock::Fence(fence) => check_fence(&path, &fence, &env),
            }
        }
    }
}

fn check_fence(path: &Path, fence: &MarkdownFence<'_>, env: &TestEnv) {
    let text = fence.body.join("\n");
    let place = format!("{}:\n{text}\n", path.display());
    match fence.language() {
        "console" => assert!(text.starts_with("$ "), "{place}no command"),
        "sh" => {
            env.write("script.sh", &text);
            assert_eq!(env.shell("sh -n script.sh 2>&1").stdout, "", "{place}");
        }
        "yaml" => {}
        language => {
            assert!(DATA.contains(&language), "{place}what is a fence `{language}`?");
            let command = |line: &&str| line.starts_with("$ ") || line.starts_with("signoff ");
            assert!(fence.file().is_some() || !fence.body.iter().any(command), "{place}make it a fence console");
        }
    }
}

/// The program parses the whole command, with `--help` appended.
#[test]
fn every_documented_command_and_flag_exists() {
    let env = test_env();
    let mut unknown = Vec::new();
    for (command, path) in named() {
        let output = env.shell(&format!("{} --help 2>&1 >/dev/null", filled_in(&command)));
        if !output.stdout.is_empty() {
            unknown.push(format!("{path}: {command}: {}", output.stdout.lines().next().unwrap_or("")));
        }
    }
    assert!(unknown.is_empty(), "{}", unknown.join("\n"));
}

#[test]
fn commands_are_found_in_scripts_files_of_ci_systems_and_sentences() {
    let document = "\
Type `signoff land --dry-run`, or `signoff
run --resume`. The branch `signoff/run-ID` and `signoff` alone are none.

```sh
signoff review --base main > review.sarif   # a comment
exec signoff add \"a; b\" && signoff work
```

```yaml
script:
  - signoff review --fail-on HIGH
# what signoff does here
```

```console
$ signoff status
```
";
    assert_eq!(
        commands(document),
        [
            "signoff review --base main",
            "signoff add \"a; b\"",
            "signoff work",
            "signoff review --fail-on HIGH",
            "signoff land --dry-run",
            "signoff run --resume"
        ]
    );
}

/// Every command that is not run as an example, once, with a document that names it.
fn named() -> BTreeMap<String, String> {
    let mut named = BTreeMap::new();
    for path in documents() {
        let document = fs::read_to_string(&path).unwrap();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        named.extend(commands(&document).into_iter().map(|command| (command, name.clone())));
    }
    named
}

fn commands(document: &str) -> Vec<String> {
    let mut commands = Vec::new();
    let mut prose = String::new();
    for block in blocks(document) {
        match block {
            MarkdownBlock::Line(line) => prose.extend([line, "\n"]),
            MarkdownBlock::Fence(fence) if ["sh", "yaml"].contains(&fence.language()) => {
                commands.extend(fence.body.iter().flat_map(|line| in_a_script(line)));
            }
            MarkdownBlock::Fence(_) => prose.push('\n'),
        }
    }
    commands.extend(prose.split("\n\n").flat_map(in_sentences));
    commands
}

/// Each `signoff` command with its arguments in a line of a script.
pub(crate) fn in_a_script(line: &str) -> Vec<String> {
    let places = line.match_indices("signoff ").map(|(place, _)| line.split_at(place));
    let begins = |before: &str| {
        let before = before.trim_end();
        before.is_empty() || [":", "-", "exec", "&&", ";", "!"].iter().any(|end| before.ends_with(end))
    };
    places.filter(|(before, _)| begins(before)).map(|(_, command)| first_command(command)).collect()
}

/// The text in backticks in a paragraph that begins with `signoff`.
fn in_sentences(paragraph: &str) -> Vec<String> {
    let spans = paragraph.split('`').skip(1).step_by(2);
    let spans = spans.map(|span| span.split_whitespace().collect::<Vec<_>>().join(" "));
    spans.filter(|span| span.starts_with("signoff ")).map(|span| first_command(&span)).collect()
}

/// The command without redirections, pipes and following commands.
fn first_command(text: &str) -> String {
    let mut quoted = false;
    let end = text.find(|c: char| {
        quoted ^= c == '"';
        !quoted && "|;&><#".contains(c)
    });
    text.get(..end.unwrap_or(text.len())).unwrap_or("").trim_end().to_owned()
}

/// The command with values instead of placeholders.
fn filled_in(command: &str) -> String {
    command.split(' ').map(value).collect::<Vec<_>>().join(" ")
}

fn value(word: &str) -> &str {
    PLACEHOLDERS.iter().find(|(name, _)| *name == word).map_or(word, |(_, value)| value)
}
