-- Removes up to ARGV[2] message records from before ARGV[1] whose task does not exist (a later task with the same id
-- counts as the task). Answers how many.
local limit, purged, skipped = tonumber(ARGV[2]), 0, 0
while purged < limit do
  local refs = redis.call('ZRANGEBYSCORE', orphans_key, '-inf', '(' .. ARGV[1], 'LIMIT', skipped, 100)
  if #refs == 0 then break end
  for _, ref in ipairs(refs) do
    if purged >= limit then break end
    local path, bytes = unpack(redis.call('HMGET', record_key(ref), 'path', 'bytes'))
    if path and redis.call('EXISTS', task_key(path)) == 1 then
      skipped = skipped + 1
    else
      redis.call('UNLINK', record_key(ref))
      -- A record that somebody has removed; and Redis takes no `-0`.
      if bytes then add_usage(ref, 0, -tonumber(bytes)) end
      redis.call('ZREM', orphans_key, ref)
      purged = purged + 1
    end
  end
end
return purged
