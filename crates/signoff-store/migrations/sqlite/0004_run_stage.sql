-- How far each run is, for lists that must come at once.
-- `stage`: queued, preparing, working, blocked, reviewing, landing, done. `group_number` and `group_count` are null
-- where tasks are not worked in groups; `branch` where they do not come together on one.
ALTER TABLE runs ADD COLUMN stage TEXT NOT NULL DEFAULT 'done';
ALTER TABLE runs ADD COLUMN group_number INTEGER;
ALTER TABLE runs ADD COLUMN group_count INTEGER;
ALTER TABLE runs ADD COLUMN branch TEXT;
ALTER TABLE runs ADD COLUMN specification TEXT;
