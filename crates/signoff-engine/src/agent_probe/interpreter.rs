//! The interpreter of a script, without which the script cannot be started.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::{AgentVersion, ProgramStatus, find_program, version};
use crate::detect::{is_executable, is_installed};

/// Maximum length of a first line that systems read.
const MAX_FIRST_LINE: u64 = 256;

/// The interpreter in a script's first line: a path, or a name that `env` searches. `None` if it is not a script.
fn interpreter(program: &Path) -> Option<String> {
    let mut start = Vec::new();
    File::open(program).ok()?.take(MAX_FIRST_LINE).read_to_end(&mut start).ok()?;
    let line = start.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let line = str::from_utf8(line).ok()?;
    let mut words = line.split_whitespace();
    let path = words.next()?;
    let is_env = Path::new(path).file_name().is_some_and(|name| name == "env");
    let named = words.find(|word| !word.starts_with('-') && !word.contains('='));
    Some(named.filter(|_| is_env).unwrap_or(path).to_owned())
}

/// The interpreter of a script, if it is not installed.
pub fn missing_interpreter(program: &Path) -> Option<String> {
    let interpreter = interpreter(program)?;
    let there =
        if interpreter.contains('/') { is_executable(Path::new(&interpreter)) } else { is_installed(&interpreter) };
    (!there).then_some(interpreter)
}

/// The minimum Node.js version of an npm package's script, and the Node.js that would run it.
pub fn required_node(program: &Path) -> Option<(AgentVersion, PathBuf)> {
    let interpreter = interpreter(program).filter(|name| Path::new(name).ends_with("node"))?;
    let least = version::min_node_version(program)?;
    match find_program(&interpreter, Path::new("/")) {
        ProgramStatus::Startable(node) => Some((least, node)),
        ProgramStatus::MissingInterpreter { .. } | ProgramStatus::NotExecutable(_) | ProgramStatus::Missing => None,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_shebang_names_the_interpreter() {
        let place = tempfile::tempdir().unwrap();
        let run_by = |text: &str| {
            let file = place.path().join("program");
            fs::write(&file, text).unwrap();
            interpreter(&file)
        };
        for (text, name) in [
            ("#!/usr/bin/env node\nx", Some("node")),
            ("#!/usr/bin/env -S node --no-warnings=DEP0040\n", Some("node")),
            ("#!/usr/bin/env -S FORCE=1 node\n", Some("node")),
            ("#! /bin/sh -e\n", Some("/bin/sh")),
            ("#!/usr/bin/python3", Some("/usr/bin/python3")),
            ("#!/usr/bin/env\n", Some("/usr/bin/env")),
            ("#!\n", None),
            ("\u{7f}ELF", None),
            ("", None),
        ] {
            assert_eq!(run_by(text).as_deref(), name, "{text}");
        }
        let script = place.path().join("program");
        fs::write(&script, "#!/usr/bin/env no-such-program\n").unwrap();
        assert_eq!(missing_interpreter(&script).as_deref(), Some("no-such-program"));
        fs::write(&script, "#!/bin/sh\n").unwrap();
        assert_eq!(missing_interpreter(&script), None);
        assert_eq!(missing_interpreter(&place.path().join("nothing")), None);
    }
}
