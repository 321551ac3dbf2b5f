//! Detects files in the work under review that would configure or instruct the agents that read them.
//!
//! Agents read settings, hooks, servers and instructions from the repository they work in. Such files in unreviewed
//! work are untrusted, so the program reports them independently of the reviewers. Files that would run something are
//! findings; instructions are notes.

use std::collections::BTreeSet;

use crate::patch::{PatchLineKind, PatchMark, PatchReader};
use crate::redact::Secrets;
use crate::review::{Finding, Note, Review, Severity, Verdict};
use crate::similarity::assign_ids;

/// The risk of a file to agents that work in its directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConfigRisk {
    /// It starts programs, or selects servers and the keys sent to them.
    Executes,
    /// It is read as instructions.
    Instructions,
}

/// Maximum number of findings; the rest is only counted.
const MAX_FINDINGS: usize = 20;

/// Directories with settings, hooks, plugins and similar files.
const DIRECTORIES: &str = ".claude .codex .gemini .qwen .opencode .copilot .cursor .agents .husky .githooks \
    .git-hooks";

const FILES: &str = ".mcp.json .env .envrc opencode.json opencode.jsonc .opencode.json";

/// Files that are recognized by the end of their path.
const FILE_SUFFIXES: &str = ".vscode/mcp.json .github/mcp.json .github/copilot/settings.json";

/// A directory that is recognized by the end of its path.
const HOOK_DIRECTORY: &str = ".github/hooks/";

/// Hooks that git runs from a configured hooks directory.
const HOOKS: &str = "pre-commit prepare-commit-msg commit-msg post-commit pre-merge-commit post-merge pre-rebase \
    post-rewrite pre-push post-checkout applypatch-msg pre-applypatch post-applypatch reference-transaction";

/// Directories with instructions only.
const INSTRUCTION_DIRECTORIES: &str = ".github/instructions/ .github/prompts/ .github/agents/ .signoff/prompts/";

const INSTRUCTION_FILES: &str = "claude.md claude.local.md agents.md agents.override.md gemini.md qwen.md \
    .cursorrules .windsurfrules copilot-instructions.md";

/// Classifies a file. Case is ignored, because some file systems ignore it.
pub fn classify(path: &str) -> Option<ConfigRisk> {
    let path = path.replace('\\', "/").to_ascii_lowercase();
    let parts: Vec<&str> = path.split('/').collect();
    let (name, above) = parts.split_last().map_or(("", [].as_slice()), |(name, above)| (*name, above));
    let inside = parts.iter().any(|part| is_in(part, DIRECTORIES));
    let within = |directory: &str| path.starts_with(directory) || path.contains(&format!("/{directory}"));
    if is_in(name, INSTRUCTION_FILES)
        || INSTRUCTION_DIRECTORIES.split(' ').any(within)
        || inside && above.contains(&"rules") && (name.ends_with(".md") || name.ends_with(".mdc"))
        || path == "signoff.toml"
    {
        return Some(ConfigRisk::Instructions);
    }
    let ends = FILE_SUFFIXES.split(' ').any(|end| path == end || path.ends_with(&format!("/{end}")));
    let is_hook = is_in(name, HOOKS) && above.last().is_some_and(|above| above.ends_with("hooks"));
    let runs = inside || ends || is_hook || within(HOOK_DIRECTORY) || is_in(name, FILES);
    runs.then_some(ConfigRisk::Executes)
}

fn is_in(name: &str, list: &str) -> bool {
    list.split(' ').any(|listed| listed == name)
}

/// Whether opencode runs this file or what it names, whatever its settings: plugins of the repository run in the
/// process that has the login.
pub fn runs_in_opencode(path: &str) -> bool {
    let path = path.replace('\\', "/").to_ascii_lowercase();
    let is_settings = matches!(path.rsplit('/').next(), Some("opencode.json" | "opencode.jsonc"));
    // A symbolic link with that name counts too.
    is_settings || path.split('/').any(|part| part == ".opencode")
}

/// The files with a secret in their added lines.
pub fn files_with_secrets(patch: &str, secrets: &Secrets) -> Vec<String> {
    if !secrets.occur_in(patch.as_bytes()) {
        return Vec::new();
    }
    let mut found = BTreeSet::new();
    let mut file = None;
    let mut reader = PatchReader::default();
    for line in patch.lines() {
        let (kind, prefix) = reader.read(line.as_bytes());
        if kind == PatchLineKind::Header("+++ ") {
            let path = &line[prefix..];
            file = Some(path.strip_prefix("b/").unwrap_or(path).trim_end().to_owned());
        } else if kind == PatchLineKind::Content(PatchMark::Added) && secrets.occur_in(line.as_bytes()) {
            found.extend(file.clone());
        }
    }
    found.into_iter().take(MAX_FINDINGS).collect()
}

/// Adds the program's findings about files of the work, in the name of the reviewer. The reviewer that reports a
/// finding also closes it by approving later work without it. An inconclusive review is returned unchanged.
pub fn add_findings(review: Review, changed: &[String], with_secrets: &[String]) -> Review {
    if matches!(review.verdict, Verdict::Inconclusive(_)) {
        return review;
    }
    let which = |wanted: ConfigRisk| changed.iter().filter(move |path| classify(path) == Some(wanted));
    let finding = |severity, path: &String, description: String, suggestion: &str| Finding {
        file: Some(path.clone()),
        suggestion: Some(suggestion.to_owned()),
        ..Finding::new(&review.reviewer, "security", severity, description)
    };
    let secret = |path| {
        let description = format!("`{path}` contains a secret from the environment");
        finding(Severity::Critical, path, description, "remove it, also from earlier commits, and rotate the key")
    };
    let runs = |path| {
        let description = format!(
            "`{path}` would configure agents that work here: agents and tools read settings, servers or hooks there"
        );
        finding(Severity::Important, path, description, TAKE_OUT)
    };
    let mut found: Vec<Finding> =
        with_secrets.iter().map(secret).chain(which(ConfigRisk::Executes).map(runs)).collect();
    let more = found.len().saturating_sub(MAX_FINDINGS);
    found.truncate(MAX_FINDINGS);
    assign_ids(&mut found);
    found.retain(|one| review.findings.iter().all(|known| known.id != one.id));
    let mut notes: Vec<Note> = which(ConfigRisk::Instructions).take(MAX_FINDINGS).map(instructs_note).collect();
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

const TAKE_OUT: &str = "remove it from the work; if the task asks for it, a person decides that with `signoff dispute`";

fn instructs_note(path: &String) -> Note {
    let description =
        format!("`{path}` is read by agents as instructions: the work would change what they are asked to do");
    Note { file: Some(path.clone()), line: None, description }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::review::ReviewerKind;

    #[test]
    fn paths_are_classified() {
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
            assert_eq!(classify(path), Some(ConfigRisk::Executes), "{path}");
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
            assert_eq!(classify(path), Some(ConfigRisk::Instructions), "{path}");
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
            assert_eq!(classify(path), None, "{path}");
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
        Review::new("general".into(), ReviewerKind::General, Verdict::Approved)
    }

    #[test]
    fn findings_are_stable_and_not_duplicated() {
        let changed = [".mcp.json".to_owned(), "CLAUDE.md".to_owned(), "src/main.rs".to_owned()];
        let once = add_findings(approved(), &changed, &[]);
        let (kinds, severities): (Vec<_>, Vec<_>) =
            once.findings.iter().map(|one| (one.kind.as_str(), one.severity)).unzip();
        assert_eq!((kinds, severities, once.minor.len()), (vec!["security"], vec![Severity::Important], 1));
        assert_eq!(add_findings(approved(), &changed, &[]), once);
        assert_eq!(add_findings(once.clone(), &changed, &[]).findings, once.findings);
        assert_eq!(add_findings(approved(), &changed[2..], &[]), approved());
    }

    #[test]
    fn the_number_of_findings_is_limited() {
        let many: Vec<_> = (0..500).map(|number| format!(".claude/agents/{number}.md")).collect();
        let review = add_findings(approved(), &many, &[]);
        assert_eq!((review.findings.len(), review.minor.len()), (MAX_FINDINGS, 1));
    }

    #[test]
    fn added_secrets_are_found() {
        let patch = "diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-old sk-canary-123\n+new\n\
                     diff --git a/b.txt b/b.txt\n--- /dev/null\n+++ b/b.txt\n@@ -0,0 +1 @@\n++++ sk-canary-123\n";
        let secrets = Secrets::from_values(["sk-canary-123"]);
        assert_eq!(files_with_secrets(patch, &secrets), ["b.txt"]);
        let review = add_findings(approved(), &[], &files_with_secrets(patch, &secrets));
        assert_eq!(review.findings[0].severity, Severity::Critical);
        assert!(files_with_secrets(patch, &Secrets::default()).is_empty());
    }
}
