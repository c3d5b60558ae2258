-- What each owner has stored is counted with each write, whatever tenants its tasks and messages name.

-- Replicas of the version before may be writing. A weaker lock would let their appends read a table and then wait to write to
-- it, while this waits for them: a deadlock. `scope` is first, since appends begin there. A birth that waits here goes on in the
-- function of the version before and is not counted: at most one task for each connection, in its owner's favour. What
-- those replicas fold is not counted either; it is given back when the task is purged.
LOCK TABLE scope, task, message_record, request IN ACCESS EXCLUSIVE MODE;

-- `size`: what a task counts, without its message records; `uncounted`: how much of that is not in `owner_usage` yet. It
-- is 0 in tasks that are idle or have ended. No index names the two, so an append stays within its page (HOT). The first
-- is not named `bytes`, since lists of the version before have a column of that name.
ALTER TABLE task ADD COLUMN size bigint NOT NULL DEFAULT 0, ADD COLUMN uncounted bigint NOT NULL DEFAULT 0;
UPDATE task t SET size = coalesce((SELECT sum(octet_length(e.record)) FROM event e
        WHERE e.task = t.key AND e.number > t.folded_through), 0)
    + coalesce((SELECT octet_length(s.record) FROM snapshot s WHERE s.task = t.key), 0)
    + coalesce((SELECT sum(octet_length(r.record)) FROM request r WHERE r.task = t.key), 0);

-- What a message record counts: see `MessageRecord::counted_bytes`.
CREATE FUNCTION record_bytes(p_message_id text, p_task text, p_reply bytea) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
    SELECT 256::bigint + octet_length(p_message_id) + coalesce(octet_length(p_task), 0)
        + coalesce(octet_length(p_reply), 0)
$$;

-- A sum, like `tally`: sixteen rows are shared out among connections, and removals have one of their own.
CREATE TABLE owner_usage (
    owner text COLLATE "C" NOT NULL,
    shard integer NOT NULL,
    tasks bigint NOT NULL,
    bytes bigint NOT NULL,
    PRIMARY KEY (owner, shard)
) WITH (fillfactor = 50);
INSERT INTO owner_usage (owner, shard, tasks, bytes)
    SELECT s.owner, 0, sum(u.tasks), sum(u.bytes) FROM (
        SELECT scope, count(*) AS tasks, sum(size) AS bytes FROM task GROUP BY scope
        UNION ALL
        SELECT scope, 0, sum(record_bytes(message_id, task, reply)) FROM message_record GROUP BY scope
    ) u JOIN scope s ON s.id = u.scope GROUP BY s.owner;
DROP INDEX scope_by_owner;

CREATE FUNCTION add_to_usage(p_owner text, p_tasks bigint, p_bytes bigint) RETURNS void
LANGUAGE sql AS $$
    INSERT INTO owner_usage (owner, shard, tasks, bytes) VALUES (p_owner, pg_backend_pid() % 16, p_tasks, p_bytes)
        ON CONFLICT (owner, shard) DO UPDATE
        SET tasks = owner_usage.tasks + excluded.tasks, bytes = owner_usage.bytes + excluded.bytes
$$;

-- The same for what a sweep removes. Rows are taken in the order of owners.
CREATE OR REPLACE FUNCTION tasks_removed() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO tally (scope, state, shard, tasks)
        SELECT scope, state, 16, -count(*) FROM removed GROUP BY scope, state ORDER BY scope, state
        ON CONFLICT (scope, state, shard) DO UPDATE SET tasks = tally.tasks + excluded.tasks;
    INSERT INTO owner_usage (owner, shard, tasks, bytes)
        SELECT s.owner, 16, -count(*), -sum(r.size) FROM removed r JOIN scope s ON s.id = r.scope
        GROUP BY s.owner ORDER BY s.owner
        ON CONFLICT (owner, shard) DO UPDATE
        SET tasks = owner_usage.tasks + excluded.tasks, bytes = owner_usage.bytes + excluded.bytes;
    RETURN NULL;
END $$;

CREATE FUNCTION records_removed() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO owner_usage (owner, shard, tasks, bytes)
        SELECT s.owner, 16, 0, -sum(record_bytes(r.message_id, r.task, r.reply))
        FROM removed r JOIN scope s ON s.id = r.scope GROUP BY s.owner ORDER BY s.owner
        ON CONFLICT (owner, shard) DO UPDATE SET bytes = owner_usage.bytes + excluded.bytes;
    RETURN NULL;
END $$;
CREATE TRIGGER records_removed AFTER DELETE ON message_record REFERENCING OLD TABLE AS removed
    FOR EACH STATEMENT EXECUTE FUNCTION records_removed();

-- As `keep_message` was: keeps a record and answers NULL, or keeps nothing and answers the record that was there. Waits for
-- whoever is about to write the same one.
CREATE FUNCTION keep_record(
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

-- The same, and counts the record for its owner. For replies; the functions below count all that they write at once.
CREATE OR REPLACE FUNCTION keep_message(
    p_scope bigint, p_message_id text, p_hash bytea, p_task text, p_event bigint, p_reply bytea, p_at bigint
) RETURNS message_record
LANGUAGE plpgsql AS $$
DECLARE
    v_earlier message_record;
BEGIN
    v_earlier := keep_record(p_scope, p_message_id, p_hash, p_task, p_event, p_reply, p_at);
    IF v_earlier.scope IS NULL THEN
        PERFORM add_to_usage(
            (SELECT s.owner FROM scope s WHERE s.id = p_scope), 0, record_bytes(p_message_id, p_task, p_reply));
    END IF;
    RETURN v_earlier;
END $$;

-- One append. outcome: 0 written, 1 conflict, 2 duplicate (then `earlier` says of what).
--
-- Each statement sees what was committed before it started; the task's row is locked first, so what is
-- compared stays true until the end. Everything is compared before the first write, but for two births
-- of one id at the same moment: the later one takes its message record back.
CREATE OR REPLACE FUNCTION append(
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
    v_length bigint;
    -- What the task counts after this append, and how much of it is not in `owner_usage`.
    v_size bigint := 0;
    v_uncounted bigint := 0;
    v_change bigint := 0;
    v_unindexed boolean := false;
BEGIN
    IF p_birth THEN
        v_scope := intern_scope(p_agent, p_tenant, p_owner);
        SELECT t.key INTO v_key FROM task t WHERE t.scope = v_scope AND t.id = p_task;
    ELSE
        SELECT s.id INTO v_scope FROM scope s
            WHERE s.agent = p_agent AND s.tenant = p_tenant AND s.owner = p_owner;
        SELECT t.key, t.version, t.fence, t.folded_through, t.size, t.uncounted,
                (t.state, t.status_at, t.work) = (p_state, p_status_at, p_work) AND p_work <> 0 AND NOT p_ended
            INTO v_key, v_version, v_fence, v_folded, v_size, v_uncounted, v_unindexed
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
        -- Each message that waits must be one of the events that end the task.
        IF NOT p_birth AND p_ended AND cardinality(p_events) > 0 AND EXISTS (
            SELECT 1 FROM request r WHERE r.task = v_key AND r.message_id IS NOT NULL AND NOT EXISTS (
                SELECT 1 FROM unnest(p_settled, p_settled_events) AS s (request, event)
                    WHERE s.request = r.id AND s.event IS NOT NULL))
        THEN
            outcome := 1;
            RETURN;
        END IF;
        IF p_message_id IS NOT NULL THEN
            v_earlier := keep_record(
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
    -- Foldable: ended, with a snapshot that tells events which are still in the log.
    IF p_ended THEN
        v_foldable := v_folded < coalesce(
            p_snapshot_version, (SELECT s.version FROM snapshot s WHERE s.task = v_key), 0);
    END IF;
    FOR i IN 1 .. cardinality(p_settled) LOOP
        DELETE FROM request r WHERE r.task = v_key AND r.id = p_settled[i]
            RETURNING r.message_id, r.hash, octet_length(r.record) INTO v_message_id, v_hash, v_length;
        v_change := v_change - coalesce(v_length, 0);
        IF v_message_id IS NOT NULL AND p_settled_events[i] IS NOT NULL THEN
            UPDATE message_record m SET event = p_settled_events[i]
                WHERE m.scope = v_scope AND m.message_id = v_message_id AND m.hash = v_hash;
        END IF;
    END LOOP;
    SELECT v_change + coalesce(sum(octet_length(e.record)), 0) INTO v_change FROM unnest(p_events) AS e (record);
    IF p_snapshot IS NOT NULL THEN
        v_change := v_change + octet_length(p_snapshot) - coalesce(
            (SELECT octet_length(s.record) FROM snapshot s WHERE s.task = v_key), 0);
    END IF;
    v_size := v_size + v_change;
    v_uncounted := v_uncounted + v_change;
    -- What is added to the owner's row: nothing while only the log of an open task grows, as in a stream of chunks.
    v_change := 0;
    IF NOT v_unindexed THEN
        v_change := v_uncounted;
        v_uncounted := 0;
    END IF;
    IF p_message_id IS NOT NULL THEN
        v_change := v_change + record_bytes(p_message_id, p_message_task, p_reply);
    END IF;
    IF p_birth THEN
        INSERT INTO task (scope, id, context, generation, created_at, version, state, status_at, work,
                          attempts, holder, fence, ended, foldable, size)
            VALUES (v_scope, p_task, p_context, p_generation, p_created_at, v_version, p_state, p_status_at,
                    p_work, p_attempts, p_holder, p_new_fence, p_ended, v_foldable, v_size)
            ON CONFLICT (scope, id) DO NOTHING RETURNING task.key INTO v_key;
        IF v_key IS NULL THEN
            -- The trigger takes it from what the owner has, so it is added first.
            IF p_message_id IS NOT NULL THEN
                PERFORM add_to_usage(p_owner, 0, record_bytes(p_message_id, p_message_task, p_reply));
            END IF;
            DELETE FROM message_record m
                WHERE m.scope = v_scope AND m.message_id = p_message_id AND m.hash = p_hash;
            outcome := 1;
            RETURN;
        END IF;
    ELSE
        UPDATE task t SET version = v_version, state = p_state, status_at = p_status_at, work = p_work,
                attempts = p_attempts, holder = p_holder, fence = p_new_fence, ended = p_ended,
                foldable = v_foldable, size = v_size, uncounted = v_uncounted
            WHERE t.key = v_key;
    END IF;

    INSERT INTO event (task, number, record)
        SELECT v_key, p_expected + e.place, e.record
            FROM unnest(p_events) WITH ORDINALITY AS e (record, place);
    IF p_snapshot IS NOT NULL THEN
        INSERT INTO snapshot (task, version, record) VALUES (v_key, p_snapshot_version, p_snapshot)
            ON CONFLICT (task) DO UPDATE SET version = excluded.version, record = excluded.record;
    END IF;
    IF p_birth THEN
        UPDATE task_count SET tasks = tasks + 1 WHERE shard = pg_backend_pid() % 16;
    END IF;
    -- The last row that is locked, in all that writes: so no two of them wait for each other in a circle.
    IF p_birth OR v_change <> 0 THEN
        PERFORM add_to_usage(p_owner, p_birth::int, v_change);
    END IF;
    outcome := 0;
    key := v_key;
END $$;

-- One request. outcome: 0 noted, 1 not found, 2 duplicate, 3 ended, 4 full. `head` is the task's row as it
-- was compared.
CREATE OR REPLACE FUNCTION note_request(
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
        earlier := keep_record(
            v_scope, p_message_id, p_hash, p_message_task, p_message_event, p_reply, p_at);
        IF earlier.scope IS NOT NULL THEN
            outcome := 2;
            RETURN;
        END IF;
    END IF;
    UPDATE task t SET requests = t.requests + 1, size = t.size + octet_length(p_record)
        WHERE t.key = head.key RETURNING t.requests INTO request;
    INSERT INTO request (task, id, record, message_id, hash)
        VALUES (head.key, request, p_record, p_message_id, p_hash);
    PERFORM add_to_usage(p_owner, 0, octet_length(p_record)
        + CASE WHEN p_message_id IS NULL THEN 0 ELSE record_bytes(p_message_id, p_message_task, p_reply) END);
    outcome := 0;
END $$;
