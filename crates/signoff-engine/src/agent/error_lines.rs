//! Finds the lines of a program's output that explain why it failed.

/// Maximum number of lines of an error.
const MAX_LINES: usize = 3;

/// The last line that looks like an error, with the lines that follow it, or else the last line. Skips lines
/// about the location in the program.
pub fn find_error(text: &str) -> Option<String> {
    const ERRORS: [&str; 5] = ["Error:", "error: ", "ERROR", "fatal: ", "panicked at "];
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let messages: Vec<&str> = lines.iter().copied().filter(|line| !is_location(line)).collect();
    let is_error = |line: &&str| ERRORS.iter().any(|word| line.contains(word));
    match messages.iter().rposition(is_error) {
        Some(at) => {
            Some(messages[at..].iter().take(MAX_LINES).map(|line| strip_brace(line)).collect::<Vec<_>>().join(" "))
        }
        None => messages.last().or(lines.last()).map(|line| (*line).to_owned()),
    }
}

/// Removes the opening brace of a printed error object.
fn strip_brace(line: &str) -> &str {
    line.strip_suffix(" {").unwrap_or(line)
}

/// Whether a line is a stack frame, a bracket, a caret, a member of an object, or a runtime's version.
fn is_location(line: &str) -> bool {
    let has_words = line.contains(|letter: char| letter.is_alphanumeric());
    let version = line.strip_prefix("Node.js v").or_else(|| line.strip_prefix("Bun v"));
    let is_version = version.is_some_and(|rest| rest.starts_with(|letter: char| letter.is_ascii_digit()));
    let is_stack = ["at ", "- /", "Require stack:"].iter().any(|start| line.starts_with(start));
    !has_words || is_stack || is_version || is_member(line)
}

/// Whether a line is a member of an object, such as `errno: -13,`.
fn is_member(line: &str) -> bool {
    let Some((name, value)) = line.split_once(": ") else { return false };
    let is_name = name.chars().all(|letter| letter.is_alphanumeric() || letter == '_');
    let is_number = value.trim_end_matches(',').parse::<f64>().is_ok();
    is_name && (value.ends_with(',') || value.starts_with(['\'', '[', '{']) || is_number)
}

/// Stderr, or if it is empty the lines of stdout that are not JSON, because some programs print errors there.
/// `whole` says whether `stdout` is complete; otherwise its first line is a partial one.
pub fn error_output(stderr: Vec<u8>, (stdout, is_complete): (&[u8], bool)) -> Vec<u8> {
    if !stderr.trim_ascii().is_empty() {
        return stderr;
    }
    let lines = stdout.split(|byte| *byte == b'\n').skip(usize::from(!is_complete));
    let plain = lines.filter(|line| !matches!(line.trim_ascii_start().first(), Some(b'{' | b'[') | None));
    plain.collect::<Vec<_>>().join(&b'\n')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_line_with_the_error_is_found() {
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
            ("error: unknown option '--x'\n(Did you mean --y?)\n", "error: unknown option '--x' (Did you mean --y?)"),
            (
                "Error: Invalid configuration:\n\n  no such file: nope.json\n",
                "Error: Invalid configuration: no such file: nope.json",
            ),
            ("One\nTwo\n", "Two"),
            ("env: 'node': No such file or directory\n", "env: 'node': No such file or directory"),
            ("No saved session found with ID x\n}\n", "No saved session found with ID x"),
            ("  }\n", "}"),
        ] {
            assert_eq!(find_error(text).as_deref(), Some(said), "{text}");
        }
        assert_eq!(find_error(" \n\n"), None);
    }

    #[test]
    fn without_stderr_the_error_is_read_from_stdout() {
        let output = |stderr: &str, stdout: &str, whole| {
            String::from_utf8(error_output(stderr.into(), (stdout.as_bytes(), whole))).unwrap()
        };
        assert_eq!(output("no\n", "yes\n", true), "no\n");
        assert_eq!(output(" \n", "{\"type\":\"x\"}\nPlease log in.\n  {\"cut\":", true), "Please log in.");
        assert_eq!(output("", "rest\"}\nPlease log in.\n", false), "Please log in.");
        assert_eq!(output("", "", true), "");
    }

    proptest! {
        #[test]
        fn any_text(text in ".*", stdout: Vec<u8>, whole: bool) {
            prop_assert_eq!(find_error(&text).is_none(), text.trim().is_empty());
            error_output(Vec::new(), (&stdout, whole));
        }
    }
}
