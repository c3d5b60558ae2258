-- What a list costs does not depend on how many tasks there are, nor on how large they are.

-- Replicas of the version before may be writing: what they write comes before the count or after the triggers.
LOCK TABLE task IN SHARE ROW EXCLUSIVE MODE;

-- How many tasks of a scope stand in a state, as a sum: one row would make all appends of an agent wait for each other.
-- Births and changes of state share sixteen rows out among connections; removals have one of their own.
CREATE TABLE tally (
    scope bigint NOT NULL,
    state smallint NOT NULL,
    shard integer NOT NULL,
    tasks bigint NOT NULL,
    PRIMARY KEY (scope, state, shard)
) WITH (fillfactor = 50);
INSERT INTO tally SELECT scope, state, 0, count(*) FROM task GROUP BY scope, state;

CREATE FUNCTION add_to_tally(p_scope bigint, p_state smallint, p_change bigint) RETURNS void
LANGUAGE sql AS $$
    INSERT INTO tally (scope, state, shard, tasks) VALUES (p_scope, p_state, pg_backend_pid() % 16, p_change)
        ON CONFLICT (scope, state, shard) DO UPDATE SET tasks = tally.tasks + excluded.tasks
$$;

-- Triggers, so that there is no way to write a task past the counters. Rows are taken in the order of states, so that
-- two appends never wait for each other in a circle.
CREATE FUNCTION task_moved() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        PERFORM add_to_tally(NEW.scope, NEW.state, 1);
    ELSIF OLD.state < NEW.state THEN
        PERFORM add_to_tally(OLD.scope, OLD.state, -1), add_to_tally(NEW.scope, NEW.state, 1);
    ELSE
        PERFORM add_to_tally(NEW.scope, NEW.state, 1), add_to_tally(OLD.scope, OLD.state, -1);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER task_born AFTER INSERT ON task FOR EACH ROW EXECUTE FUNCTION task_moved();
CREATE TRIGGER task_moved AFTER UPDATE OF state ON task FOR EACH ROW
    WHEN (OLD.state <> NEW.state) EXECUTE FUNCTION task_moved();

CREATE FUNCTION tasks_removed() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO tally (scope, state, shard, tasks)
        SELECT scope, state, 16, -count(*) FROM removed GROUP BY scope, state ORDER BY scope, state
        ON CONFLICT (scope, state, shard) DO UPDATE SET tasks = tally.tasks + excluded.tasks;
    RETURN NULL;
END $$;
CREATE TRIGGER tasks_removed AFTER DELETE ON task REFERENCING OLD TABLE AS removed
    FOR EACH STATEMENT EXECUTE FUNCTION tasks_removed();

-- The events that decide what a status says: user messages and statuses, by the letter in their records. The last one
-- is all that a list without history needs of a log; folding keeps it.
CREATE INDEX event_deciding ON event (task, number) WHERE substring(record FROM 3 FOR 1) IN ('U', 'S');
