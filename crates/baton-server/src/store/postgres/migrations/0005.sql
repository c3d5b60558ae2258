-- Credentials that Baton issued (API keys): an id and a record, see `store/record/credential.rs`.
CREATE TABLE credential (
    id text PRIMARY KEY,
    record bytea NOT NULL
);
