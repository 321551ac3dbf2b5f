//! No secret survives, however the text that holds it is cut.

use proptest::prelude::*;
use signoff_core::redact::{MARK, Redactor, Secrets, is_secret_name};

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
    /// Few letters, so that secrets overlap, contain each other, and nearly begin everywhere.
    #[test]
    fn no_secret_survives_and_the_cuts_do_not_matter(
        secrets in prop::collection::vec("[ab]{8,12}", 1..4),
        parts in prop::collection::vec(prop_oneof!["[ab]{0,9}", "[abc\n]{0,5}", Just("S".to_owned())], 0..12),
        picks in prop::collection::vec(0usize..4, 12),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        let known = Secrets::of_values(secrets.iter().map(String::as_str));
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
    fn text_without_secrets_stays_as_it_is(text in prop::collection::vec(any::<u8>(), 0..300)) {
        let known = Secrets::of_values(["sk-not-in-there-1234"]);
        prop_assert_eq!(known.redact(&text), text);
    }
}

#[test]
fn a_secret_is_known_however_it_is_written() {
    let secrets = Secrets::of_values(["pä\"ss/wörd+1"]);
    for text in ["pä\"ss/wörd+1", r#"pä\"ss/wörd+1"#, "p%C3%A4%22ss%2Fw%C3%B6rd%2B1"] {
        assert_eq!(secrets.redact_text(&format!("<{text}>")), format!("<{MARK}>"));
    }
}

#[test]
fn the_lines_of_a_longer_secret_are_secrets_too() {
    let key = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG\n9w0BAQEFAASCBKcwggSj\n-----END PRIVATE KEY-----\n";
    let secrets = Secrets::of_values([key]);
    assert_eq!(secrets.redact_text("a 9w0BAQEFAASCBKcwggSj b"), "a [redacted] b");
    assert_eq!(secrets.redact_text("-----BEGIN PRIVATE KEY-----"), "-----BEGIN PRIVATE KEY-----");
    assert_eq!(secrets.redact_text(key), "[redacted]\n");
}

#[test]
fn of_variables_the_names_tell() {
    let all = [
        ("ANTHROPIC_API_KEY", "sk-ant-0123456789"),
        ("SHORT_TOKEN", "1234567"),
        ("HTTPS_PROXY", "http://me:hunter2hunter2@proxy.example:3128/"),
        ("HOME", "/home/somebody"),
        ("PWD", "/home/somebody/work"),
        ("SSH_AUTH_SOCK", "/tmp/ssh-agent.sock"),
    ];
    let secrets = Secrets::of_variables(all);
    let said = all.map(|(name, value)| format!("{name}={value}")).join("\n");
    insta::assert_snapshot!(secrets.redact_text(&said), @r"
    ANTHROPIC_API_KEY=[redacted]
    SHORT_TOKEN=1234567
    HTTPS_PROXY=http://me:[redacted]@proxy.example:3128/
    HOME=/home/somebody
    PWD=/home/somebody/work
    SSH_AUTH_SOCK=/tmp/ssh-agent.sock
    ");
    assert!(secrets.are_in(b"x sk-ant-0123456789") && !secrets.are_in(b"sk-ant-012345678"));
}

#[test]
fn names_that_hold_secrets_and_names_that_do_not() {
    for name in [
        "OPENAI_API_KEY",
        "GH_TOKEN",
        "npm_config__authToken",
        "DB_PWD",
        "MyApiKey",
        "AWS_SECRET_ACCESS_KEY",
        "PGPASSWORD_1",
    ] {
        assert!(is_secret_name(name), "{name}");
    }
    for name in
        ["PATH", "KEYBOARD", "MONKEY", "GIT_AUTHOR_NAME", "API_KEY_HELPER", "TOKEN_FILE", "PWD", "PASSENGERS"]
    {
        assert!(!is_secret_name(name), "{name}");
    }
}
