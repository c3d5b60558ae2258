-- A message record is found by the digest of its hash, whatever version is behind it: the digest is all that is kept.

-- Replicas of the version before ask with all 32 bytes and would run a repeated message again. From here on they are
-- refused by the two checks.
LOCK TABLE message_record, request IN SHARE ROW EXCLUSIVE MODE;

-- A message on record under two versions: its first record counts.
DELETE FROM message_record m USING message_record f
    WHERE f.scope = m.scope AND f.message_id = m.message_id
        AND substring(f.hash FOR 31) = substring(m.hash FOR 31) AND (f.at, f.hash) < (m.at, m.hash);
UPDATE message_record SET hash = substring(hash FOR 31);
UPDATE request SET hash = substring(hash FOR 31) WHERE hash IS NOT NULL;
ALTER TABLE message_record ADD CHECK (octet_length(hash) = 31);
ALTER TABLE request ADD CHECK (octet_length(hash) = 31);

-- Tasks that ended with a snapshot of an earlier version.
UPDATE task SET foldable = true WHERE ended AND NOT foldable
    AND (SELECT s.version FROM snapshot s WHERE s.task = task.key) > folded_through;
