//! The JSON form of a parsed review or a violation.

use signoff_core::contract::{Contract, ParseReport};

use super::render::{looped, read, review_request, spec};

#[test]
fn a_review_as_json() {
    let request = spec(Contract::Prefix);
    let text = "ISSUES:\n- [Critical] src/a.rs:1 it burns";
    let report = ParseReport::new(&read(Contract::Prefix, text, &request), &request);
    let id = report.review.findings[0].id.as_str().to_owned();
    let written = serde_json::to_string_pretty(&report).unwrap();
    let id = serde_json::to_string(&id).unwrap();
    insta::assert_snapshot!(written.replace(&id, "(a fingerprint)"), @r#"
    {
      "version": 1,
      "reviewer": "spec",
      "role": "spec",
      "verdict": "changes_requested",
      "confidence": "unstated",
      "findings": [
        {
          "id": (a fingerprint),
          "sources": [
            "spec"
          ],
          "kind": "issue",
          "severity": "critical",
          "file": "src/a.rs",
          "line": 1,
          "description": "it burns",
          "requirement": null,
          "suggestion": null
        }
      ],
      "minor": [],
      "checked": [],
      "summary": "",
      "follow_up_prompt": null,
      "interpreted_intent": null,
      "intent_satisfied": null
    }
    "#);
}

#[test]
fn a_violation_as_json() {
    let request = review_request(Contract::Json);
    let report = ParseReport::new(&read(Contract::Json, "pass", &request), &request);
    insta::assert_json_snapshot!(report, @r#"
    {
      "version": 1,
      "reviewer": "code",
      "role": "code",
      "verdict": "inconclusive",
      "violation": {
        "code": "no_verdict",
        "message": "there is no JSON object with a `verdict` key",
        "offset": 0
      }
    }
    "#);
}

#[test]
fn a_written_report_is_read_back() {
    let request = looped(Contract::Auto);
    let texts =
        ["ISSUES: it burns", "{\"verdict\":\"pass\",\"followUpPrompt\":\"x\"}", "**Verdict: NEEDS_DISCUSSION**", "?"];
    for text in texts {
        let result = read(Contract::Auto, text, &request);
        let report = ParseReport::new(&result, &request);
        let written = serde_json::to_string(&report).unwrap();
        let back: ParseReport = serde_json::from_str(&written).unwrap();
        assert_eq!(back.violation.as_ref(), result.as_ref().err());
        let (back, was) = (back.review, report.review);
        assert_eq!((back.verdict, back.findings, back.minor), (was.verdict, was.findings, was.minor));
    }
}

#[test]
fn invalid_reports_are_refused() {
    let bad = [
        r#"{"version":2,"verdict":"approved","findings":[]}"#,
        r#"{"version":1,"verdict":"fine","findings":[]}"#,
        r#"{"version":1,"verdict":"approved"}"#,
        r#"{"version":1,"verdict":"inconclusive","findings":[]}"#,
        r#"{"version":1,"verdict":"approved","violation":{"code":"empty","message":"","offset":0}}"#,
        r#"{"version":1,"verdict":"approved","findings":[{"severity":"critical"}]}"#,
        r#"{"verdict":"approved","findings":[]}"#,
        r#"[]"#,
    ];
    let errors: Vec<_> =
        bad.iter().map(|text| serde_json::from_str::<ParseReport>(text).unwrap_err().to_string()).collect();
    insta::assert_snapshot!(errors.join("\n"), @"
    version 2 is not known; this program reads version 1
    the verdict `fine` is not known
    `findings` is missing
    `verdict` and `violation` contradict each other: only `inconclusive` has a violation
    `verdict` and `violation` contradict each other: only `inconclusive` has a violation
    missing field `id` at line 1 column 69
    missing field `version` at line 1 column 36
    invalid length 0, expected a review as a JSON object at line 1 column 2
    ");
}
