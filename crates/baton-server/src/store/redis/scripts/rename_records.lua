-- Names the message records of these references by the digests of their hashes: 62 digits of the 64 they had in format 1.
for _, old in ipairs(ARGV) do
  local scope, digest, rest = string.match(old, '^([^:]*:[^:]*:[^:]*:)(' .. string.rep('%x', 62) .. ')%x%x(:.*)$')
  local at, path
  if scope then at, path = unpack(redis.call('HMGET', record_key(old), 'at', 'path')) end
  if at then
    local new = scope .. digest .. rest
    local other = redis.call('HGET', record_key(new), 'at')
    -- A message on record under two versions: its first record counts.
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
end
