//! The merged review as JSON.

use signoff_core::merge::merge;
use signoff_core::review::FailThreshold;

use crate::merge::panel::*;

#[test]
fn json_of_the_example() {
    insta::assert_snapshot!(shown(&example(), "json"), @r#"
    {
      "version": 1,
      "overall_verdict": "SPEC_CRITICAL",
      "action": "FIX_AND_REREVIEW",
      "reviews": [
        {
          "reviewer": "spec",
          "role": "spec",
          "verdict": "changes_requested",
          "confidence": "high",
          "summary": "",
          "reason": null
        },
        {
          "reviewer": "code",
          "role": "code",
          "verdict": "approved_with_minor",
          "confidence": "high",
          "summary": "",
          "reason": null
        }
      ],
      "issues": [
        {
          "id": "Missing OAuth flow implementation@src/auth.ts:45",
          "aliases": [],
          "sources": [
            "spec"
          ],
          "priority": 1,
          "kind": "missing_requirement",
          "severity": "critical",
          "file": "src/auth.ts",
          "line": 45,
          "description": "Missing OAuth flow implementation",
          "requirement": "Support OAuth 2.0 login",
          "suggestion": null,
          "group": null
        },
        {
          "id": "Extra feature not in spec@src/auth.ts:78",
          "aliases": [],
          "sources": [
            "spec"
          ],
          "priority": 3,
          "kind": "extra_feature",
          "severity": "important",
          "file": "src/auth.ts",
          "line": 78,
          "description": "Extra feature not in spec",
          "requirement": null,
          "suggestion": null,
          "group": null
        }
      ],
      "groups": [],
      "minor": [
        {
          "source": "code",
          "file": "src/auth.ts",
          "line": 30,
          "description": "Magic number could be constant"
        }
      ],
      "conflicts": []
    }
    "#);
}

#[test]
fn json_of_a_crowded_panel() {
    insta::assert_snapshot!(shown(&crowded(), "json"), @r#"
    {
      "version": 1,
      "overall_verdict": "INCONCLUSIVE",
      "action": "FIX_AND_REREVIEW",
      "reviews": [
        {
          "reviewer": "spec",
          "role": "spec",
          "verdict": "changes_requested",
          "confidence": "high",
          "summary": "",
          "reason": null
        },
        {
          "reviewer": "code",
          "role": "code",
          "verdict": "changes_requested",
          "confidence": "high",
          "summary": "",
          "reason": null
        },
        {
          "reviewer": "security",
          "role": "security",
          "verdict": "needs_discussion",
          "confidence": "unstated",
          "summary": "Who may charge whom is not written down.\n\n1. Ask.",
          "reason": null
        },
        {
          "reviewer": "tests",
          "role": "tests",
          "verdict": "inconclusive",
          "confidence": "unstated",
          "summary": "",
          "reason": "no answer: timed out after 3m"
        }
      ],
      "issues": [
        {
          "id": "Charges the card twice@src/pay.rs:90",
          "aliases": [
            "Charges the card twice@src/pay.rs:91"
          ],
          "sources": [
            "spec",
            "code"
          ],
          "priority": 1,
          "kind": "bug",
          "severity": "critical",
          "file": "src/pay.rs",
          "line": 90,
          "description": "Charges the card twice",
          "requirement": null,
          "suggestion": "Check the id first.\nThen charge.",
          "group": null
        },
        {
          "id": "Retries are required by the specification@src/pay.rs:20",
          "aliases": [],
          "sources": [
            "spec"
          ],
          "priority": 3,
          "kind": "bug",
          "severity": "important",
          "file": "src/pay.rs",
          "line": 20,
          "description": "Retries are required by the specification",
          "requirement": null,
          "suggestion": null,
          "group": 0
        },
        {
          "id": "Remove the retries@src/pay.rs:23",
          "aliases": [],
          "sources": [
            "code"
          ],
          "priority": 4,
          "kind": "bug",
          "severity": "important",
          "file": "src/pay.rs",
          "line": 23,
          "description": "Remove the retries",
          "requirement": null,
          "suggestion": null,
          "group": 0
        },
        {
          "id": "Name is vague:\n\n  let x = 1;@src/x.rs",
          "aliases": [],
          "sources": [
            "code"
          ],
          "priority": 5,
          "kind": "bug",
          "severity": "minor",
          "file": "src/x.rs",
          "line": null,
          "description": "Name is vague:\n\n  let x = 1;",
          "requirement": null,
          "suggestion": null,
          "group": null
        }
      ],
      "groups": [
        {
          "issues": [
            "Retries are required by the specification@src/pay.rs:20",
            "Remove the retries@src/pay.rs:23"
          ]
        }
      ],
      "minor": [],
      "conflicts": [
        {
          "issues": [
            "Retries are required by the specification@src/pay.rs:20",
            "Remove the retries@src/pay.rs:23"
          ],
          "about": "wanted against remove: retries"
        }
      ]
    }
    "#);
}

#[test]
fn a_merged_review_serialises_as_its_json() {
    let merged = merge(&crowded(), FailThreshold::Medium);
    let direct = serde_json::to_string_pretty(&merged).expect("serialises") + "\n";
    assert_eq!(direct, shown(&crowded(), "json"));
}
