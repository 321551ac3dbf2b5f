-- Whether a cost is worked out from list prices, at least in part.
ALTER TABLE runs ADD COLUMN cost_is_estimated INTEGER NOT NULL DEFAULT 0;
ALTER TABLE tasks ADD COLUMN cost_is_estimated INTEGER NOT NULL DEFAULT 0;
ALTER TABLE loops ADD COLUMN cost_is_estimated INTEGER NOT NULL DEFAULT 0;
ALTER TABLE loop_reviews ADD COLUMN cost_is_estimated INTEGER NOT NULL DEFAULT 0;
