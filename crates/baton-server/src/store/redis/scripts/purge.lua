-- Removes the tasks whose paths are ARGV[3] and following, if they ended before ARGV[1] and have no open webhooks or ended
-- before ARGV[2]. Answers how many.
local purged = 0
for i = 3, #ARGV do
  local path = ARGV[i]
  local head = read_head(path)
  if head and head.ended == '1' and tonumber(head.status_at) < tonumber(ARGV[1])
    and may_go(path, head.status_at, ARGV[2]) then
    unlist(head)
    for _, key in ipairs({ ended_key, foldable_key, open_key, hooked_key, hooks_key }) do redis.call('ZREM', key, path) end
    for _, ref in ipairs(redis.call('SMEMBERS', owned_key(path))) do
      local at = redis.call('HGET', record_key(ref), 'at')
      if at then redis.call('ZADD', orphans_key, at, ref) end
    end
    redis.call('UNLINK', task_key(path), events_key(path), snapshot_key(path), requests_key(path),
      request_refs_key(path), owned_key(path), webhooks_key(path))
    redis.call('DECR', tasks_key)
    add_usage(path, -1, -tonumber(head.bytes))
    purged = purged + 1
  end
end
return purged
