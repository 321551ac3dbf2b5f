//! Redaction removes every secret, for any split of the text into chunks.

use proptest::prelude::*;
use signoff_core::redact::{PLACEHOLDER, Redactor, Secrets, is_secret_name};

fn in_pieces(secrets: &Secrets, pieces: &[&[u8]]) -> Vec<u8> {
    let (mut redactor, mut out) = (Redactor::new(secrets), Vec::new());
    for piece in pieces {
        redactor.push(piece, &mut out);
    }
    redactor.finish(&mut out);
    out
}

fn holds(text: &[u8], secret: &str) -> bool {
    text.windows(secret.len()).any(|window| window == secret.as_bytes())
}

proptest! {
    /// Uses few letters, so that secrets overlap, contain each other, and have many partial matches.
    #[test]
    fn secrets_are_redacted_for_any_split(
        secrets in prop::collection::vec("[ab]{8,12}", 1..4),
        parts in prop::collection::vec(prop_oneof!["[ab]{0,9}", "[abc\n]{0,5}", Just("S".to_owned())], 0..12),
        picks in prop::collection::vec(0usize..4, 12),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        let known = Secrets::from_values(secrets.iter().map(String::as_str));
        let pick = |at: usize| secrets[picks[at] % secrets.len()].clone();
        let text: String =
            parts.iter().enumerate().map(|(at, part)| part.replace('S', &pick(at))).collect();
        let whole = known.redact(text.as_bytes());
        for secret in &secrets {
            prop_assert!(!holds(&whole, secret), "{secret} in {}", String::from_utf8_lossy(&whole));
        }
        let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(text.len() + 1)).collect();
        cuts.extend([0, text.len()]);
        cuts.sort_unstable();
        let pieces: Vec<_> = cuts.windows(2).map(|pair| &text.as_bytes()[pair[0]..pair[1]]).collect();
        prop_assert_eq!(in_pieces(&known, &pieces), whole.clone());
        let bytes: Vec<_> = text.as_bytes().chunks(1).collect();
        prop_assert_eq!(in_pieces(&known, &bytes), whole);
    }

    #[test]
    fn text_without_secrets_is_unchanged(text in prop::collection::vec(any::<u8>(), 0..300)) {
        let known = Secrets::from_values(["sk-not-in-there-1234"]);
        prop_assert_eq!(known.redact(&text), text);
    }
}

#[test]
fn encoded_forms_of_a_secret_are_redacted() {
    let secrets = Secrets::from_values(["pä\"ss/wörd+1"]);
    for text in ["pä\"ss/wörd+1", r#"pä\"ss/wörd+1"#, "p%C3%A4%22ss%2Fw%C3%B6rd%2B1"] {
        assert_eq!(secrets.redact_text(&format!("<{text}>")), format!("<{PLACEHOLDER}>"));
    }
}

#[test]
fn the_lines_of_a_multi_line_secret_are_redacted() {
    let key = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG\n9w0BAQEFAASCBKcwggSj\n-----END PRIVATE KEY-----\n";
    let secrets = Secrets::from_values([key]);
    assert_eq!(secrets.redact_text("a 9w0BAQEFAASCBKcwggSj b"), "a [redacted] b");
    assert_eq!(secrets.redact_text("-----BEGIN PRIVATE KEY-----"), "-----BEGIN PRIVATE KEY-----");
    assert_eq!(secrets.redact_text(key), "[redacted]\n");
}

#[test]
fn variables_are_secret_by_name() {
    let all = [
        ("ANTHROPIC_API_KEY", "sk-ant-0123456789"),
        ("SHORT_TOKEN", "1234567"),
        ("HTTPS_PROXY", "http://me:hunter2hunter2@proxy.example:3128/"),
        ("HOME", "/home/somebody"),
        ("PWD", "/home/somebody/work"),
        ("SSH_AUTH_SOCK", "/tmp/ssh-agent.sock"),
    ];
    let secrets = Secrets::from_variables(all);
    let environment = all.map(|(name, value)| format!("{name}={value}")).join("\n");
    insta::assert_snapshot!(secrets.redact_text(&environment), @r"
    ANTHROPIC_API_KEY=[redacted]
    SHORT_TOKEN=1234567
    HTTPS_PROXY=http://me:[redacted]@proxy.example:3128/
    HOME=/home/somebody
    PWD=/home/somebody/work
    SSH_AUTH_SOCK=/tmp/ssh-agent.sock
    ");
    assert!(secrets.occur_in(b"x sk-ant-0123456789") && !secrets.occur_in(b"sk-ant-012345678"));
}

#[test]
fn secret_names_are_recognized() {
    for name in [
        "OPENAI_API_KEY",
        "GH_TOKEN",
        "npm_config__authToken",
        "DB_PWD",
        "MyApiKey",
        "AWS_SECRET_ACCESS_KEY",
        "PGPASSWORD_1",
        "STRIPE_SK",
        "SENTRY_DSN",
        "SLACK_WEBHOOK",
        "SLACK_WEBHOOK_URL",
        "AZURE_PAT",
        "apiKey",
    ] {
        assert!(is_secret_name(name), "{name}");
    }
    for name in [
        "PATH",
        "KEYBOARD",
        "MONKEY",
        "GIT_AUTHOR_NAME",
        "API_KEY_HELPER",
        "TOKEN_FILE",
        "PWD",
        "PASSENGERS",
        "token_type",
        "SKIP",
    ] {
        assert!(!is_secret_name(name), "{name}");
    }
}

#[test]
fn names_and_values_decide_which_variables_are_secret() {
    let all = [
        ("STRIPE_SK", "sk_live_51Habcdef"),
        ("SENTRY_DSN", "https://0123456789abcdef0123456789abcdef@o1.ingest.example/2"),
        ("TRACKER", "https://fedcba9876543210fedcba9876543210@o1.ingest.example/3"),
        ("SLACK_WEBHOOK_URL", "https://hooks.example/services/T0/B0/xyzzy"),
        ("PROXY", "http://me:hunter2@proxy.example"),
        ("DB_PASSWORD", "hunter3"),
        ("ACCESS_TOKEN", "ab12cd"),
        ("AUTHORIZATION", "Bearer zyxw-9876-vuts"),
        ("DOLLAR_PASSWORD", "$ecret-0123"),
        ("REFERS_TOKEN", "${OPENAI_API_KEY}"),
        ("DB_DSN", "sqlite:///data/my.db"),
        ("WEBHOOK_EVENTS", "push,release"),
        ("REMOTE", "ssh://git@host.example/it"),
        ("SSH_KEY", "/home/me/.ssh/id_ed25519"),
        ("MAX_TOKENS", "100000"),
        ("A_TOKEN", "secret"),
        ("USE_TOKEN", "disabled"),
        ("KEY_TOKEN", "OPENAI_API_KEY"),
    ];
    let secrets = Secrets::from_variables(all);
    let environment = all.map(|(name, value)| format!("{name}={value}")).join("\n");
    insta::assert_snapshot!(secrets.redact_text(&environment), @"
    STRIPE_SK=[redacted]
    SENTRY_DSN=[redacted]
    TRACKER=https://[redacted]@o1.ingest.example/3
    SLACK_WEBHOOK_URL=[redacted]
    PROXY=http://me:[redacted]@proxy.example
    DB_PASSWORD=[redacted]
    ACCESS_TOKEN=[redacted]
    AUTHORIZATION=[redacted]
    DOLLAR_PASSWORD=[redacted]
    REFERS_TOKEN=${OPENAI_API_KEY}
    DB_DSN=sqlite:///data/my.db
    WEBHOOK_EVENTS=push,release
    REMOTE=ssh://git@host.example/it
    SSH_KEY=/home/me/.ssh/id_ed25519
    MAX_TOKENS=100000
    A_TOKEN=secret
    USE_TOKEN=disabled
    KEY_TOKEN=OPENAI_API_KEY
    ");
    assert_eq!(secrets.redact_text("it is zyxw-9876-vuts"), "it is [redacted]");
    let key = "the key 0123456789abcdef0123456789abcdef";
    assert_eq!(secrets.redact_text(key), "the key [redacted]");
}

#[test]
fn secret_keys_in_documents_are_redacted() {
    let document = serde_json::json!({
        "type": "oauth",
        "access": "acc-0123456789",
        "refresh": "ref-0123456789",
        "expires": 1_700_000_000,
        "claudeAiOauth": { "accessToken": "sk-ant-oat01-x", "scopes": ["user:inference", "user:profile"] },
        "tokens": { "github.example:me": "gho_0123456789", "account_id": "6f0a-1234-5678-9abc" },
        "last": [{ "id_token": "eyJhbGciOi.x.y" }],
        "provider": { "mine": {
            "options": { "apiKey": "sk-mine-0123456", "baseURL": "https://models.example/v1" },
            "headers": { "Authorization": "Bearer abcd-0123456", "Content-Type": "application/json" },
        }},
        "env": { "DASHSCOPE_API_KEY": "sk-dash-0123456", "envKey": "DASHSCOPE_API_KEY" },
        "reference": { "apiKey": "{env:ANTHROPIC_API_KEY}" },
        "token_uri": "https://oauth.example/token",
        "selectedAuthType": "oauth-personal",
        "password": "short",
    });
    let text = format!("// mine\n{document:#}\n");
    for secrets in
        [Secrets::from_document(&text), Secrets::from_variables([("CONTENT", document.to_string().as_str())])]
    {
        insta::allow_duplicates! {
            insta::assert_snapshot!(secrets.redact_text(&text), @r#"
            // mine
            {
              "type": "oauth",
              "access": "[redacted]",
              "refresh": "[redacted]",
              "expires": 1700000000,
              "claudeAiOauth": {
                "accessToken": "[redacted]",
                "scopes": [
                  "user:inference",
                  "user:profile"
                ]
              },
              "tokens": {
                "github.example:me": "[redacted]",
                "account_id": "6f0a-1234-5678-9abc"
              },
              "last": [
                {
                  "id_token": "[redacted]"
                }
              ],
              "provider": {
                "mine": {
                  "options": {
                    "apiKey": "[redacted]",
                    "baseURL": "https://models.example/v1"
                  },
                  "headers": {
                    "Authorization": "[redacted]",
                    "Content-Type": "application/json"
                  }
                }
              },
              "env": {
                "DASHSCOPE_API_KEY": "[redacted]",
                "envKey": "DASHSCOPE_API_KEY"
              },
              "reference": {
                "apiKey": "{env:ANTHROPIC_API_KEY}"
              },
              "token_uri": "https://oauth.example/token",
              "selectedAuthType": "oauth-personal",
              "password": "short"
            }
            "#);
        }
        assert_eq!(secrets.redact_text("it is abcd-0123456"), "it is [redacted]");
    }
    assert!(Secrets::from_document("{\"key\": \"0123456789abcdef\"").is_empty());
}

proptest! {
    #[test]
    fn any_text_can_be_scanned(name in ".{0,12}", value in ".{0,40}") {
        Secrets::from_variables([(name.as_str(), value.as_str())]);
        Secrets::from_document(&value);
    }
}
