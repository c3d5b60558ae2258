-- Webhooks, each with its cursor, and those that failed, which outlive their task. The two tables for them of the first
-- version were never written: an append need not write anything for webhooks.

-- Replicas of the version before may be purging tasks, which names these tables.
LOCK TABLE task, push_config, outbox IN ACCESS EXCLUSIVE MODE;
DROP TABLE push_config;
DROP TABLE outbox;
-- Statements of the version before still delete from them, and find nothing.
CREATE VIEW push_config AS SELECT NULL::bigint AS task WHERE false;
CREATE VIEW outbox AS SELECT NULL::bigint AS task WHERE false;
CREATE RULE nothing AS ON DELETE TO push_config DO INSTEAD NOTHING;
CREATE RULE nothing AS ON DELETE TO outbox DO INSTEAD NOTHING;

-- A webhook's record is a part of its task's `size`. Only open webhooks (state 0) are in the index; what changes with every
-- delivery is in no index.
CREATE TABLE webhook (
    task bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    revision bigint NOT NULL,
    done bigint NOT NULL,
    task_as_of bigint,
    failures bigint NOT NULL,
    failing_since bigint,
    due bigint NOT NULL,
    claimed_by bigint,
    claimed_until bigint,
    state smallint NOT NULL,
    record bytea NOT NULL,
    PRIMARY KEY (task, id)
) WITH (fillfactor = 80);
CREATE INDEX webhook_open ON webhook (task, id) WHERE state = 0;

CREATE TABLE failed_webhook (
    task bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    at bigint NOT NULL,
    record bytea NOT NULL,
    PRIMARY KEY (task, id)
);
CREATE INDEX failed_webhook_by_time ON failed_webhook (at, task, id);

-- One webhook. outcome: 0 stored, 1 not found, 2 full. `p_begin` NULL: it begins after the task's last event. The task's row is
-- locked, so no event comes between what is compared and what is written.
CREATE FUNCTION put_webhook(
    p_agent text, p_tenant text, p_owner text, p_task text, p_id text, p_record bytea, p_most bigint, p_begin bigint,
    OUT outcome smallint, OUT stored webhook
)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_task task;
    v_before webhook;
    v_change bigint;
    v_begin bigint;
BEGIN
    SELECT t.* INTO v_task FROM task t JOIN scope s ON s.id = t.scope
        WHERE s.agent = p_agent AND s.tenant = p_tenant AND s.owner = p_owner AND t.id = p_task FOR UPDATE OF t;
    IF NOT FOUND THEN
        outcome := 1;
        RETURN;
    END IF;
    SELECT w.* INTO v_before FROM webhook w WHERE w.task = v_task.key AND w.id = p_id;
    IF v_before.task IS NULL AND (SELECT count(*) FROM webhook w WHERE w.task = v_task.key) >= p_most THEN
        outcome := 2;
        RETURN;
    END IF;
    v_begin := coalesce(v_before.done, p_begin, v_task.version);
    INSERT INTO webhook AS w (task, id, revision, done, failures, due, state, record)
        VALUES (v_task.key, p_id, coalesce(v_before.revision, 0) + 1, v_begin, 0, 0,
                CASE WHEN v_task.ended AND v_begin >= v_task.version THEN 1 ELSE 0 END, p_record)
        ON CONFLICT (task, id) DO UPDATE SET revision = excluded.revision, done = excluded.done, task_as_of = NULL,
            failures = 0, failing_since = NULL, due = 0, claimed_by = NULL, claimed_until = NULL,
            state = excluded.state, record = excluded.record
        RETURNING w.* INTO stored;
    v_change := octet_length(p_record) - coalesce(octet_length(v_before.record), 0);
    UPDATE task t SET size = t.size + v_change WHERE t.key = v_task.key;
    PERFORM add_to_usage(p_owner, 0, v_change);
    outcome := 0;
END $$;

-- Answers whether it was there.
CREATE FUNCTION remove_webhook(p_agent text, p_tenant text, p_owner text, p_task text, p_id text) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    v_key bigint;
    v_length bigint;
BEGIN
    SELECT t.key INTO v_key FROM task t JOIN scope s ON s.id = t.scope
        WHERE s.agent = p_agent AND s.tenant = p_tenant AND s.owner = p_owner AND t.id = p_task FOR UPDATE OF t;
    DELETE FROM webhook w WHERE w.task = v_key AND w.id = p_id RETURNING octet_length(w.record) INTO v_length;
    IF v_length IS NULL THEN
        RETURN false;
    END IF;
    UPDATE task t SET size = t.size - v_length WHERE t.key = v_key;
    PERFORM add_to_usage(p_owner, 0, -v_length);
    RETURN true;
END $$;

-- If there are more than `p_most`, the oldest go.
CREATE FUNCTION put_failed_webhook(p_task bigint, p_id text, p_at bigint, p_record bytea, p_most bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO failed_webhook (task, id, at, record) VALUES (p_task, p_id, p_at, p_record)
        ON CONFLICT (task, id) DO UPDATE SET at = excluded.at, record = excluded.record;
    DELETE FROM failed_webhook f WHERE (f.task, f.id) IN (
        SELECT o.task, o.id FROM failed_webhook o ORDER BY o.at DESC, o.task DESC, o.id DESC OFFSET p_most);
END $$;
