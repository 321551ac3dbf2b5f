//! `signoff parse`: reads one reviewer's answer into the normal form.

use clap::builder::NonEmptyStringValueParser;
use signoff_core::contract::{self, Answer, Ask, Contract, MAX_BYTES, ParseReport};
use signoff_core::ids::{Commit, Nonce, ReviewerName};
use signoff_core::review::{Bar, ReviewerKind};

use super::words;
use crate::console::Console;
use crate::failure::{Exit, Failure};

/// Read a reviewer's answer from stdin and show it in the normal form
///
/// Prints one JSON object. Ends with 0 if the answer is a review, with 1 if it breaks its contract.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  echo 'APPROVED: nothing to add' | signoff parse --contract prefix")]
pub struct Args {
    /// The format the reviewer was asked to answer in
    #[arg(long, value_name = "NAME", value_parser = words::contract())]
    contract: Contract,
    /// What the reviewer looks for
    #[arg(long, default_value = "code", value_parser = words::role())]
    role: ReviewerKind,
    /// The word the reviewer was asked to give back
    #[arg(long, value_name = "WORD", value_parser = NonEmptyStringValueParser::new())]
    nonce: Option<String>,
    /// Refuse an answer that does not give the nonce back (a tool call is bound by its token instead)
    #[arg(long, requires = "nonce")]
    require_nonce: bool,
    /// The severity from which a finding outranks an approval [default: LOW for severity, else MEDIUM]
    #[arg(long, value_name = "SEVERITY", ignore_case = true, value_parser = words::bar())]
    fail_on: Option<Bar>,
    /// The commit under review: an answer bound to another one is refused
    #[arg(long, value_name = "SHA", value_parser = NonEmptyStringValueParser::new())]
    commit: Option<String>,
}

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<Exit, Failure> {
    let ask = args.ask();
    let input = console.stdin(MAX_BYTES)?;
    console.detail(&format!("read {} bytes; bar {:?}", input.len(), ask.fail_on));
    let result = contract::parse(args.contract, args.answer(&input), &ask);
    console.json(&ParseReport::new(&result, &ask))?;
    match result {
        Ok(_) => Ok(Exit::Done),
        Err(violation) => {
            console.note(&format!("inconclusive: {violation}"));
            Ok(Exit::Failed)
        }
    }
}

impl Args {
    fn ask(&self) -> Ask {
        Ask {
            reviewer: ReviewerName::new(self.role.word()),
            kind: self.role,
            nonce: self.nonce.as_deref().map(Nonce::from),
            require_nonce: self.require_nonce,
            fail_on: self.fail_on.unwrap_or(self.contract.default_bar()),
            commit: self.commit.as_deref().map(Commit::from),
            loop_id: None,
            task: None,
        }
    }

    /// For the tool contract stdin holds the argument object of the call, for all others the final message.
    fn answer<'a>(&self, input: &'a [u8]) -> Answer<'a> {
        if self.contract == Contract::Tool {
            Answer { text: b"", tool: Some(input) }
        } else {
            Answer { text: input, tool: None }
        }
    }
}
