-- The tracker a task comes from, and how it is called there. Of the tasks that are not cancelled no two have the same.
ALTER TABLE tasks ADD COLUMN tracker TEXT;
ALTER TABLE tasks ADD COLUMN tracker_id TEXT;
CREATE INDEX tasks_by_tracker ON tasks (tracker, tracker_id) WHERE tracker IS NOT NULL;
