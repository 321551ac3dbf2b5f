-- An approval is of one commit: which one, so that lists can tell whether a branch has moved since.
ALTER TABLE tasks ADD COLUMN approved_commit TEXT;
