-- What one loop did, found without going through the log of a run with a thousand of them.
CREATE INDEX events_by_loop ON events (run_id, loop_id, seq);
