//! The phrases with which a sentence contradicts an approval.

/// Phrases that contradict an approval anywhere in the text. A phrase is a sequence of words: `a|b` is one of
/// several, `a*` a word with this prefix, `~` up to four [`FILLERS`], `%` up to 16 words that do not settle a
/// finding, `^` the start of the sentence, `$` its end, and a capital letter one of the [`LISTS`].
pub(super) const CONTRADICTIONS: [&str; 46] = [
    "T",
    "^ f-* $",
    "f-* ~ still|remain*|persist*|reproduc*",
    "f-* % unresolved|unfixed",
    "f-* % open $",
    "f-* % still there|here|open|present|exists|broken|reproduc*|happens|fails|$",
    "f-* % remains|persists $|open|unfixed|there",
    "f-* % N ~ fixed|resolved|addressed|gone|solved|done|dealt",
    "^ ~ unresolved|unfixed|remaining|outstanding ~ f-*",
    "^ ~ unresolved|unfixed|remaining|outstanding finding|findings|issue|issues ~ f-*",
    "^ ~ N|still ~ fixed|resolved|addressed|open|there|present ~ f-*",
    "critical|blocking finding|issue|bug|problem % remains|persists ~ $",
    "V ~ R",
    "V ~ N ~ L this|it|yet|until|as|before|$",
    "^ ~ H ~ R $",
    "I|^ ~ request|requesting changes before|first|here|because|as|this|it|$",
    "^ ~ there is|are ~ critical|blocking|serious bug|bugs|issue|issues|problem|problems|defect|defects",
    "this|it is ~ blocker|showstopper $",
    "this|change|patch|branch is N ~ ready|safe|fit to|for ~ L|production",
    "^ ~ H ~ changes requested|required|needed",
    "^ ~ H ~ needs ~ work|changes|rework|fixes",
    "^ ~ H ~ N ~ approved|ready",
    "^ ~ ready to|for ~ L nope|not|false",
    "^ ~ ready to|for ~ L no because|until|as|it|this|the|there|$",
    "^ ~ ready to|for ~ L with|after ~ fixes|changes|conditions",
    "V ~ needs ~ work|changes|rework|fixes",
    "V ~ request changes",
    "V ~ issues|drift $",
    "this|it|change|patch must|should N be ~ merged|landed|shipped|approved",
    "V ~ N ~ approv*|accept*",
    "V ~ changes requested|required|needed",
    "^ ~ changes requested $",
    "I ~ W ~ A",
    "^ ~ W ~ A",
    "W my ~ A",
    "my ~ A ~ W|void|wrong|mistaken|mistake|premature|invalid|reject*|denied",
    "^ ~ A ~ W|void|denied|rejected|invalid ~ $",
    "I ~ N ~ approve|approving|accept|sign|sign-off ~ this|it|that|the|these|$|as",
    "I ~ refus*|declin* ~ approve|accept|merge|sign",
    "I ~ reject|rejecting|veto|nack|block|blocking this|it|these|$",
    "I ~ reject|rejecting|veto|nack|block|blocking ~ C",
    "I ~ disapprov*",
    "^ ~ reject|block this|it|these|$",
    "^ ~ reject|block ~ C",
    "^ rejected|disapproved|denied|nack|vetoed $",
    "^ ~ N ~ approve|approved|lgtm|merge|land|ship this|it|that|yet|until|as|before|in|$",
];

/// Phrases that withdraw an approval before them.
pub(super) const WITHDRAWALS: [&str; 30] = [
    "I ~ W it|that|this|$",
    "^ W $",
    "I ~ take|taking ~ back",
    "I ~ take|taking ~ A back",
    "disregard|ignore|nevermind ~ A|above",
    "N mind ~ A|above",
    "approv* by mistake",
    "I ~ approved ~ too|prematurely",
    "spoke too soon",
    "I ~ wrong|mistaken",
    "I ~ chang* ~ mind|verdict|vote",
    "second thought*",
    "scratch|strike that",
    "^ ~ wait|correction i|we|my|this|that|the|it|there|changes|no|not|actually|$",
    "I ~ N ~ stand",
    "I ~ chang* ~ changes requested",
    "^ ~ this|it|change is|was rejected|refused $",
    "do N approve|merge|land|ship this|it|yet|$",
    "dont approve|merge|land|ship this|it|yet|$",
    "S ~ N ~ approve|approved|approving|sign|sign-off",
    "S ~ N ~ L",
    "I ~ N think|believe ~ L|approved|ready|good",
    "N ready|safe|fit to|for ~ L|production",
    "^|S ~ N ready $",
    "I ~ request|requesting changes before|first|here|because|as|in|$",
    "S ~ should|must be rejected|blocked|reverted",
    "changes ~ required|needed|necessary ~ before|first|here|$",
    "^|S ~ needs|need|requires ~ changes|work|rework|fixing|fixes|fixed|reworked",
    "S ~ must|should ~ fixed|reworked",
    "^ ~ hold off|this|it",
];

/// Phrases about remaining findings that withdraw an approval before them, and prefixes that negate themselves:
/// `APPROVED: NO`.
pub(super) const REMAINING_FINDINGS: [&str; 6] = [
    "I ~ found|missed|overlooked ~ critical|blocking|serious|severe",
    "there is|are ~ critical|blocking|serious bug|bugs|issue|issues|problem|problems|defect|defects",
    "critical|blocking|serious issue|issues|bug|bugs|problem|problems|finding|findings ~ remain|remains|left|open",
    "^ approved nope",
    "^ approved no|false $|it|this|that|not|because|the",
    "^ approved ~ N approved",
];

pub(super) const LISTS: [(&str, &str); 13] = [
    ("I", "i we im id ill ive"),
    ("S", "i we im id this it change changes work diff patch commit branch pr"),
    ("C", "change changes work diff patch commit branch pr"),
    ("A", "approval approve approved verdict signoff sign-off lgtm"),
    ("H", "status assessment conclusion result outcome"),
    (
        "K",
        "fixed resolved addressed verified gone closed done solved refuted withdrawn deferred minor low nit optional",
    ),
    ("L", "merge merged merging land landed ship shipped release deploy"),
    ("N", "not never cannot cant dont wont shouldnt mustnt isnt no couldnt wouldnt nothing none"),
    ("P", "previous previously earlier last prior old former first round before"),
    ("R", "reject* fail failed fails denied deny blocked nack veto* disapprov* declin*"),
    ("T", "changes_requested request_changes needs_discussion needs_work not_approved"),
    ("V", "verdict decision recommendation"),
    ("W", "retract* withdraw* withdrew revok* rescind* recant* overturn* unapprov* revers* cancel*"),
];

/// Words that do not change a phrase: "I must *therefore* reject it", "*the* approval *is hereby* withdrawn".
pub(super) const FILLERS: &str = "a above actually again am an and any are as be been but can could do earlier final \
                                  first further had has have having hereby i initial is it just like longer more \
                                  must my need now of off on one overall please previous prior reason should so \
                                  some sorry still that the therefore this to want was were will would";
