-- A task does not end before every message that waits for it is in its log: `append` as in 0001, with one more
-- comparison.

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
