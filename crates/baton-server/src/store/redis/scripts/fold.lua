-- Drops the logs of up to ARGV[2] tasks that ended before ARGV[1]. Answers how many.
local paths = redis.call('ZRANGEBYSCORE', foldable_key, '-inf', '(' .. ARGV[1], 'LIMIT', 0, ARGV[2])
for _, path in ipairs(paths) do
  -- What the status says is shown without the snapshot.
  local number, said = said_by(path, read_head(path))
  if said then redis.call('HSET', task_key(path), 'said_record', said) end
  redis.call('UNLINK', events_key(path))
  redis.call('HSET', task_key(path), 'folded', redis.call('HGET', task_key(path), 'version'))
  redis.call('ZREM', foldable_key, path)
end
return #paths
