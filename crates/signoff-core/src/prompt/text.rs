//! The words of every prompt, embedded from `text/*.md`.
//!
//! A text with places to fill is a struct with one field per place, so a value that is missing or not
//! asked for does not compile; that the fields are exactly the places of the file is tested below.

/// Fills `{{name}}` places in one pass: what a value brings in is never looked at again.
fn fill(text: &str, values: &[(&str, &str)]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.trim_end();
    while let Some((before, name, after)) = next_place(rest) {
        out.push_str(before);
        match values.iter().find(|(known, _)| *known == name) {
            Some((_, value)) => out.push_str(value),
            None => out.extend(["{{", name, "}}"]),
        }
        rest = after;
    }
    out + rest
}

/// What stands before the next place, its name, and what stands after it.
fn next_place(text: &str) -> Option<(&str, &str, &str)> {
    let (before, opened) = text.split_once("{{")?;
    let (name, after) = opened.split_once("}}")?;
    Some((before, name, after))
}

macro_rules! embedded {
    ($file:literal) => {
        include_str!(concat!("text/", $file, ".md"))
    };
}

/// Texts without places.
macro_rules! texts {
    ($($name:ident = $file:literal;)*) => {
        $(pub(super) const $name: &str = embedded!($file).trim_ascii_end();)*

        #[cfg(test)]
        const TEXTS: &[(&str, &str)] = &[$(($file, $name)),*];
    };
}

/// Texts with places, each one a struct with `fill`.
macro_rules! templates {
    ($($name:ident = $file:literal { $($place:ident),+ })*) => {
        $(
            pub(super) struct $name<'a> {
                $(pub $place: &'a str),+
            }

            impl $name<'_> {
                pub fn fill(&self) -> String {
                    fill(embedded!($file), &[$((stringify!($place), self.$place)),+])
                }
            }
        )*

        #[cfg(test)]
        const TEMPLATES: &[(&str, &str, &[&str])] =
            &[$(($file, embedded!($file), &[$(stringify!($place)),+])),*];
    };
}

texts! {
    REVIEW_RUN = "review_run";
    REVIEW_TASK_LIST = "review_task_list";
    REVIEW_GROUPS = "review_groups";
    REVIEW_PLAN = "review_plan";
    REVIEW_DESIGN = "review_design";
    REVIEW_RULES = "review_rules";
    FOCUS_SPEC = "focus_spec";
    FOCUS_CODE = "focus_code";
    FOCUS_SECURITY = "focus_security";
    FOCUS_TESTS = "focus_tests";
    FOCUS_GENERAL = "focus_general";
    QUALITY_CHECKS = "quality_checks";
    QUALITY_SPEC = "quality_spec";
    QUALITY_SECURITY = "quality_security";
    QUALITY_TESTS = "quality_tests";
    QUALITY_DOCUMENT = "quality_document";
    INTENT_ANALYSIS = "intent_analysis";
    INTENT_ANALYSIS_DOCUMENT = "intent_analysis_document";
    REQUIREMENT_CHECK = "requirement_check";
    REQUIREMENT_CHECK_DOCUMENT = "requirement_check_document";
    WORK_IN_PROGRESS = "work_in_progress";
    TESTS_RUN = "tests_run";
    REPORT = "report";
    HOW_TO_REPORT = "how_to_report";
    REVIEW_COMPLETE = "review_complete";
    NO_OTHER_LOOPS = "no_other_loops";
    DIFF_EMPTY = "diff_empty";
    IMPLEMENT = "implement";
    WORKPLACE = "workplace";
    MARKER = "marker";
    GOING_ON = "going_on";
    STOP_MARKER = "stop_marker";
    REREVIEW_FIRST = "rereview_first";
    ITEM_BEGUN_ELSEWHERE = "item_begun_elsewhere";
    FIX = "fix";
    CONFLICT = "conflict";
    ENUMERATE = "enumerate";
    ENUMERATE_JSON = "enumerate_json";
    ENUMERATE_TOOLS = "enumerate_tools";
    PLAN = "plan";
    PLAN_JSON = "plan_json";
    PLAN_TOOLS = "plan_tools";
    BRAINSTORM = "brainstorm";
    RESEARCH = "research";
    ANGLE_CODE = "angle_code";
    ANGLE_REQUIREMENTS = "angle_requirements";
    ANGLE_RISKS = "angle_risks";
    SYNTHESIS = "synthesis";
    PLAN_DOCUMENT = "plan_document";
    PLAN_IN_MESSAGE = "plan_in_message";
    SIMPLIFY = "simplify";
}

templates! {
    ReviewTask = "review_task" { loop_id }
    ReviewCheckpoint = "review_checkpoint" { loop_id }
    IronLaw = "iron_law" { before }
    IronLawReading = "iron_law_reading" { before }
    IronLawDocument = "iron_law_document" { before }
    Nonce = "nonce" { nonce }
    TaskUnderReview = "task_under_review" { title, description }
    Task = "task" { title, description }
    PlanToCompare = "plan_to_compare" { plan }
    PlanToFollow = "plan_to_follow" { plan }
    OtherLoops = "other_loops" { summary }
    Repository = "repository" { path }
    WorkingDirectory = "working_directory" { worktree }
    ProjectInstructions = "project_instructions" { files }
    ParallelWarning = "parallel_warning" { count }
    ParallelWork = "parallel_work" { count }
    AuthorOutput = "author_output" { output }
    DocumentUnderReview = "document_under_review" { heading, document }
    Specification = "specification" { specification }
    RereviewFull = "rereview_full" { review, attempt }
    RereviewScoped = "rereview_scoped" { review, attempt }
    PreviousFollowUp = "previous_follow_up" { follow_up }
    OpenFindings = "open_findings" { findings }
    SettledFindings = "settled_findings" { findings }
    FixersClaims = "fixers_claims" { claims }
    AnswerUnreadable = "answer_unreadable" { problem, answer }
    DiffUnderReview = "diff_under_review" { diff }
    DiffOfFix = "diff_of_fix" { diff }
    DiffSoFar = "diff_so_far" { diff }
    DiffInline = "diff_inline" { stat, diff }
    DiffStatOnly = "diff_stat_only" { stat }
    DiffTooLong = "diff_too_long" { stat, lines }
    DiffBase = "diff_base" { base }
    DiffLeftOut = "diff_left_out" { files }
    NextAttempt = "next_attempt" { attempt }
    PreviousMessage = "previous_message" { message }
    FindingsToHeed = "findings_to_heed" { findings }
    ReviewResults = "review_results" { results }
    FindingsToFix = "findings_to_fix" { count, findings }
    FollowUpToFix = "follow_up_to_fix" { follow_up }
    UnreadReview = "unread_review" { review }
    LastReview = "last_review" { review }
    RestOfReview = "rest_of_review" { review }
    Guidance = "guidance" { guidance }
    EarlierCycles = "earlier_cycles" { cycles }
    SettledForFixer = "settled_for_fixer" { findings }
    ConflictingFindings = "conflicting_findings" { conflicts }
    ParallelFixes = "parallel_fixes" { files }
    ConflictOnto = "conflict_onto" { onto }
    ConflictFiles = "conflict_files" { files }
    ConflictOutput = "conflict_output" { output }
    SourceSpecification = "source_specification" { name, specification }
    TasksToGroup = "tasks_to_group" { tasks }
    FindingsOnAnswer = "findings_on_answer" { findings }
    LastAnswer = "last_answer" { answer }
    AnswerRefused = "answer_refused" { reason }
    ResearchQuestion = "research_question" { number, researchers, question }
    ResearchReports = "research_reports" { reports }
    ResearchReport = "research_report" { number, report }
    Preparation = "preparation" { preparation }
    PreviousPlan = "previous_plan" { plan }
    DesignFile = "design_file" { path }
    PlanFile = "plan_file" { path }
    DocumentNotFound = "document_not_found" { heading }
    ItemToDo = "item_to_do" { number, count, title, description, others }
    ItemUnderReview = "item_under_review" { number, count, title, description, others }
    ReviewOfLastPass = "review_of_last_pass" { pass, review }
    FindingsOfLastPass = "findings_of_last_pass" { pass, findings }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn places(mut text: &str) -> BTreeSet<&str> {
        let mut names = BTreeSet::new();
        while let Some((_, name, after)) = next_place(text) {
            names.insert(name);
            text = after;
        }
        names
    }

    #[test]
    fn every_place_has_its_value_and_every_value_its_place() {
        for (file, text, values) in TEMPLATES {
            assert_eq!(places(text), values.iter().copied().collect(), "{file}.md");
        }
    }

    #[test]
    fn texts_without_values_have_no_place() {
        for (file, text) in TEXTS {
            assert!(!text.contains("{{") && !text.is_empty(), "{file}.md");
        }
    }

    #[test]
    fn a_value_that_looks_like_a_place_stays_as_it_is() {
        let task = Task { title: "{{description}}", description: "{{title}} }} {{" }.fill();
        insta::assert_snapshot!(task, @r"
        ## Task
        **{{description}}**
        {{title}} }} {{
        ");
    }

    proptest! {
        #[test]
        fn values_come_out_as_they_went_in(value in ".*") {
            prop_assert_eq!(fill("a {{x}} b {{x}}\n", &[("x", &value)]), format!("a {value} b {value}"));
        }

        #[test]
        fn any_text_can_be_a_template(text in "[{}x ]{0,20}") {
            prop_assert_eq!(fill(&text, &[]), text.trim_end());
        }
    }
}
