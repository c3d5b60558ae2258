-- Drops the events that the snapshots cover, of up to ARGV[2] tasks that ended before ARGV[1] and have no open webhooks or
-- ended before ARGV[3]. Answers how many tasks.
local paths = oldest(foldable_key, ARGV[1], ARGV[3], tonumber(ARGV[2]))
for i = 1, #paths, 2 do
  local path = paths[i]
  local head = read_head(path)
  -- Lists show the status message without reading the snapshot, so its event is kept.
  local number, said = status_event(path, head)
  if said and tonumber(number) <= tonumber(head.told) then redis.call('HSET', task_key(path), 'said_record', said) end
  local count = tonumber(head.told) - tonumber(head.folded)
  -- Written with the snapshot. Tasks of format 2 do not have it, and their events are added up.
  local covered = redis.call('HGET', task_key(path), 'covered')
  local dropped = covered and tonumber(covered) or event_bytes(path, 0, count - 1)
  redis.call('LTRIM', events_key(path), count, -1)
  redis.call('HSET', task_key(path), 'folded', head.told, 'covered', '0',
    'bytes', string.format('%.0f', tonumber(head.bytes) - dropped),
    'log', string.format('%.0f', tonumber(head.log) - dropped))
  add_usage(path, 0, -dropped)
  redis.call('ZREM', foldable_key, path)
end
return #paths / 2
