//! `file:line` in running text.

use std::ops::Range;

/// A place in the code, and where in the text it is named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub file: String,
    pub line: Option<u32>,
    pub range: Range<usize>,
}

/// Files people name without a directory or an ending.
const BARE_NAMES: [&str; 8] =
    ["Makefile", "Dockerfile", "Justfile", "Rakefile", "Gemfile", "Procfile", "Jenkinsfile", "Vagrantfile"];

/// Longer words are not paths; the bound also keeps the search linear.
const LONGEST: usize = 1024;

/// The first `file:line` in the text: a path, a colon, a number. Web addresses, times and ratios are none.
pub(super) fn find(text: &str) -> Option<Place> {
    let mut start = 0;
    for word in
        text.split_inclusive(|c: char| c.is_whitespace() || matches!(c, '`' | '|' | '"' | '\'' | '“' | '”'))
    {
        if let Some(place) = in_word(word, start) {
            return Some(place);
        }
        start += word.len();
    }
    None
}

fn in_word(word: &str, offset: usize) -> Option<Place> {
    const COLONS: usize = 4;
    if word.len() > LONGEST {
        return None;
    }
    let before = word.len() - word.trim_start_matches(['(', '[', '{', '<', '*', '_', '~']).len();
    word.match_indices(':').take(COLONS).find_map(|(colon, _)| {
        let path = word.get(before..colon)?;
        let start = before + path.rfind(']').filter(|_| !path.contains('[')).map_or(0, |at| at + 1);
        let file = &word[start..colon];
        let digits = word[colon + 1..].bytes().take_while(u8::is_ascii_digit).count();
        let number = &word[colon + 1..colon + 1 + digits];
        let rest = &word[colon + 1 + digits..];
        let ends = !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_' || c == '/');
        let end = colon + 1 + digits + suffix(rest);
        (digits > 0 && ends && is_path(file)).then(|| Place {
            file: file.to_owned(),
            line: number.parse().ok(),
            range: offset + start..offset + end,
        })
    })
}

/// The length of a column or a range of lines after the line: `:7`, `-12`, `:7-12`.
fn suffix(rest: &str) -> usize {
    let more = rest.bytes().take_while(|byte| byte.is_ascii_digit() || matches!(byte, b':' | b'-')).count();
    rest[..more].trim_end_matches([':', '-']).len()
}

fn is_path(word: &str) -> bool {
    let has_ending = word.rsplit_once('.').is_some_and(|(_, ending)| ending.starts_with(char::is_alphabetic));
    let has_directory = word.contains(['/', '\\']) && !word.contains("//");
    let named = word.contains(char::is_alphabetic) && !word.contains("//");
    named && (has_ending || has_directory || BARE_NAMES.contains(&word))
}

/// Reads a `location` field: `file:line` if it is one, else all of it is the file.
pub(super) fn of_location(location: &str) -> (Option<String>, Option<u32>) {
    let location = location.trim();
    if location.is_empty() {
        return (None, None);
    }
    match find(location) {
        Some(place) => (Some(place.file), place.line),
        None => (Some(location.to_owned()), None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(text: &str) -> String {
        find(text)
            .map_or("-".to_owned(), |place| format!("{} {:?} {}", place.file, place.line, &text[place.range]))
    }

    #[test]
    fn a_place_is_a_path_and_a_number() {
        let texts = [
            "src/auth.ts:45 Missing check",
            "in `src/auth.ts:45:7` there",
            "**lib.rs:3-9**: dead",
            "[src/a.rs:10](src/a.rs#L10)",
            "[Critical]src/a.rs:10",
            "app/[id]/page.tsx:3",
            r"C:\work\main.rs:12",
            "Makefile:3",
            "(src/ä/ö.rs:1)",
            "at 10:30 on http://localhost:8080/x and ratio 3:1, std::fmt:1",
            "127.0.0.1:80 Note:3 src/a.rs src/a.rs:10x",
            "src/a.rs:99999999999",
        ];
        let shown: Vec<_> = texts.iter().map(|text| named(text)).collect();
        insta::assert_snapshot!(shown.join("\n"), @r#"
    src/auth.ts Some(45) src/auth.ts:45
    src/auth.ts Some(45) src/auth.ts:45:7
    lib.rs Some(3) lib.rs:3-9
    src/a.rs Some(10) src/a.rs:10
    src/a.rs Some(10) src/a.rs:10
    app/[id]/page.tsx Some(3) app/[id]/page.tsx:3
    C:\work\main.rs Some(12) C:\work\main.rs:12
    Makefile Some(3) Makefile:3
    src/ä/ö.rs Some(1) src/ä/ö.rs:1
    -
    -
    src/a.rs None src/a.rs:99999999999
    "#);
    }
}
