//! A review in the format the prompt asks for.

use super::flaw::Flaw;

/// The format, with what the prompt wants copied into it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum AnswerFormat {
    /// `<code-review nonce="…" commit="…">`: the name of the root and its whole first tag.
    Xml { name: String, tag: String, nonce: String },
    /// The comment line below the verdict.
    Markdown { comment: String },
}

impl AnswerFormat {
    /// Instructions stand at the end of a prompt, behind any material that may look like them.
    pub(super) fn asked_for(prompt: &str, nonce: &str) -> Self {
        let tag =
            prompt.lines().rfind(|line| line.starts_with("<code-review") || line.starts_with("<spec-review"));
        let name = tag.and_then(|tag| tag.trim_start_matches('<').split([' ', '>']).next());
        if let (Some(tag), Some(name)) = (tag, name) {
            return Self::Xml { name: name.to_owned(), tag: tag.to_owned(), nonce: nonce.to_owned() };
        }
        let asked = prompt.lines().rfind(|line| line.starts_with("<!-- signoff:"));
        Self::Markdown { comment: asked.map_or_else(|| comment(nonce), str::to_owned) }
    }

    pub(super) fn write(&self, flaws: &[(Flaw, usize)]) -> String {
        match self {
            // The XML format has no word for what only a person can decide.
            Self::Xml { nonce, .. } if flaws.iter().any(|(flaw, _)| flaw.needs_a_person()) => {
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
        flaws if flaws.iter().any(|(flaw, _)| flaw.needs_a_person()) => "NEEDS_DISCUSSION",
        _ => "CHANGES_REQUESTED",
    };
    let list: String = flaws
        .iter()
        .map(|(flaw, line)| format!("- [Important] {}:{line} {}\n", flaw.file(), flaw.description()))
        .collect();
    let said = if list.is_empty() { "All that the task asks for is there.\n" } else { &list };
    format!("{said}\n**Verdict: {verdict}**\n{comment}\n")
}

fn xml(name: &str, tag: &str, flaws: &[(Flaw, usize)]) -> String {
    let verdict = if flaws.is_empty() { "APPROVED" } else { "ISSUES" };
    let issues: String = flaws.iter().map(|(flaw, line)| issue(name, *flaw, *line)).collect();
    let summary = if flaws.is_empty() { "The scripts do what they should." } else { "Not yet." };
    format!(
        "{tag}\n  <verdict>{verdict}</verdict>\n  <confidence>high</confidence>\n  <issues>\n{issues}  </issues>\n  \
         <checked>\n    <item>What the scripts do with and without a name</item>\n  </checked>\n  \
         <summary>{summary}</summary>\n</{name}>\n"
    )
}

/// Both kinds of reviewers say what is wrong; what else they say is told in an element of their own.
fn issue(root: &str, flaw: Flaw, line: usize) -> String {
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
