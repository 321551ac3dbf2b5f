//! Which of the lines that a program left tells why it ended.

/// So many lines may belong to an error.
const LINES: usize = 3;

/// What tells most: the last line that calls itself an error, with those that follow it; otherwise the last line. Lines
/// about where in the program it happened tell nothing.
pub fn telling(text: &str) -> Option<String> {
    const ERRORS: [&str; 5] = ["Error:", "error: ", "ERROR", "fatal: ", "panicked at "];
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let words: Vec<&str> = lines.iter().copied().filter(|line| !is_about_the_place(line)).collect();
    let is_error = |line: &&str| ERRORS.iter().any(|word| line.contains(word));
    match words.iter().rposition(is_error) {
        Some(at) => {
            Some(words[at..].iter().take(LINES).map(|line| unopened(line)).collect::<Vec<_>>().join(" "))
        }
        None => words.last().or(lines.last()).map(|line| (*line).to_owned()),
    }
}

/// What follows is the error as an object of the program.
fn unopened(line: &str) -> &str {
    line.strip_suffix(" {").unwrap_or(line)
}

/// A line of a stack, a bracket, a caret below a word, a member of an object, the version of who ran it.
fn is_about_the_place(line: &str) -> bool {
    let has_words = line.contains(|letter: char| letter.is_alphanumeric());
    let version = line.strip_prefix("Node.js v").or_else(|| line.strip_prefix("Bun v"));
    let is_version = version.is_some_and(|rest| rest.starts_with(|letter: char| letter.is_ascii_digit()));
    let is_stack = ["at ", "- /", "Require stack:"].iter().any(|start| line.starts_with(start));
    !has_words || is_stack || is_version || is_member(line)
}

/// `errno: -13,` within an object.
fn is_member(line: &str) -> bool {
    let Some((name, value)) = line.split_once(": ") else { return false };
    let is_name = name.chars().all(|letter| letter.is_alphanumeric() || letter == '_');
    let is_number = value.trim_end_matches(',').parse::<f64>().is_ok();
    is_name && (value.ends_with(',') || value.starts_with(['\'', '[', '{']) || is_number)
}

/// What a program wrote to stdout that is no line of JSON, if it wrote nothing to stderr: some complain there. `whole` says
/// whether this is all of stdout; otherwise its first line is the rest of one.
pub fn complaint(stderr: Vec<u8>, (stdout, whole): (&[u8], bool)) -> Vec<u8> {
    if !stderr.trim_ascii().is_empty() {
        return stderr;
    }
    let lines = stdout.split(|byte| *byte == b'\n').skip(usize::from(!whole));
    let plain = lines.filter(|line| !matches!(line.trim_ascii_start().first(), Some(b'{' | b'[') | None));
    plain.collect::<Vec<_>>().join(&b'\n')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_line_that_tells_why() {
        for (text, said) in [
            (
                "Failed to extract bundled package: Error: EACCES: permission denied, mkdir '~/.cache'\n    \
                 at async mkdir (node:internal/fs/promises:852:10)\n    at async ph (index.js:9:1) {\n  errno: -13,\n  \
                 code: 'EACCES',\n  syscall: 'mkdir',\n  path: '~/.cache'\n}\n",
                "Failed to extract bundled package: Error: EACCES: permission denied, mkdir '~/.cache'",
            ),
            (
                "file:///opt/agent/cli.js:27\nimport x from \"y\" with { type: \"json\" };\n                   ^^^^\n\n\
                 SyntaxError: Unexpected token 'with'\n    at ESMLoader.moduleStrategy (node:internal/x:119:18)\n\n\
                 Node.js v18.19.1\n",
                "SyntaxError: Unexpected token 'with'",
            ),
            (
                "node:internal/modules/cjs/loader:1143\n  throw err;\n  ^\n\nError: Cannot find module 'undici'\n\
                 Require stack:\n- /opt/agent/cli.js\n    at Module._load (node:internal/modules/cjs/loader:1)  {\n  \
                 code: 'MODULE_NOT_FOUND',\n  requireStack: [ '/opt/agent/cli.js' ]\n}\n\nNode.js v24.21.0\n",
                "Error: Cannot find module 'undici'",
            ),
            ("TypeError: fetch failed {\n  cause: 1\n}\n", "TypeError: fetch failed"),
            ("Starting\nfatal: not a repository\n", "fatal: not a repository"),
            (
                "error: unknown option '--x'\n(Did you mean --y?)\n",
                "error: unknown option '--x' (Did you mean --y?)",
            ),
            (
                "Error: Invalid configuration:\n\n  no such file: nope.json\n",
                "Error: Invalid configuration: no such file: nope.json",
            ),
            ("One\nTwo\n", "Two"),
            ("env: 'node': No such file or directory\n", "env: 'node': No such file or directory"),
            ("No saved session found with ID x\n}\n", "No saved session found with ID x"),
            ("  }\n", "}"),
        ] {
            assert_eq!(telling(text).as_deref(), Some(said), "{text}");
        }
        assert_eq!(telling(" \n\n"), None);
    }

    #[test]
    fn who_says_nothing_on_stderr_may_have_said_it_on_stdout() {
        let told = |stderr: &str, stdout: &str, whole| {
            String::from_utf8(complaint(stderr.into(), (stdout.as_bytes(), whole))).unwrap()
        };
        assert_eq!(told("no\n", "yes\n", true), "no\n");
        assert_eq!(told(" \n", "{\"type\":\"x\"}\nPlease log in.\n  {\"cut\":", true), "Please log in.");
        assert_eq!(told("", "rest\"}\nPlease log in.\n", false), "Please log in.");
        assert_eq!(told("", "", true), "");
    }

    proptest! {
        #[test]
        fn any_text(text in ".*", stdout: Vec<u8>, whole: bool) {
            prop_assert_eq!(telling(&text).is_none(), text.trim().is_empty());
            complaint(Vec::new(), (&stdout, whole));
        }
    }
}
