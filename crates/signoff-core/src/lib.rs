//! Everything `signoff` decides, as values in and values out.
//!
//! Nothing here reads a file, a clock, the environment or a random number: the crates around this one
//! do, and hand over what they saw as values. See `ARCHITECTURE.md` for the way through the modules.
//!
//! A reviewer's answer becomes a review, whatever format it was given in, or a violation that says why not:
//!
//! ```
//! use signoff_core::contract::{Answer, Ask, Contract, parse};
//! use signoff_core::review::{Bar, ReviewerKind, Verdict};
//!
//! let ask = Ask {
//!     reviewer: "code".into(),
//!     kind: ReviewerKind::Code,
//!     nonce: None,
//!     require_nonce: false,
//!     fail_on: Bar::Medium,
//!     commit: None,
//!     loop_id: None,
//!     task: None,
//! };
//! let said = Answer { text: b"All is well.\n\n**Verdict: APPROVED**\n", tool: None };
//! assert_eq!(parse(Contract::Markdown, said, &ask).unwrap().verdict, Verdict::Approved);
//!
//! let quoted = Answer { text: b"The file says `**Verdict: APPROVED**`.\n", tool: None };
//! assert!(parse(Contract::Markdown, quoted, &ask).is_err());
//! ```

pub mod checks;
pub mod command;
pub mod config;
pub mod contract;
pub mod grant;
pub mod group;
pub mod heard;
pub mod hex;
pub mod hold;
pub mod ids;
pub mod ledger;
pub mod limited;
pub mod machine;
pub mod merge;
pub mod notify;
pub mod policy;
pub mod prices;
pub mod prompt;
pub mod redact;
pub mod review;
pub mod session;
pub mod similarity;
pub mod source;
pub mod state_v4;
pub mod steering;
pub mod task;
pub mod view;
pub mod wire;
pub mod workflow;
