//! `signoff merge-reviews`: what several reviewers say together.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::builder::{PossibleValuesParser, TypedValueParser};
use signoff_core::contract::ParseReport;
use signoff_core::ids::ReviewerName;
use signoff_core::merge::merge;
use signoff_core::merge::render::{Format, render};
use signoff_core::review::{Bar, Review, ReviewerKind};

use super::words;
use crate::console::Console;
use crate::door;
use crate::failure::{Exit, Failure};

const STDIN: &str = "-";

/// Merge what `signoff parse` read from several reviewers
///
/// Each file is an output of `signoff parse`; `-` is stdin, once.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  signoff parse --contract xml --role spec < spec.xml > spec.json\n  \
                        signoff parse --contract xml --role code < code.xml > code.json\n  \
                        signoff merge-reviews --spec spec.json --code code.json --format markdown")]
pub struct Args {
    /// The spec reviewer's answer
    #[arg(long, value_name = "FILE")]
    spec: Option<PathBuf>,
    /// The code reviewer's answer
    #[arg(long, value_name = "FILE")]
    code: Option<PathBuf>,
    /// Another reviewer's answer; may be repeated
    #[arg(long, value_name = "NAME=FILE", value_parser = named_file)]
    reviewer: Vec<(ReviewerName, PathBuf)>,
    /// The severity from which findings must be fixed
    #[arg(long, value_name = "SEVERITY", default_value = "MEDIUM", ignore_case = true, value_parser = words::bar())]
    fail_on: Bar,
    /// How to show it [default: text, or json with --json]
    #[arg(long, value_parser = format())]
    format: Option<Format>,
}

/// One reviewer and where its answer lies.
struct Seat<'a> {
    name: ReviewerName,
    /// Set where the flag says what the reviewer looks for; elsewhere the file does.
    kind: Option<ReviewerKind>,
    file: &'a Path,
}

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<Exit, Failure> {
    let seats = args.seats();
    check_seats(&seats)?;
    let reviews =
        seats.into_iter().map(|seat| read_seat(seat, console)).collect::<Result<Vec<Review>, Failure>>()?;
    let format = args.format.unwrap_or(if console.json { Format::Json } else { Format::Text });
    let shown = render(&merge(&reviews, args.fail_on), args.fail_on, format);
    match format {
        Format::Text | Format::Markdown => console.text(&shown)?,
        Format::Json | Format::Xml | Format::Sarif => console.data(&shown)?,
    }
    Ok(Exit::Done)
}

impl Args {
    fn seats(&self) -> Vec<Seat<'_>> {
        let spec = self.spec.iter().map(|file| (ReviewerKind::Spec, file));
        let code = self.code.iter().map(|file| (ReviewerKind::Code, file));
        let ours = spec.chain(code).map(|(kind, file)| Seat {
            name: ReviewerName::new(kind.word()),
            kind: Some(kind),
            file,
        });
        let named = self.reviewer.iter().map(|(name, file)| Seat { name: name.clone(), kind: None, file });
        ours.chain(named).collect()
    }
}

fn check_seats(seats: &[Seat<'_>]) -> Result<(), Failure> {
    if seats.is_empty() {
        return Err(Failure::usage("no reviews to merge")
            .hint("name at least one with --spec FILE, --code FILE or --reviewer NAME=FILE"));
    }
    let mut names = BTreeSet::new();
    if let Some(twice) = seats.iter().find(|seat| !names.insert(&seat.name)) {
        return Err(Failure::usage(format!("two reviewers are called {}", twice.name))
            .hint("give each --reviewer a name of its own"));
    }
    if seats.iter().filter(|seat| is_stdin(seat.file)).count() > 1 {
        return Err(Failure::usage("stdin can be read only once")
            .hint("use `-` for one reviewer, files for the others"));
    }
    Ok(())
}

fn read_seat(seat: Seat<'_>, console: &Console) -> Result<Review, Failure> {
    let shown = seat.file.display().to_string();
    let bytes = if is_stdin(seat.file) { console.stdin(door::FILE_LIMIT)? } else { read_file(seat.file)? };
    let report: ParseReport = serde_json::from_slice(&bytes).map_err(|error| not_a_report(&shown, &error))?;
    let review = report.into_review();
    if let Some(kind) = seat.kind
        && kind != review.kind
    {
        let (was, is) = (review.kind.word(), kind.word());
        console.note(&format!("warning: {shown} was parsed with --role {was}; it counts as the {is} review"));
    }
    Ok(seated(review, seat.name, seat.kind))
}

fn read_file(file: &Path) -> Result<Vec<u8>, Failure> {
    door::read(file).map_err(|failure| failure.hint("name an output of `signoff parse`, or `-` for stdin"))
}

/// The seat's name replaces the one given when parsing, in the findings too.
fn seated(mut review: Review, name: ReviewerName, kind: Option<ReviewerKind>) -> Review {
    for finding in &mut review.findings {
        finding.sources = vec![name.clone()];
    }
    Review { reviewer: name, kind: kind.unwrap_or(review.kind), ..review }
}

fn not_a_report(file: &str, error: &serde_json::Error) -> Failure {
    Failure::usage(format!("{file} is not an output of `signoff parse`: {}", reason(error)))
        .at(format!("{file}:{}:{}", error.line().max(1), error.column().max(1)))
        .hint("run `signoff parse --contract NAME < answer > FILE` and merge that FILE")
}

/// The parser's message without the place, which is told on a line of its own.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    text.strip_suffix(&place).unwrap_or(&text).to_owned()
}

fn is_stdin(file: &Path) -> bool {
    file.as_os_str() == STDIN
}

fn named_file(word: &str) -> Result<(ReviewerName, PathBuf), String> {
    match word.split_once('=') {
        Some((name, file)) if !name.trim().is_empty() && !file.is_empty() => {
            Ok((ReviewerName::new(name.trim()), PathBuf::from(file)))
        }
        Some(_) | None => Err("expected NAME=FILE, as in security=security.json".to_owned()),
    }
}

fn format() -> impl TypedValueParser<Value = Format> {
    PossibleValuesParser::new(Format::WORDS).try_map(|word| Format::from_word(&word).ok_or("no such format"))
}
