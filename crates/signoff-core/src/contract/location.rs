//! Finds `file:line` locations in text.

use std::ops::Range;

/// A code location, and where the text mentions it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LocationMention {
    pub file: String,
    pub line: Option<u32>,
    pub range: Range<usize>,
}

/// Files that are usually named without a directory or extension.
const BARE_NAMES: &str = "Makefile makefile GNUmakefile Dockerfile Containerfile Justfile justfile Rakefile \
    Gemfile Procfile Jenkinsfile Vagrantfile Brewfile Podfile Pipfile Fastfile Caddyfile Tiltfile Snakefile LICENSE \
    LICENCE COPYING NOTICE README CHANGELOG CONTRIBUTING AUTHORS CODEOWNERS VERSION BUILD WORKSPACE PKGBUILD";

/// Top-level domains: `example.com:443` is not a location.
const DOMAINS: &str = "com org net edu gov io dev cloud local localhost internal";

/// Maximum lengths. Longer words are not paths, and the limits keep the search linear.
const MAX_PATH_BYTES: usize = 1024;
const ANCHORS: usize = 8;

/// The first location in the text: a path followed by `:45`, `:L45`, `#L45`, `(line 45)` or `, line 45`, with any
/// quotes, bold or link around it. URLs, times and ratios are not locations.
pub(super) fn find(text: &str) -> Option<LocationMention> {
    let mut start = 0;
    for word in text.split_inclusive(|c: char| c.is_whitespace() || c == '|') {
        let end = start + word.len();
        let bare = word.trim_end_matches(|c: char| c.is_whitespace() || c == '|');
        if (1..=MAX_PATH_BYTES).contains(&bare.len())
            && let Some(location) =
                in_word(bare, start).or_else(|| with_trailing_line(bare, start, &text[start + bare.len()..]))
        {
            return Some(location);
        }
        start = end;
    }
    None
}

fn in_word(word: &str, offset: usize) -> Option<LocationMention> {
    word.match_indices([':', '#']).take(ANCHORS).find_map(|(at, sign)| {
        let after = &word[at + 1..];
        let number = after.strip_prefix('L').or((sign == ":").then_some(after))?;
        let digits = number.bytes().take_while(u8::is_ascii_digit).count();
        let rest = &number[digits..];
        let path = path_in(&word[..at])?;
        let ends = !rest.starts_with(|c: char| c.is_alphanumeric() || c == '/');
        // `_a.rs:1_` is emphasis, `_a.rs:1` a file name.
        let emphasis =
            if rest.starts_with('_') { word[path.clone()].trim_start_matches('_') } else { &word[path.clone()] };
        let start = path.end - emphasis.len();
        let file = &word[start..path.end];
        let end = word.len() - rest.len() + suffix(rest);
        (digits > 0 && ends && is_path(file)).then(|| {
            let whole = expand_to_link(word, start..end);
            LocationMention {
                file: linked(&word[whole.clone()], file).unwrap_or(file).to_owned(),
                line: number[..digits].parse().ok(),
                range: offset + whole.start..offset + whole.end,
            }
        })
    })
}

/// The path at the end of `head`, without the quotes, brackets, escape sequences and tags around it.
fn path_in(head: &str) -> Option<Range<usize>> {
    const LAYERS: usize = 4;
    let mut range = 0..head.len();
    for _ in 0..LAYERS {
        range.end = range.start + head[range.clone()].trim_end_matches(is_mark).len();
        let inside = &head[range.clone()];
        let Some(open) = inside.strip_suffix([')', ']']).and_then(|open| open.rfind(['(', '['])) else {
            break;
        };
        range = range.start + open + 1..range.end - 1;
    }
    let inside = &head[range.clone()];
    let start = range.start + path_start(inside);
    (start < range.end).then_some(start..range.end)
}

fn is_mark(c: char) -> bool {
    matches!(c, '`' | '*' | '"' | '\'' | '“' | '”' | '‘' | '’' | '<' | '>' | '~')
}

/// The start of the path in a word: after the last mark, escape sequence, tag or bracket that is not part of it. In
/// `[id]/page.tsx` and `(auth)/page.tsx` the brackets are part of the path.
fn path_start(word: &str) -> usize {
    let mut open = Vec::new();
    let mut start = 0;
    for (at, c) in word.char_indices() {
        let next = at + c.len_utf8();
        if c == '\u{1b}' {
            let code = word[next..].trim_start_matches(|c: char| matches!(c, '[' | ';') || c.is_ascii_digit());
            start = (word.len() - code.len() + 1).min(word.len());
            open.clear();
        } else if at < start {
            continue;
        } else if is_mark(c) && !(c == '~' && word[next..].starts_with('/')) {
            start = next;
            open.clear();
        } else if matches!(c, '(' | '[' | '{') {
            open.push(at);
        } else if matches!(c, ')' | ']' | '}') {
            let goes_on = word[next..].starts_with(['/', '\\', '.', '-']);
            if open.pop().is_none() || !goes_on {
                start = next;
                open.clear();
            }
        }
    }
    open.last().map_or(start, |at| at + 1)
}

/// Extends a location to the link around it, or to the marks before a path whose line number follows the closing
/// marks.
fn expand_to_link(word: &str, range: Range<usize>) -> Range<usize> {
    let target = word[range.end..].strip_prefix("](").and_then(|target| target.find(')'));
    if let Some(length) = target
        && word[..range.start].ends_with('[')
    {
        return range.start - 1..range.end + length + 3;
    }
    let inside = &word[range.clone()];
    let before = &word[..range.start];
    if inside.contains(')') && !inside.contains('(') {
        let text = before.strip_suffix("](").and_then(|text| text.rfind('['));
        return text.unwrap_or(range.start - usize::from(before.ends_with('(')))..range.end;
    }
    let marked = inside.split([':', '#']).next().is_some_and(|path| path.ends_with(is_mark));
    let start = if marked { before.trim_end_matches(is_mark).len() } else { range.start };
    start..range.end
}

/// The target file of a link whose text is a shorter name of it: `[a.ts:4](src/a.ts#L4)`.
fn linked<'w>(location: &'w str, file: &str) -> Option<&'w str> {
    let target = location.split_once("](")?.1.trim_end_matches(')');
    let path = target.split(['#', ':']).next()?;
    (path.ends_with(file) && is_path(path)).then_some(path)
}

/// The length of a column or line range after the line: `:7`, `-12`, `-L12`, `C7`.
fn suffix(rest: &str) -> usize {
    let more =
        rest.bytes().take_while(|byte| byte.is_ascii_digit() || matches!(byte, b':' | b'-' | b'L' | b'C')).count();
    rest[..more].trim_end_matches([':', '-', 'L', 'C']).len()
}

/// Parses `path (line 45)`, `path, line 45` and `path at lines 45-50`.
fn with_trailing_line(word: &str, offset: usize, behind: &str) -> Option<LocationMention> {
    let mut rest = behind.trim_start_matches([' ', '(']);
    if let Some(after) = ["at ", "on ", "in "].into_iter().find_map(|word| rest.strip_prefix(word)) {
        rest = after.trim_start_matches([' ', '(']);
    }
    let number = ["lines ", "line ", "Lines ", "Line ", "L"].into_iter().find_map(|word| rest.strip_prefix(word))?;
    let digits = number.bytes().take_while(u8::is_ascii_digit).count();
    let path = path_in(word.trim_end_matches([',', ';', ':']))?;
    let file = &word[path.clone()];
    let after = number.get(digits..)?;
    if digits == 0 || after.starts_with(|c: char| c.is_alphanumeric()) || !is_path(file) || !is_file_name(file) {
        return None;
    }
    let after = &after[suffix(after)..];
    let opened = behind[..behind.len() - number.len()].contains('(');
    let end = behind.len() - after.len() + usize::from(opened && after.starts_with(')'));
    Some(LocationMention {
        file: file.to_owned(),
        line: number[..digits].parse().ok(),
        range: offset + path.start..offset + word.len() + end,
    })
}

fn is_file_name(word: &str) -> bool {
    let ending = word.rsplit_once('.').map_or("", |(_, ending)| ending);
    ending.starts_with(char::is_alphabetic) || BARE_NAMES.split(' ').any(|name| name == word)
}

fn is_path(word: &str) -> bool {
    let has_directory = word.contains(['/', '\\']);
    let named = word.contains(char::is_alphabetic) && !word.contains("//") && !word.ends_with(['(', ')']);
    let host = word
        .rsplit_once('.')
        .is_some_and(|(name, ending)| !name.is_empty() && DOMAINS.split(' ').any(|domain| domain == ending));
    named && (has_directory || (is_file_name(word) && (!host || word.starts_with('.'))))
}

/// Parses a field that holds a file without a line.
pub(super) fn find_file(value: &str) -> Option<LocationMention> {
    let word = value.split_whitespace().next().filter(|word| word.len() <= MAX_PATH_BYTES)?;
    let path = path_in(word.trim_end_matches([',', ';']))?;
    let file = &word[path.clone()];
    is_path(file).then(|| LocationMention { file: file.to_owned(), line: None, range: path })
}

/// Parses a `location` field into file and line. Unlike in prose, the path may contain spaces and brackets.
pub(super) fn parse_location(location: &str) -> (Option<String>, Option<u32>) {
    let location = location.trim_matches(|c: char| c.is_whitespace() || matches!(c, '`' | '"' | '*'));
    if location.is_empty() {
        return (None, None);
    }
    if let Some((file, line)) = split_location(location)
        && find(file).is_none()
    {
        return (Some(file.to_owned()), line);
    }
    match find(location) {
        Some(location) => (Some(location.file), location.line),
        None => (Some(location.to_owned()), None),
    }
}

/// Parses `file:line`, `file:line:column`, `file:line-line` and `file#Lline`.
fn split_location(location: &str) -> Option<(&str, Option<u32>)> {
    let is_number = |c: char| c.is_ascii_digit() || matches!(c, '-' | '–');
    let split = |text: &str| {
        let head = text.trim_end_matches(is_number);
        let head = head.strip_suffix('L').filter(|head| head.ends_with([':', '#', '-'])).unwrap_or(head);
        head.strip_suffix([':', '#']).filter(|file| file.len() + 1 < text.len()).map(str::len)
    };
    let mut end = split(location)?;
    // With two numbers, the last one is the column.
    end = split(&location[..end]).unwrap_or(end);
    let file = location[..end].trim_end_matches(['`', ' ']);
    let number = location[end..].trim_start_matches([':', '#', 'L']);
    let digits = number.bytes().take_while(u8::is_ascii_digit).count();
    let is_file = file.contains(char::is_alphabetic) && !file.contains("://");
    is_file.then(|| (file, number[..digits].parse().ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(text: &str) -> String {
        find(text).map_or("-".to_owned(), |location| {
            format!("{} {:?} {}", location.file, location.line, &text[location.range])
        })
    }

    #[test]
    fn a_location_is_a_path_and_a_number() {
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
            "__init__.py:3 and _app.tsx:10",
            "_app.tsx:10",
            "_src/a.rs:3_ slanted",
            "`src/auth.ts`:45 quoted",
            "**src/auth.ts**:45 bold",
            "**`src/auth.ts`:45** both",
            "[auth.ts](src/auth.ts):45 link",
            "[auth.ts:45](src/auth.ts#L45) link",
            "[x](src/auth.ts#L45) link",
            "src/a.ts:L45 and",
            "src/a.ts#L45-L50 and",
            "in src/a.ts (line 45) there",
            "`src/a.ts`, line 45: there",
            "src/a.ts at lines 45-50 there",
            "\"src/a.ts\":7",
            "\u{1b}[31msrc/a.ts:7\u{1b}[0m",
            "LICENSE:3",
            "(auth)/page.tsx:10",
            "[slug]/page.tsx:10",
            "(see foo(src/a.rs:3))",
            "example.com:443 http://x:80 12:30 std::fmt foo.bar():3 and/or line 3",
        ];
        let shown: Vec<_> = texts.iter().map(|text| named(text)).collect();
        insta::assert_snapshot!(shown.join("\n"), @r#"
    src/auth.ts Some(45) src/auth.ts:45
    src/auth.ts Some(45) src/auth.ts:45:7
    lib.rs Some(3) lib.rs:3-9
    src/a.rs Some(10) [src/a.rs:10](src/a.rs#L10)
    src/a.rs Some(10) src/a.rs:10
    app/[id]/page.tsx Some(3) app/[id]/page.tsx:3
    C:\work\main.rs Some(12) C:\work\main.rs:12
    Makefile Some(3) Makefile:3
    src/ä/ö.rs Some(1) src/ä/ö.rs:1
    -
    -
    src/a.rs None src/a.rs:99999999999
    __init__.py Some(3) __init__.py:3
    _app.tsx Some(10) _app.tsx:10
    src/a.rs Some(3) src/a.rs:3
    src/auth.ts Some(45) `src/auth.ts`:45
    src/auth.ts Some(45) **src/auth.ts**:45
    src/auth.ts Some(45) **`src/auth.ts`:45
    src/auth.ts Some(45) [auth.ts](src/auth.ts):45
    src/auth.ts Some(45) [auth.ts:45](src/auth.ts#L45)
    src/auth.ts Some(45) src/auth.ts#L45
    src/a.ts Some(45) src/a.ts:L45
    src/a.ts Some(45) src/a.ts#L45-L50
    src/a.ts Some(45) src/a.ts (line 45)
    src/a.ts Some(45) src/a.ts`, line 45
    src/a.ts Some(45) src/a.ts at lines 45-50
    src/a.ts Some(7) "src/a.ts":7
    src/a.ts Some(7) src/a.ts:7
    LICENSE Some(3) LICENSE:3
    (auth)/page.tsx Some(10) (auth)/page.tsx:10
    [slug]/page.tsx Some(10) [slug]/page.tsx:10
    src/a.rs Some(3) src/a.rs:3
    -
    "#);
    }

    #[test]
    fn a_location_is_split_at_its_end() {
        let locations = [
            "src/my file.ts:10",
            "[slug]/page.tsx:10",
            "(auth)/page.tsx:10:5",
            "`src/a.rs:3-9`",
            "src/a.rs#L7",
            "src/a.rs:L7-L9",
            "src/a.rs",
            "src/a.rs:3 in login()",
            "src/a.rs:3, src/b.rs:9",
            "http://x:80",
            "10:30",
            "C:\\work\\main.rs:12",
            " ",
        ];
        let shown: Vec<_> = locations.iter().map(|location| format!("{:?}", parse_location(location))).collect();
        insta::assert_snapshot!(shown.join("\n"), @r#"
    (Some("src/my file.ts"), Some(10))
    (Some("[slug]/page.tsx"), Some(10))
    (Some("(auth)/page.tsx"), Some(10))
    (Some("src/a.rs"), Some(3))
    (Some("src/a.rs"), Some(7))
    (Some("src/a.rs"), Some(7))
    (Some("src/a.rs"), None)
    (Some("src/a.rs"), Some(3))
    (Some("src/a.rs"), Some(3))
    (Some("http://x:80"), None)
    (Some("10:30"), None)
    (Some("C:\\work\\main.rs"), Some(12))
    (None, None)
    "#);
    }
}
