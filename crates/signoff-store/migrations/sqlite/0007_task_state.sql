-- Where a task stands in one word, and the commits with which it landed: in the default branch, in its run's branch.
ALTER TABLE tasks ADD COLUMN state TEXT NOT NULL DEFAULT 'queued';
ALTER TABLE tasks ADD COLUMN landed_commit TEXT;
ALTER TABLE tasks ADD COLUMN run_commit TEXT;
