-- A scope goes with its last task and message record, and its rows in `tally` with it: callers choose tenants, and one who
-- invents a tenant for every message must not grow the tables for ever.

-- Replicas of the version before may be writing: as in 0007. A birth that waits here goes on without the lock on its scope
-- that `intern_scope` takes from now on; its scope is not removed, since it is not in `scope_to_check` yet.
LOCK TABLE scope, task, message_record, request IN ACCESS EXCLUSIVE MODE;

-- Scopes that something was removed from, so that a sweep need not look at all scopes to find those that are empty. Written
-- in the same transaction as the removal: what one sweep leaves, because somebody writes to the scope, the next one finds.
CREATE TABLE scope_to_check (
    scope bigint PRIMARY KEY
);
INSERT INTO scope_to_check SELECT id FROM scope s
    WHERE NOT EXISTS (SELECT 1 FROM task t WHERE t.scope = s.id)
    AND NOT EXISTS (SELECT 1 FROM message_record m WHERE m.scope = s.id);

-- The scope's number. Its row is locked until the end of the transaction, so that no sweep removes it meanwhile; writers do
-- not wait for each other.
CREATE OR REPLACE FUNCTION intern_scope(p_agent text, p_tenant text, p_owner text) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    v_scope bigint;
BEGIN
    LOOP
        SELECT id INTO v_scope FROM scope
            WHERE agent = p_agent AND tenant = p_tenant AND owner = p_owner FOR KEY SHARE;
        IF FOUND THEN
            RETURN v_scope;
        END IF;
        INSERT INTO scope (agent, tenant, owner) VALUES (p_agent, p_tenant, p_owner)
            ON CONFLICT DO NOTHING RETURNING id INTO v_scope;
        IF FOUND THEN
            RETURN v_scope;
        END IF;
        -- Another transaction has just inserted it, and a sweep may even have removed it again.
    END LOOP;
END $$;

-- As in 0007, and the scopes are noted: after all other rows, in the order of scopes. A row that is there already is written
-- again, which locks it: a sweep that checks it now, and does not see this transaction yet, must not take it away.
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
    INSERT INTO scope_to_check SELECT DISTINCT scope FROM removed ORDER BY scope
        ON CONFLICT (scope) DO UPDATE SET scope = excluded.scope;
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION records_removed() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO owner_usage (owner, shard, tasks, bytes)
        SELECT s.owner, 16, 0, -sum(record_bytes(r.message_id, r.task, r.reply))
        FROM removed r JOIN scope s ON s.id = r.scope GROUP BY s.owner ORDER BY s.owner
        ON CONFLICT (owner, shard) DO UPDATE SET bytes = owner_usage.bytes + excluded.bytes;
    INSERT INTO scope_to_check SELECT DISTINCT scope FROM removed ORDER BY scope
        ON CONFLICT (scope) DO UPDATE SET scope = excluded.scope;
    RETURN NULL;
END $$;

-- Removes the scopes in which nothing is left, of up to `p_limit` to be checked. It waits for nobody, so nobody waits for it
-- in a circle: a scope that a transaction writes to is left for the next sweep. Whoever then wants the scope waits for the
-- end of this transaction in `intern_scope`.
CREATE FUNCTION remove_empty_scopes(p_limit bigint) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_scope bigint;
BEGIN
    FOR v_scope IN
        SELECT c.scope FROM scope_to_check c ORDER BY c.scope LIMIT p_limit FOR UPDATE SKIP LOCKED
    LOOP
        PERFORM FROM scope s WHERE s.id = v_scope FOR UPDATE SKIP LOCKED;
        IF FOUND THEN
            -- A statement of its own: it sees what was committed before the lock was taken.
            IF NOT EXISTS (SELECT 1 FROM task t WHERE t.scope = v_scope)
                AND NOT EXISTS (SELECT 1 FROM message_record m WHERE m.scope = v_scope)
            THEN
                DELETE FROM tally c WHERE c.scope = v_scope;
                DELETE FROM scope s WHERE s.id = v_scope;
            END IF;
            DELETE FROM scope_to_check c WHERE c.scope = v_scope;
        END IF;
    END LOOP;
END $$;
