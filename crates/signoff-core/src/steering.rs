//! Files by which the work under review would steer whoever reviews it.
//!
//! Agents read settings, hooks, servers and instructions from the repository they work in. Those that the work itself
//! brings along are nobody's configuration yet: the program tells of them, whatever reviewers say. What would run
//! something is a finding; words that would only be read are a remark.

use std::collections::BTreeSet;

use crate::ids::ReviewerName;
use crate::redact::Secrets;
use crate::review::{Finding, Note, Review, Severity, Verdict};
use crate::similarity::assign_ids;

/// What a file does to an agent that works where it lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Steers {
    /// It starts programs, or decides who is asked with which key.
    Runs,
    /// It is read as instructions.
    Instructs,
}

/// So many findings; the rest is counted.
const MOST: usize = 20;

/// Directories with settings, hooks, plugins and the like.
const DIRECTORIES: [&str; 11] = [
    ".claude",
    ".codex",
    ".gemini",
    ".qwen",
    ".opencode",
    ".copilot",
    ".cursor",
    ".agents",
    ".husky",
    ".githooks",
    ".git-hooks",
];

const FILES: [&str; 6] = [".mcp.json", ".env", ".envrc", "opencode.json", "opencode.jsonc", ".opencode.json"];

/// Files of which only the end of the path tells what they are.
const ENDS: [&str; 3] = [".vscode/mcp.json", ".github/mcp.json", ".github/copilot/settings.json"];

/// Directories of which only the end of the path tells what they are.
const WITHIN: [&str; 1] = [".github/hooks/"];

/// What git runs by itself, from whatever directory of hooks somebody set up.
const HOOKS: [&str; 14] = [
    "pre-commit",
    "prepare-commit-msg",
    "commit-msg",
    "post-commit",
    "pre-merge-commit",
    "post-merge",
    "pre-rebase",
    "post-rewrite",
    "pre-push",
    "post-checkout",
    "applypatch-msg",
    "pre-applypatch",
    "post-applypatch",
    "reference-transaction",
];

/// Directories with words alone.
const WORDS: [&str; 4] =
    [".github/instructions/", ".github/prompts/", ".github/agents/", ".signoff/prompts/"];

const INSTRUCTIONS: [&str; 9] = [
    "claude.md",
    "claude.local.md",
    "agents.md",
    "agents.override.md",
    "gemini.md",
    "qwen.md",
    ".cursorrules",
    ".windsurfrules",
    "copilot-instructions.md",
];

/// What a file does to agents, if anything. Systems that do not tell large letters from small ones know it under both.
pub fn steers(path: &str) -> Option<Steers> {
    let path = path.replace('\\', "/").to_ascii_lowercase();
    let parts: Vec<&str> = path.split('/').collect();
    let (name, above) = parts.split_last().map_or(("", [].as_slice()), |(name, above)| (*name, above));
    let inside = parts.iter().any(|part| DIRECTORIES.contains(part));
    let within = |directory: &&str| path.starts_with(directory) || path.contains(&format!("/{directory}"));
    if INSTRUCTIONS.contains(&name)
        || WORDS.iter().any(&within)
        || inside && above.contains(&"rules") && (name.ends_with(".md") || name.ends_with(".mdc"))
        || path == "signoff.toml"
    {
        return Some(Steers::Instructs);
    }
    let ends = ENDS.iter().any(|end| path == *end || path.ends_with(&format!("/{end}")));
    let is_hook = HOOKS.contains(&name) && above.last().is_some_and(|above| above.ends_with("hooks"));
    let runs = inside || ends || is_hook || WITHIN.iter().any(within) || FILES.contains(&name);
    runs.then_some(Steers::Runs)
}

/// Whether opencode runs what a file says, or the file itself, whatever it is told: plugins of the repository, in the
/// process that has its login.
pub fn runs_in_opencode(path: &str) -> bool {
    let path = path.replace('\\', "/").to_ascii_lowercase();
    let is_settings = matches!(path.rsplit('/').next(), Some("opencode.json" | "opencode.jsonc"));
    // A link of that name counts as well.
    is_settings || path.split('/').any(|part| part == ".opencode")
}

/// The files whose new lines hold a secret.
pub fn files_with(patch: &str, secrets: &Secrets) -> Vec<String> {
    if !secrets.are_in(patch.as_bytes()) {
        return Vec::new();
    }
    let mut found = BTreeSet::new();
    let mut file = None;
    let mut in_hunks = false;
    for line in patch.lines() {
        if line.starts_with("diff --git ") {
            in_hunks = false;
        } else if let Some(path) = line.strip_prefix("+++ ").filter(|_| !in_hunks) {
            file = Some(path.strip_prefix("b/").unwrap_or(path).trim_end().to_owned());
        }
        in_hunks |= line.starts_with("@@");
        if in_hunks && line.starts_with('+') && secrets.are_in(line.as_bytes()) {
            found.extend(file.clone());
        }
    }
    found.into_iter().take(MOST).collect()
}

/// A review with what the program has to say about the files of the work, in the name of its reviewer: who reports a
/// finding also closes it, by approving work that has it no more. Who was not understood reports nothing.
pub fn told(review: Review, changed: &[String], with_secrets: &[String]) -> Review {
    if matches!(review.verdict, Verdict::Inconclusive(_)) {
        return review;
    }
    let which = |wanted: Steers| changed.iter().filter(move |path| steers(path) == Some(wanted));
    let mut found: Vec<Finding> = with_secrets.iter().map(|path| secret(&review.reviewer, path)).collect();
    found.extend(which(Steers::Runs).map(|path| runs(&review.reviewer, path)));
    let more = found.len().saturating_sub(MOST);
    found.truncate(MOST);
    assign_ids(&mut found);
    found.retain(|one| review.findings.iter().all(|known| known.id != one.id));
    let mut notes: Vec<Note> = which(Steers::Instructs).take(MOST).map(|path| instructs(path)).collect();
    if more > 0 {
        let description = format!("{more} more files are settings or hooks of agents");
        notes.push(Note { file: None, line: None, description });
    }
    Review {
        findings: review.findings.into_iter().chain(found).collect(),
        minor: review.minor.into_iter().chain(notes).collect(),
        ..review
    }
}

fn runs(reviewer: &ReviewerName, path: &str) -> Finding {
    let description = format!(
        "`{path}` would configure whoever works with it: agents and tools read settings, servers or hooks there"
    );
    Finding {
        file: Some(path.to_owned()),
        suggestion: Some(
            "take it out of the work; if the task asks for it, a person decides that with `signoff dispute`"
                .to_owned(),
        ),
        ..Finding::of(reviewer, "security", Severity::Important, description)
    }
}

fn secret(reviewer: &ReviewerName, path: &str) -> Finding {
    Finding {
        file: Some(path.to_owned()),
        suggestion: Some("take it out, also of the commits before, and make a new key".to_owned()),
        ..Finding::of(
            reviewer,
            "security",
            Severity::Critical,
            format!("`{path}` holds a key of the environment"),
        )
    }
}

fn instructs(path: &str) -> Note {
    let description =
        format!("`{path}` is read by agents as instructions: the work would change what they are told");
    Note { file: Some(path.to_owned()), line: None, description }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::review::ReviewerKind;

    #[test]
    fn settings_run_and_instructions_are_read() {
        for path in [
            ".mcp.json",
            "sub/.MCP.json",
            ".claude/settings.json",
            ".claude/skills/x/SKILL.md",
            ".claude",
            ".codex/config.toml",
            ".gemini/.env",
            ".opencode/plugin/x.ts",
            "opencode.json",
            ".env",
            ".vscode/mcp.json",
            "web/.husky/pre-commit",
            "tools/git-hooks/pre-push",
            "hooks/post-checkout",
            ".github/hooks/start.json",
            ".qwen/.env",
            ".qwen/agents/x.md",
            ".cursor/mcp.json",
            ".opencode/opencode.jsonc",
            "sub/.env",
        ] {
            assert_eq!(steers(path), Some(Steers::Runs), "{path}");
        }
        for path in [
            "CLAUDE.md",
            "docs/AGENTS.md",
            ".github/copilot-instructions.md",
            ".claude/CLAUDE.md",
            "GEMINI.md",
            "QWEN.md",
            ".qwen/rules/style.md",
            ".cursor/rules/style.mdc",
            ".claude/rules/style.md",
            ".github/instructions/rust.instructions.md",
            ".github/agents/tester.agent.md",
            ".signoff/prompts/review.md",
            "signoff.toml",
        ] {
            assert_eq!(steers(path), Some(Steers::Instructs), "{path}");
        }
        for path in [
            "src/main.rs",
            ".github/workflows/ci.yml",
            "claude.rs",
            ".env.example",
            "x.mcp.json",
            "env",
            "",
            "src/hooks/useThing.ts",
            "src/hooks/index.ts",
            "docs/pre-commit",
            "rules/style.md",
            "CONTRIBUTING.md",
        ] {
            assert_eq!(steers(path), None, "{path}");
        }
    }

    #[test]
    fn opencode_runs_plugins_and_what_names_them() {
        for path in [
            ".opencode/plugin/x.ts",
            "sub/.OPENCODE/plugins/x.js",
            ".opencode/package.json",
            "opencode.json",
            "sub/opencode.jsonc",
            ".opencode",
        ] {
            assert!(runs_in_opencode(path), "{path}");
        }
        for path in ["src/opencode.rs", "opencode/plugin/x.ts", "x.opencode.json", ""] {
            assert!(!runs_in_opencode(path), "{path}");
        }
    }

    fn approved() -> Review {
        Review::of("general".into(), ReviewerKind::General, Verdict::Approved)
    }

    #[test]
    fn a_finding_is_the_same_in_every_round_and_told_once() {
        let changed = [".mcp.json".to_owned(), "CLAUDE.md".to_owned(), "src/main.rs".to_owned()];
        let once = told(approved(), &changed, &[]);
        let (kinds, severities): (Vec<_>, Vec<_>) =
            once.findings.iter().map(|one| (one.kind.as_str(), one.severity)).unzip();
        assert_eq!((kinds, severities, once.minor.len()), (vec!["security"], vec![Severity::Important], 1));
        assert_eq!(told(approved(), &changed, &[]), once);
        assert_eq!(told(once.clone(), &changed, &[]).findings, once.findings);
        assert_eq!(told(approved(), &changed[2..], &[]), approved());
    }

    #[test]
    fn there_is_a_bound() {
        let many: Vec<_> = (0..500).map(|number| format!(".claude/agents/{number}.md")).collect();
        let review = told(approved(), &many, &[]);
        assert_eq!((review.findings.len(), review.minor.len()), (MOST, 1));
    }

    #[test]
    fn a_key_in_the_work_is_found_where_it_is_added() {
        let patch = "diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-old sk-canary-123\n+new\n\
                     diff --git a/b.txt b/b.txt\n--- /dev/null\n+++ b/b.txt\n@@ -0,0 +1 @@\n++++ sk-canary-123\n";
        let secrets = Secrets::of_values(["sk-canary-123"]);
        assert_eq!(files_with(patch, &secrets), ["b.txt"]);
        let review = told(approved(), &[], &files_with(patch, &secrets));
        assert_eq!(review.findings[0].severity, Severity::Critical);
        assert!(files_with(patch, &Secrets::default()).is_empty());
    }
}
