//! `signoff parse`: parses one reviewer's answer into a normalized review.

use clap::builder::NonEmptyStringValueParser;
use signoff_core::contract::{self, Contract, MAX_BYTES, ParseReport, ReviewAnswer, ReviewRequest};
use signoff_core::ids::{Commit, Nonce, ReviewerName};
use signoff_core::review::{FailThreshold, ReviewerKind};

use crate::{CommandExit, Console, Result};

/// Parse a reviewer's answer from stdin into a normalized review
///
/// Prints one JSON object. Exits with 0 if the answer is a review, with 1 if it breaks its contract.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  echo 'APPROVED: nothing to add' | signoff parse --contract prefix")]
pub struct Args {
    /// The format the reviewer was asked to answer in
    #[arg(long, value_name = "NAME", value_parser = super::name_parser::<Contract>())]
    contract: Contract,
    /// The kind of the review
    #[arg(long, default_value = "code", value_parser = super::name_parser::<ReviewerKind>())]
    role: ReviewerKind,
    /// The nonce that the answer must repeat
    #[arg(long, value_name = "WORD", value_parser = NonEmptyStringValueParser::new())]
    nonce: Option<String>,
    /// Refuse an answer that does not repeat the nonce (a tool call is bound by its token instead)
    #[arg(long, requires = "nonce")]
    require_nonce: bool,
    /// The lowest severity of a finding that overrides an approval [default: LOW for severity, else MEDIUM]
    #[arg(long, value_name = "SEVERITY", ignore_case = true, value_parser = super::name_parser::<FailThreshold>())]
    fail_on: Option<FailThreshold>,
    /// The commit under review; an answer about another commit is refused
    #[arg(long, value_name = "SHA", value_parser = NonEmptyStringValueParser::new())]
    commit: Option<String>,
}

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<CommandExit> {
    let request = args.review_request();
    let input = console.stdin(MAX_BYTES)?;
    console.detail(&format!("read {} bytes; threshold {:?}", input.len(), request.fail_on));
    let result = contract::parse(args.contract, args.answer(&input), &request);
    console.json(&ParseReport::new(&result, &request))?;
    match result {
        Ok(_) => Ok(CommandExit::Done),
        Err(violation) => {
            console.note(&format!("inconclusive: {violation}"));
            Ok(CommandExit::Failed)
        }
    }
}

impl Args {
    fn review_request(&self) -> ReviewRequest {
        ReviewRequest {
            reviewer: ReviewerName::new(self.role.into_str()),
            kind: self.role,
            nonce: self.nonce.as_deref().map(Nonce::from),
            require_nonce: self.require_nonce,
            fail_on: self.fail_on.unwrap_or(self.contract.default_threshold()),
            commit: self.commit.as_deref().map(Commit::from),
            loop_id: None,
            task: None,
        }
    }

    /// For the tool contract stdin is the argument object of the call; otherwise it is the final message.
    fn answer<'a>(&self, input: &'a [u8]) -> ReviewAnswer<'a> {
        match self.contract == Contract::Tool {
            true => ReviewAnswer { text: b"", tool: Some(input) },
            false => ReviewAnswer { text: input, tool: None },
        }
    }
}
