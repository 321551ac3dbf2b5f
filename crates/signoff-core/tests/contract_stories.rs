//! What each contract makes of the answers reviewers give: honest, untidy and hostile ones.

mod contract_stories {
    mod auto;
    mod bodies;
    mod instructions;
    mod json;
    mod markdown;
    mod prefix;
    mod report;
    mod severity;
    mod told;
    mod tool;
    mod xml;
}
