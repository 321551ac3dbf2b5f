//! What runs a program that is a script: the script is there, and yet cannot be started, where that is not.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::{Program, Version, look_for, version};
use crate::detect::{is_executable, is_installed};

/// No system reads more of a first line.
const FIRST_LINE: u64 = 256;

/// What runs a script, by its first line: a path, or a name where `env` looks for it. None for what needs nobody.
fn interpreter(program: &Path) -> Option<String> {
    let mut start = Vec::new();
    File::open(program).ok()?.take(FIRST_LINE).read_to_end(&mut start).ok()?;
    let line = start.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let line = str::from_utf8(line).ok()?;
    let mut words = line.split_whitespace();
    let path = words.next()?;
    let is_env = Path::new(path).file_name().is_some_and(|name| name == "env");
    let named = words.find(|word| !word.starts_with('-') && !word.contains('='));
    Some(named.filter(|_| is_env).unwrap_or(path).to_owned())
}

/// What a script is run by, if that is not there.
pub fn missing(program: &Path) -> Option<String> {
    let interpreter = interpreter(program)?;
    let there = if interpreter.contains('/') {
        is_executable(Path::new(&interpreter))
    } else {
        is_installed(&interpreter)
    };
    (!there).then_some(interpreter)
}

/// The least version of Node.js that a script of an npm package wants, and the one that would run it.
pub fn wants_node(program: &Path) -> Option<(Version, PathBuf)> {
    let interpreter = interpreter(program).filter(|name| Path::new(name).ends_with("node"))?;
    let least = version::least_node(program)?;
    match look_for(&interpreter, Path::new("/")) {
        Program::Startable(node) => Some((least, node)),
        Program::Uninterpreted { .. } | Program::NotExecutable(_) | Program::Missing => None,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_first_line_of_a_script_names_what_runs_it() {
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
        assert_eq!(missing(&script).as_deref(), Some("no-such-program"));
        fs::write(&script, "#!/bin/sh\n").unwrap();
        assert_eq!(missing(&script), None);
        assert_eq!(missing(&place.path().join("nothing")), None);
    }
}
