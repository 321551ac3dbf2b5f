//! Writes a review in the format the prompt asks for.

use super::flaw::Flaw;

/// The format, with the values the prompt asks to copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum AnswerFormat {
    /// `<code-review nonce="…" commit="…">`: the root's name and its whole opening tag.
    Xml { name: String, tag: String, nonce: String },
    /// The comment line below the verdict.
    Markdown { comment: String },
}

impl AnswerFormat {
    /// Finds the requested format. The instructions are at the end of a prompt, after material that may look
    /// like them.
    pub(super) fn from_prompt(prompt: &str, nonce: &str) -> Self {
        let tag = prompt.lines().rfind(|line| line.starts_with("<code-review") || line.starts_with("<spec-review"));
        let name = tag.and_then(|tag| tag.trim_start_matches('<').split([' ', '>']).next());
        if let (Some(tag), Some(name)) = (tag, name) {
            return Self::Xml { name: name.to_owned(), tag: tag.to_owned(), nonce: nonce.to_owned() };
        }
        let asked = prompt.lines().rfind(|line| line.starts_with("<!-- signoff:"));
        Self::Markdown { comment: asked.map_or_else(|| comment(nonce), str::to_owned) }
    }

    pub(super) fn write(&self, flaws: &[(Flaw, usize)]) -> String {
        match self {
            // The XML format cannot express that a person has to decide.
            Self::Xml { nonce, .. } if flaws.iter().any(|(flaw, _)| flaw.needs_decision()) => {
                markdown(&comment(nonce), flaws)
            }
            Self::Xml { name, tag, .. } => xml(name, tag, flaws),
            Self::Markdown { comment } => markdown(comment, flaws),
        }
    }
}

fn comment(nonce: &str) -> String {
    if nonce.is_empty() { String::new() } else { format!("<!-- signoff:{nonce} -->") }
}

fn markdown(comment: &str, flaws: &[(Flaw, usize)]) -> String {
    let verdict = match flaws {
        [] => "APPROVED",
        flaws if flaws.iter().any(|(flaw, _)| flaw.needs_decision()) => "NEEDS_DISCUSSION",
        _ => "CHANGES_REQUESTED",
    };
    let list: String = flaws
        .iter()
        .map(|(flaw, line)| format!("- [Important] {}:{line} {}\n", flaw.file(), flaw.description()))
        .collect();
    let body = if list.is_empty() { "All that the task asks for is there.\n" } else { &list };
    format!("{body}\n**Verdict: {verdict}**\n{comment}\n")
}

fn xml(name: &str, tag: &str, flaws: &[(Flaw, usize)]) -> String {
    let verdict = if flaws.is_empty() { "APPROVED" } else { "ISSUES" };
    let issues: String = flaws.iter().map(|(flaw, line)| xml_issue(name, *flaw, *line)).collect();
    let summary = if flaws.is_empty() { "The scripts do what they should." } else { "Not yet." };
    format!(
        "{tag}\n  <verdict>{verdict}</verdict>\n  <confidence>high</confidence>\n  <issues>\n{issues}  </issues>\n  \
         <checked>\n    <item>What the scripts do with and without a name</item>\n  </checked>\n  \
         <summary>{summary}</summary>\n</{name}>\n"
    )
}

/// Both kinds of reviewers describe the flaw. The second element depends on the kind.
fn xml_issue(root: &str, flaw: Flaw, line: usize) -> String {
    let more = if root == "spec-review" { "requirement" } else { "fix" };
    format!(
        "    <issue type=\"{}\" severity=\"important\">\n      <location file=\"{}\" line=\"{line}\"/>\n      \
         <description>{}</description>\n      <{more}>{}</{more}>\n    </issue>\n",
        flaw.kind(),
        flaw.file(),
        flaw.description(),
        flaw.suggestion(),
    )
}
