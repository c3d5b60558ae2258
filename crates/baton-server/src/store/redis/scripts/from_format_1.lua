-- Migrates keys of format 1. ARGV: the keys, without the bucket.

-- In format 2 message records are named by the digest of the hash: 62 of the 64 hex digits in format 1.
local function rename_record(old)
  local scope, digest, rest = string.match(old, '^([^:]*:[^:]*:[^:]*:)(' .. string.rep('%x', 62) .. ')%x%x(:.*)$')
  if not scope then return end
  local at, path = unpack(redis.call('HMGET', record_key(old), 'at', 'path'))
  if not at then return end
  local new = scope .. digest .. rest
  local other = redis.call('HGET', record_key(new), 'at')
  -- If a message was recorded under two hash versions, the first record is kept.
  if other and tonumber(other) <= tonumber(at) then
    redis.call('UNLINK', record_key(old))
  else
    redis.call('RENAME', record_key(old), record_key(new))
  end
  if redis.call('ZREM', orphans_key, old) == 1 then redis.call('ZADD', orphans_key, at, new) end
  if path then
    if redis.call('SREM', owned_key(path), old) == 1 then redis.call('SADD', owned_key(path), new) end
    local waiting = redis.call('HGETALL', request_refs_key(path))
    for i = 1, #waiting, 2 do
      if waiting[i + 1] == old then redis.call('HSET', request_refs_key(path), waiting[i], new) end
    end
  end
end

-- Format 1 did not mark ended tasks as foldable if their snapshot was older than the last event.
local function mark_foldable(path)
  local head = read_head(path)
  if head and head.ended == '1' and tonumber(head.told or '0') > tonumber(head.folded) then
    redis.call('ZADD', foldable_key, head.status_at, path)
  end
end

for _, key in ipairs(ARGV) do
  local kind, name = string.sub(key, 1, 2), string.sub(key, 3)
  if kind == 'm:' then rename_record(name) elseif kind == 't:' then mark_foldable(name) end
end
