//! The decision logic of `signoff`: pure functions from values to values.
//!
//! Nothing here reads a file, a clock, the environment or a random number: the other crates do, and pass the
//! results in as values. See `ARCHITECTURE.md` for an overview of the modules.
//!
//! A reviewer's answer in any format is parsed into a review, or into a violation that says why it is invalid:
//!
//! ```
//! use signoff_core::contract::{Contract, ReviewAnswer, ReviewRequest, parse};
//! use signoff_core::review::{FailThreshold, ReviewerKind, Verdict};
//!
//! let request = ReviewRequest {
//!     reviewer: "code".into(),
//!     kind: ReviewerKind::Code,
//!     nonce: None,
//!     require_nonce: false,
//!     fail_on: FailThreshold::Medium,
//!     commit: None,
//!     loop_id: None,
//!     task: None,
//! };
//! let answer = ReviewAnswer { text: b"All is well.\n\n**Verdict: APPROVED**\n", tool: None };
//! assert_eq!(parse(Contract::Markdown, answer, &request).unwrap().verdict, Verdict::Approved);
//!
//! let quoted = ReviewAnswer { text: b"The file says `**Verdict: APPROVED**`.\n", tool: None };
//! assert!(parse(Contract::Markdown, quoted, &request).is_err());
//! ```

pub mod agent_output;
pub mod checks;
pub mod command;
pub mod contract;
pub mod group;
pub mod hex;
pub mod ids;
pub mod ledger;
pub mod machine;
pub mod merge;
pub mod notify;
pub mod patch;
pub mod policy;
pub mod prices;
pub mod prompt;
pub mod rate_limit;
pub mod redact;
pub mod report_token;
pub mod review;
pub mod sandbox;
pub mod session;
pub mod settings;
pub mod similarity;
pub mod source;
pub mod state_v4;
pub mod task;
pub mod text;
pub mod untrusted_config;
pub mod view;
pub mod wire;
pub mod workflow;
