-- The scopes of one owner are found without a scan, to count its tasks.
CREATE INDEX scope_by_owner ON scope (owner);
