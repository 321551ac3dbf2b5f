//! The merged review as SARIF.

use signoff_core::review::Finding;

use crate::merge::panel::*;

#[test]
fn sarif_of_the_example() {
    let sarif = shown(&example(), "sarif").replace(env!("CARGO_PKG_VERSION"), "VERSION");
    insta::assert_snapshot!(sarif, @r#"
    {
      "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
      "version": "2.1.0",
      "runs": [
        {
          "tool": {
            "driver": {
              "name": "signoff",
              "version": "VERSION",
              "rules": [
                {
                  "id": "extra_feature"
                },
                {
                  "id": "missing_requirement"
                },
                {
                  "id": "note"
                }
              ]
            }
          },
          "invocations": [
            {
              "executionSuccessful": true,
              "toolExecutionNotifications": []
            }
          ],
          "results": [
            {
              "ruleId": "missing_requirement",
              "level": "error",
              "message": {
                "text": "Missing OAuth flow implementation"
              },
              "locations": [
                {
                  "physicalLocation": {
                    "artifactLocation": {
                      "uri": "src/auth.ts"
                    },
                    "region": {
                      "startLine": 45
                    }
                  }
                }
              ],
              "partialFingerprints": {
                "signoff/v1": "Missing OAuth flow implementation@src/auth.ts:45"
              },
              "properties": {
                "sources": [
                  "spec"
                ],
                "priority": 1,
                "group": null
              }
            },
            {
              "ruleId": "extra_feature",
              "level": "warning",
              "message": {
                "text": "Extra feature not in spec"
              },
              "locations": [
                {
                  "physicalLocation": {
                    "artifactLocation": {
                      "uri": "src/auth.ts"
                    },
                    "region": {
                      "startLine": 78
                    }
                  }
                }
              ],
              "partialFingerprints": {
                "signoff/v1": "Extra feature not in spec@src/auth.ts:78"
              },
              "properties": {
                "sources": [
                  "spec"
                ],
                "priority": 3,
                "group": null
              }
            },
            {
              "ruleId": "note",
              "level": "note",
              "message": {
                "text": "Magic number could be constant"
              },
              "locations": [
                {
                  "physicalLocation": {
                    "artifactLocation": {
                      "uri": "src/auth.ts"
                    },
                    "region": {
                      "startLine": 30
                    }
                  }
                }
              ],
              "properties": {
                "sources": [
                  "code"
                ],
                "priority": 5
              }
            }
          ],
          "properties": {
            "overallVerdict": "SPEC_CRITICAL",
            "action": "FIX_AND_REREVIEW"
          }
        }
      ]
    }
    "#);
}

#[test]
fn sarif_has_what_the_standard_requires() {
    let mut panel = crowded();
    let odd = Finding { kind: String::new(), ..finding(MINOR, "dir\\ä b#1?.rs:0", "") };
    panel.push(issues("zoe", [odd, finding(CRITICAL, "/etc/passwd:3", "absolute")]));
    let sarif: serde_json::Value = serde_json::from_str(&shown(&panel, "sarif")).expect("JSON");
    assert_eq!(sarif["version"], "2.1.0");
    let run = &sarif["runs"][0];
    assert_eq!(run["tool"]["driver"]["name"], "signoff");
    assert_eq!(run["invocations"][0]["executionSuccessful"], false, "an unheard seat is no clean run");
    let rules: Vec<&str> = run["tool"]["driver"]["rules"]
        .as_array()
        .expect("rules")
        .iter()
        .filter_map(|rule| rule["id"].as_str())
        .collect();
    let mut lines = Vec::new();
    for result in run["results"].as_array().expect("results") {
        assert!(rules.contains(&result["ruleId"].as_str().expect("ruleId")));
        assert!(!result["message"]["text"].as_str().expect("text").is_empty());
        let place = &result["locations"][0]["physicalLocation"];
        lines.push(format!(
            "{} {} {} {}",
            result["level"].as_str().expect("level"),
            result["ruleId"].as_str().expect("ruleId"),
            place["artifactLocation"]["uri"],
            place["region"]["startLine"],
        ));
    }
    insta::assert_snapshot!(lines.join("\n"), @r#"
    error bug "src/pay.rs" 90
    error bug "file:///etc/passwd" 3
    warning bug "src/pay.rs" 20
    warning bug "src/pay.rs" 23
    note finding "dir/%C3%A4%20b%231%3F.rs" null
    note bug "src/x.rs" null
    "#);
}
