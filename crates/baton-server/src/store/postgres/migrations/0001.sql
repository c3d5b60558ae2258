-- Tables, indexes and the four functions that compare and write. Names are looked up in the schema that
-- the connection's search_path names.
--
-- What an append touches decides the layout. A row can be rewritten within its page and without touching
-- an index (HOT) only when no column changes that any index names, its predicate included. So `version`
-- is in none, and what an artifact chunk writes is one event and one row version. Ids are compared by
-- their bytes (COLLATE "C"): a listing's cursor means the same on every store.
--
-- No foreign keys: each event would look its task up again, and a purge deletes by key anyhow.

CREATE TABLE meta (
    name text PRIMARY KEY,
    value text NOT NULL
);

CREATE TABLE scope (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    agent text COLLATE "C" NOT NULL,
    tenant text COLLATE "C" NOT NULL,
    owner text COLLATE "C" NOT NULL,
    UNIQUE (agent, tenant, owner)
);

-- `ended` and `foldable` are told by the store's client or follow from what it tells: no number of a
-- state is written down here.
CREATE TABLE task (
    key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    scope bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    context text COLLATE "C" NOT NULL,
    generation smallint NOT NULL,
    created_at bigint NOT NULL,
    version bigint NOT NULL,
    folded_through bigint NOT NULL DEFAULT 0,
    state smallint NOT NULL,
    status_at bigint NOT NULL,
    work smallint NOT NULL,
    attempts bigint NOT NULL,
    holder bigint,
    fence bigint NOT NULL,
    ended boolean NOT NULL,
    foldable boolean NOT NULL,
    -- Requests ever noted: the last request's id, so that ids are not used twice.
    requests bigint NOT NULL DEFAULT 0,
    UNIQUE (scope, id)
) WITH (fillfactor = 80);
CREATE INDEX task_by_time ON task (scope, status_at, id) INCLUDE (state);
CREATE INDEX task_by_context ON task (scope, context, status_at, id) INCLUDE (state);
CREATE INDEX task_open ON task (key) WHERE work <> 0;
CREATE INDEX task_ended ON task (status_at) WHERE ended;
CREATE INDEX task_foldable ON task (status_at) WHERE foldable;

-- How many tasks there are, as a sum: one row would make all births wait for each other.
CREATE TABLE task_count (
    shard integer PRIMARY KEY,
    tasks bigint NOT NULL
) WITH (fillfactor = 10);
INSERT INTO task_count SELECT shard, 0 FROM generate_series(0, 15) AS shard;

CREATE TABLE event (
    task bigint NOT NULL,
    number bigint NOT NULL,
    record bytea NOT NULL,
    PRIMARY KEY (task, number)
);

CREATE TABLE snapshot (
    task bigint PRIMARY KEY,
    version bigint NOT NULL,
    record bytea NOT NULL
);

-- Outlives its task, so it names the task by id.
CREATE TABLE message_record (
    scope bigint NOT NULL,
    message_id text COLLATE "C" NOT NULL,
    hash bytea NOT NULL,
    task text COLLATE "C",
    event bigint,
    reply bytea,
    at bigint NOT NULL,
    PRIMARY KEY (scope, message_id, hash)
);
CREATE INDEX message_record_by_time ON message_record (at);

CREATE TABLE request (
    task bigint NOT NULL,
    id bigint NOT NULL,
    record bytea NOT NULL,
    message_id text COLLATE "C",
    hash bytea,
    PRIMARY KEY (task, id)
);

-- Webhooks. Nothing writes these two yet.
CREATE TABLE push_config (
    task bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    record bytea NOT NULL,
    PRIMARY KEY (task, id)
);
CREATE TABLE outbox (
    task bigint NOT NULL,
    config text COLLATE "C" NOT NULL,
    event bigint NOT NULL,
    state smallint NOT NULL,
    attempts integer NOT NULL,
    due_at bigint NOT NULL,
    PRIMARY KEY (task, config, event)
);
CREATE INDEX outbox_due ON outbox (due_at) WHERE state = 0;

CREATE TABLE secret (
    name text COLLATE "C" PRIMARY KEY,
    value bytea NOT NULL
);

CREATE FUNCTION intern_scope(p_agent text, p_tenant text, p_owner text) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    v_scope bigint;
BEGIN
    SELECT id INTO v_scope FROM scope WHERE agent = p_agent AND tenant = p_tenant AND owner = p_owner;
    IF v_scope IS NULL THEN
        INSERT INTO scope (agent, tenant, owner) VALUES (p_agent, p_tenant, p_owner) ON CONFLICT DO NOTHING;
        SELECT id INTO v_scope FROM scope WHERE agent = p_agent AND tenant = p_tenant AND owner = p_owner;
    END IF;
    RETURN v_scope;
END $$;

-- Keeps a record and answers NULL, or keeps nothing and answers the record that was there. Waits for
-- whoever is about to write the same one.
CREATE FUNCTION keep_message(
    p_scope bigint, p_message_id text, p_hash bytea, p_task text, p_event bigint, p_reply bytea, p_at bigint
) RETURNS message_record
LANGUAGE plpgsql AS $$
DECLARE
    v_earlier message_record;
BEGIN
    LOOP
        INSERT INTO message_record (scope, message_id, hash, task, event, reply, at)
            VALUES (p_scope, p_message_id, p_hash, p_task, p_event, p_reply, p_at) ON CONFLICT DO NOTHING;
        IF FOUND THEN
            RETURN NULL;
        END IF;
        SELECT * INTO v_earlier FROM message_record
            WHERE scope = p_scope AND message_id = p_message_id AND hash = p_hash;
        IF FOUND THEN
            RETURN v_earlier;
        END IF;
        -- A sweep took it between the two statements: try again.
    END LOOP;
END $$;

-- One append. outcome: 0 written, 1 conflict, 2 duplicate (then `earlier` says of what).
--
-- Each statement sees what was committed before it started; the task's row is locked first, so what is
-- compared stays true until the end. Everything is compared before the first write, but for two births
-- of one id at the same moment: the later one takes its message record back.
CREATE FUNCTION append(
    p_agent text, p_tenant text, p_owner text, p_task text,
    p_birth boolean, p_context text, p_generation smallint, p_created_at bigint,
    p_expected bigint, p_fence bigint, p_events bytea[],
    p_state smallint, p_status_at bigint, p_work smallint, p_attempts bigint, p_holder bigint,
    p_new_fence bigint, p_ended boolean,
    p_snapshot_version bigint, p_snapshot bytea,
    p_message_id text, p_hash bytea, p_message_task text, p_message_event bigint, p_reply bytea, p_at bigint,
    p_settled bigint[], p_settled_events bigint[],
    OUT outcome smallint, OUT key bigint, OUT earlier_task text, OUT earlier_event bigint,
    OUT earlier_reply bytea, OUT earlier_at bigint
)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_scope bigint;
    v_key bigint;
    v_version bigint;
    v_fence bigint;
    v_folded bigint := 0;
    v_foldable boolean := false;
    v_earlier message_record;
    v_message_id text;
    v_hash bytea;
BEGIN
    IF p_birth THEN
        v_scope := intern_scope(p_agent, p_tenant, p_owner);
        SELECT t.key INTO v_key FROM task t WHERE t.scope = v_scope AND t.id = p_task;
    ELSE
        SELECT s.id INTO v_scope FROM scope s
            WHERE s.agent = p_agent AND s.tenant = p_tenant AND s.owner = p_owner;
        SELECT t.key, t.version, t.fence, t.folded_through INTO v_key, v_version, v_fence, v_folded
            FROM task t WHERE t.scope = v_scope AND t.id = p_task FOR UPDATE;
    END IF;

    -- A duplicate is told before a conflict.
    IF p_message_id IS NOT NULL THEN
        SELECT * INTO v_earlier FROM message_record m
            WHERE m.scope = v_scope AND m.message_id = p_message_id AND m.hash = p_hash;
    END IF;
    IF v_earlier.scope IS NULL THEN
        IF p_birth <> (v_key IS NULL)
            OR NOT p_birth AND (v_version, v_fence) IS DISTINCT FROM (p_expected, p_fence)
        THEN
            outcome := 1;
            RETURN;
        END IF;
        IF p_message_id IS NOT NULL THEN
            v_earlier := keep_message(
                v_scope, p_message_id, p_hash, p_message_task, p_message_event, p_reply, p_at);
        END IF;
    END IF;
    IF v_earlier.scope IS NOT NULL THEN
        outcome := 2;
        earlier_task := v_earlier.task;
        earlier_event := v_earlier.event;
        earlier_reply := v_earlier.reply;
        earlier_at := v_earlier.at;
        RETURN;
    END IF;

    v_version := p_expected + cardinality(p_events);
    -- Foldable: ended, with a snapshot that says all of it, and a log to drop.
    IF p_ended AND v_folded < v_version THEN
        v_foldable := v_version = coalesce(
            p_snapshot_version, (SELECT s.version FROM snapshot s WHERE s.task = v_key), 0);
    END IF;
    IF p_birth THEN
        INSERT INTO task (scope, id, context, generation, created_at, version, state, status_at, work,
                          attempts, holder, fence, ended, foldable)
            VALUES (v_scope, p_task, p_context, p_generation, p_created_at, v_version, p_state, p_status_at,
                    p_work, p_attempts, p_holder, p_new_fence, p_ended, v_foldable)
            ON CONFLICT (scope, id) DO NOTHING RETURNING task.key INTO v_key;
        IF v_key IS NULL THEN
            DELETE FROM message_record m
                WHERE m.scope = v_scope AND m.message_id = p_message_id AND m.hash = p_hash;
            outcome := 1;
            RETURN;
        END IF;
    ELSE
        UPDATE task t SET version = v_version, state = p_state, status_at = p_status_at, work = p_work,
                attempts = p_attempts, holder = p_holder, fence = p_new_fence, ended = p_ended,
                foldable = v_foldable
            WHERE t.key = v_key;
    END IF;

    INSERT INTO event (task, number, record)
        SELECT v_key, p_expected + e.place, e.record
            FROM unnest(p_events) WITH ORDINALITY AS e (record, place);
    IF p_snapshot IS NOT NULL THEN
        INSERT INTO snapshot (task, version, record) VALUES (v_key, p_snapshot_version, p_snapshot)
            ON CONFLICT (task) DO UPDATE SET version = excluded.version, record = excluded.record;
    END IF;
    FOR i IN 1 .. cardinality(p_settled) LOOP
        DELETE FROM request r WHERE r.task = v_key AND r.id = p_settled[i]
            RETURNING r.message_id, r.hash INTO v_message_id, v_hash;
        IF v_message_id IS NOT NULL AND p_settled_events[i] IS NOT NULL THEN
            UPDATE message_record m SET event = p_settled_events[i]
                WHERE m.scope = v_scope AND m.message_id = v_message_id AND m.hash = v_hash;
        END IF;
    END LOOP;
    IF p_birth THEN
        UPDATE task_count SET tasks = tasks + 1 WHERE shard = pg_backend_pid() % 16;
    END IF;
    outcome := 0;
    key := v_key;
END $$;

-- One request. outcome: 0 noted, 1 not found, 2 duplicate, 3 ended, 4 full. `head` is the task's row as it
-- was compared.
CREATE FUNCTION note_request(
    p_agent text, p_tenant text, p_owner text, p_task text, p_record bytea, p_most_pending bigint,
    p_message_id text, p_hash bytea, p_message_task text, p_message_event bigint, p_reply bytea, p_at bigint,
    OUT outcome smallint, OUT request bigint, OUT head task, OUT earlier message_record
)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_scope bigint;
BEGIN
    SELECT s.id INTO v_scope FROM scope s
        WHERE s.agent = p_agent AND s.tenant = p_tenant AND s.owner = p_owner;
    SELECT t.* INTO head FROM task t WHERE t.scope = v_scope AND t.id = p_task FOR UPDATE;
    IF p_message_id IS NOT NULL THEN
        SELECT m.* INTO earlier FROM message_record m
            WHERE m.scope = v_scope AND m.message_id = p_message_id AND m.hash = p_hash;
        IF FOUND THEN
            outcome := 2;
            RETURN;
        END IF;
    END IF;
    IF head.key IS NULL THEN
        outcome := 1;
        RETURN;
    END IF;
    IF head.ended THEN
        outcome := 3;
        RETURN;
    END IF;
    IF (SELECT count(*) FROM request r WHERE r.task = head.key) >= p_most_pending THEN
        outcome := 4;
        RETURN;
    END IF;
    IF p_message_id IS NOT NULL THEN
        earlier := keep_message(
            v_scope, p_message_id, p_hash, p_message_task, p_message_event, p_reply, p_at);
        IF earlier.scope IS NOT NULL THEN
            outcome := 2;
            RETURN;
        END IF;
    END IF;
    UPDATE task t SET requests = t.requests + 1 WHERE t.key = head.key RETURNING t.requests INTO request;
    INSERT INTO request (task, id, record, message_id, hash)
        VALUES (head.key, request, p_record, p_message_id, p_hash);
    outcome := 0;
END $$;
