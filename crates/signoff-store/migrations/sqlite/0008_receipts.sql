-- The messages that channels of notifications must get, and whether they accepted them. Kept for a week.
-- `at`: when it became due, or was accepted. `about` is the loop, empty for a run.
CREATE TABLE receipts (
    run_id    INTEGER NOT NULL,
    seq       INTEGER NOT NULL,
    event     TEXT    NOT NULL,
    about     TEXT    NOT NULL,
    channel   TEXT    NOT NULL,
    at        TEXT    NOT NULL,
    delivered INTEGER NOT NULL,
    PRIMARY KEY (run_id, seq, event, about, channel)
) STRICT, WITHOUT ROWID;
