//! `signoff merge-reviews`: merges the parsed answers of several reviewers.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use signoff_core::contract::ParseReport;
use signoff_core::ids::ReviewerName;
use signoff_core::merge::render::ReviewFormat;
use signoff_core::review::{FailThreshold, Review, ReviewerKind};

use crate::{CliError, CommandExit, Console, Result, host};

/// Merge the answers of several reviewers
///
/// Each file is an output of `signoff parse`; `-` reads one of them from stdin.
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
    /// The lowest severity that must be fixed
    #[arg(long, value_name = "SEVERITY", default_value = "MEDIUM", ignore_case = true, value_parser = super::name_parser::<FailThreshold>())]
    fail_on: FailThreshold,
    /// The output format [default: text, or json with --json]
    #[arg(long, value_parser = super::name_parser::<ReviewFormat>())]
    format: Option<ReviewFormat>,
}

/// A reviewer and the file with its answer.
struct ReviewInput<'a> {
    name: ReviewerName,
    /// The kind given by the flag; if `None`, the file says it.
    kind: Option<ReviewerKind>,
    file: &'a Path,
}

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<CommandExit> {
    let inputs = args.inputs();
    check_inputs(&inputs)?;
    let reviews = inputs.into_iter().map(|input| read_input(input, console)).collect::<Result<Vec<Review>>>()?;
    super::print_merged(&reviews, args.fail_on, args.format, console)?;
    Ok(CommandExit::Done)
}

impl Args {
    fn inputs(&self) -> Vec<ReviewInput<'_>> {
        let spec = self.spec.iter().map(|file| (ReviewerKind::Spec, file));
        let code = self.code.iter().map(|file| (ReviewerKind::Code, file));
        let by_kind = spec.chain(code).map(|(kind, file)| ReviewInput {
            name: ReviewerName::new(kind.into_str()),
            kind: Some(kind),
            file,
        });
        let named = self.reviewer.iter().map(|(name, file)| ReviewInput { name: name.clone(), kind: None, file });
        by_kind.chain(named).collect()
    }
}

fn check_inputs(inputs: &[ReviewInput<'_>]) -> Result<()> {
    if inputs.is_empty() {
        return Err(CliError::usage("no reviews to merge")
            .hint("name at least one with --spec FILE, --code FILE or --reviewer NAME=FILE"));
    }
    let mut names = BTreeSet::new();
    if let Some(twice) = inputs.iter().find(|input| !names.insert(&input.name)) {
        return Err(CliError::usage(format!("two reviewers are called {}", twice.name))
            .hint("give each --reviewer a name of its own"));
    }
    if inputs.iter().filter(|input| is_stdin(input.file)).count() > 1 {
        return Err(
            CliError::usage("stdin can be read only once").hint("use `-` for one reviewer, files for the others")
        );
    }
    Ok(())
}

fn read_input(input: ReviewInput<'_>, console: &Console) -> Result<Review> {
    let shown = input.file.display().to_string();
    let bytes = match is_stdin(input.file) {
        true => console.stdin(host::FILE_LIMIT)?,
        false => host::read(input.file)
            .map_err(|failure| failure.hint("name an output of `signoff parse`, or `-` for stdin"))?,
    };
    let report: ParseReport = serde_json::from_slice(&bytes).map_err(|error| not_a_report(&shown, &error))?;
    let review = report.review;
    if let Some(kind) = input.kind
        && kind != review.kind
    {
        let (parsed_as, counted_as) = (review.kind.into_str(), kind.into_str());
        console.note(&format!(
            "warning: {shown} was parsed with --role {parsed_as}; it counts as the {counted_as} review"
        ));
    }
    Ok(with_reviewer(review, input.name, input.kind))
}

/// Replaces the reviewer's name given when parsing, also in the findings.
fn with_reviewer(mut review: Review, name: ReviewerName, kind: Option<ReviewerKind>) -> Review {
    for finding in &mut review.findings {
        finding.sources = vec![name.clone()];
    }
    Review { reviewer: name, kind: kind.unwrap_or(review.kind), ..review }
}

fn not_a_report(file: &str, error: &serde_json::Error) -> CliError {
    CliError::usage(format!("{file} is not an output of `signoff parse`: {}", reason(error)))
        .at(format!("{file}:{}:{}", error.line().max(1), error.column().max(1)))
        .hint("run `signoff parse --contract NAME < answer > FILE` and merge that FILE")
}

/// The parser's message without the position, which is printed on its own line.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let position = format!(" at line {} column {}", error.line(), error.column());
    text.strip_suffix(&position).unwrap_or(&text).to_owned()
}

fn is_stdin(file: &Path) -> bool {
    file.as_os_str() == "-"
}

fn named_file(argument: &str) -> Result<(ReviewerName, PathBuf), String> {
    match argument.split_once('=') {
        Some((name, file)) if !name.trim().is_empty() && !file.is_empty() => {
            Ok((ReviewerName::new(name.trim()), PathBuf::from(file)))
        }
        Some(_) | None => Err("expected NAME=FILE, as in security=security.json".to_owned()),
    }
}
