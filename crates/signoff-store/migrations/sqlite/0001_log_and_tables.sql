-- The log is the truth. Run 0 is the queue: facts about tasks that no run has taken up.
CREATE TABLE events (
    position INTEGER PRIMARY KEY AUTOINCREMENT,
    run_id   INTEGER NOT NULL,
    seq      INTEGER NOT NULL,
    at       TEXT    NOT NULL,
    version  INTEGER NOT NULL,
    kind     TEXT    NOT NULL,
    loop_id  TEXT,
    task_id  INTEGER,
    body     TEXT    NOT NULL,
    UNIQUE (run_id, seq)
) STRICT;
CREATE INDEX events_by_task ON events (task_id) WHERE task_id IS NOT NULL;

-- The last assigned numbers: `task`, `run`.
CREATE TABLE counters (
    name  TEXT    PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Every run that was opened. A write with an older fence is refused.
CREATE TABLE leases (
    run_id    INTEGER PRIMARY KEY,
    fence     INTEGER NOT NULL,
    opened_at TEXT    NOT NULL
) STRICT;

-- Requests of people to a run that another process works on. `settled` without `refusal`: the request was carried out.
CREATE TABLE requests (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    run_id  INTEGER NOT NULL,
    loop_id TEXT    NOT NULL,
    command TEXT    NOT NULL,
    settled INTEGER NOT NULL DEFAULT 0,
    refusal TEXT
) STRICT;
CREATE INDEX requests_open ON requests (run_id) WHERE settled = 0;

-- Everything below is computed from the log: it can be deleted and rebuilt.

-- `status`: running, blocked, completed, failed, cancelled. `open`: there is something left to do in it.
CREATE TABLE runs (
    id            INTEGER PRIMARY KEY,
    preset        TEXT    NOT NULL,
    status        TEXT    NOT NULL,
    open          INTEGER NOT NULL,
    started_at    TEXT,
    ended_at      TEXT,
    cost_usd      REAL    NOT NULL,
    input_tokens  INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL
) STRICT;
CREATE INDEX runs_open ON runs (id) WHERE open;

CREATE TABLE tasks (
    id                INTEGER PRIMARY KEY,
    run_id            INTEGER,
    loop_id           TEXT,
    title             TEXT    NOT NULL,
    type              TEXT    NOT NULL,
    status            TEXT    NOT NULL,
    outcome           TEXT,
    final_verdict     TEXT,
    reason            TEXT,
    auto_review       INTEGER NOT NULL,
    review_cycle      INTEGER NOT NULL,
    max_review_cycles INTEGER,
    branch            TEXT,
    base              TEXT,
    worktree          TEXT,
    phase             TEXT,
    iteration         INTEGER NOT NULL,
    open_findings     INTEGER NOT NULL,
    cost_usd          REAL    NOT NULL,
    input_tokens      INTEGER NOT NULL,
    output_tokens     INTEGER NOT NULL,
    depends_on        TEXT    NOT NULL,
    continues         INTEGER,
    added_at          TEXT    NOT NULL,
    started_at        TEXT,
    ended_at          TEXT
) STRICT;
CREATE INDEX tasks_queued ON tasks (id) WHERE run_id IS NULL AND status = 'pending';

-- `status`: pending, running, needs_revision, stuck, completed, failed, interrupted (cancelled by a person).
-- A loop whose process died is still `running` here: that no process drives it shows only in the free lease.
-- `review_status`: pending, in_progress, passed, failed. `revision_attempts` are those of the current task.
CREATE TABLE loops (
    id                        TEXT    NOT NULL,
    run_id                    INTEGER NOT NULL REFERENCES runs (id),
    task_id                   INTEGER,
    status                    TEXT    NOT NULL,
    iteration                 INTEGER NOT NULL,
    last_checkpoint_review_at INTEGER NOT NULL,
    review_status             TEXT    NOT NULL,
    last_review_id            TEXT,
    revision_attempts         INTEGER NOT NULL,
    worktree_path             TEXT,
    title                     TEXT    NOT NULL,
    branch                    TEXT,
    phase                     TEXT    NOT NULL,
    pass                      INTEGER NOT NULL,
    cycle                     INTEGER NOT NULL,
    head_commit               TEXT,
    outcome                   TEXT,
    reason                    TEXT,
    cost_usd                  REAL    NOT NULL,
    started_at                TEXT,
    ended_at                  TEXT,
    PRIMARY KEY (run_id, id)
) STRICT, WITHOUT ROWID;

-- One row per review that arrived. `task_id` is null for checkpoint reviews.
CREATE TABLE loop_reviews (
    id                 TEXT    PRIMARY KEY,
    run_id             INTEGER NOT NULL REFERENCES runs (id),
    loop_id            TEXT    NOT NULL,
    task_id            INTEGER,
    passed             INTEGER NOT NULL,
    interpreted_intent TEXT,
    intent_satisfied   INTEGER,
    reviewed_at        TEXT    NOT NULL,
    cost_usd           REAL    DEFAULT 0,
    reviewer           TEXT    NOT NULL,
    verdict            TEXT    NOT NULL,
    pass               INTEGER NOT NULL,
    phase              TEXT    NOT NULL,
    cycle              INTEGER NOT NULL,
    commit_id          TEXT,
    summary            TEXT    NOT NULL,
    FOREIGN KEY (run_id, loop_id) REFERENCES loops (run_id, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX loop_reviews_by_loop ON loop_reviews (run_id, loop_id);

-- One row per finding of a review. `finding_id` is the ledger's; `state` is null for what the ledger does not
-- hold: the round is not over, the review did not count, or it was a checkpoint's.
CREATE TABLE review_issues (
    id             TEXT    PRIMARY KEY,
    run_id         INTEGER NOT NULL REFERENCES runs (id),
    loop_id        TEXT,
    loop_review_id TEXT    REFERENCES loop_reviews (id),
    task_id        INTEGER,
    file           TEXT,
    line           INTEGER,
    type           TEXT    NOT NULL,
    severity       TEXT    NOT NULL,
    description    TEXT    NOT NULL,
    suggestion     TEXT,
    state          TEXT,
    finding_id     TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX review_issues_by_review ON review_issues (loop_review_id);

-- The ledgers: the current state of every finding of every loop.
CREATE TABLE findings (
    id          TEXT    NOT NULL,
    run_id      INTEGER NOT NULL,
    loop_id     TEXT    NOT NULL,
    task_id     INTEGER,
    state       TEXT    NOT NULL,
    severity    TEXT    NOT NULL,
    type        TEXT    NOT NULL,
    file        TEXT,
    line        INTEGER,
    description TEXT    NOT NULL,
    suggestion  TEXT,
    PRIMARY KEY (id, run_id, loop_id)
) STRICT, WITHOUT ROWID;

-- Shown as `qN`, numbered in the order they were asked. `number` is the loop's own.
CREATE TABLE questions (
    id          INTEGER PRIMARY KEY,
    run_id      INTEGER NOT NULL,
    loop_id     TEXT    NOT NULL,
    number      INTEGER NOT NULL,
    task_id     INTEGER,
    text        TEXT    NOT NULL,
    choices     TEXT    NOT NULL,
    asked_at    TEXT    NOT NULL,
    closed_at   TEXT,
    answer      TEXT,
    answered_by TEXT,
    UNIQUE (run_id, loop_id, number)
) STRICT;
CREATE INDEX questions_open ON questions (id) WHERE closed_at IS NULL;
