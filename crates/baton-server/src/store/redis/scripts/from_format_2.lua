-- Counts the tasks and message records of format 2 for their owners. ARGV: the keys, without the bucket. What has `bytes`
-- has been counted.

local function count_task(path)
  local key = task_key(path)
  if redis.call('HEXISTS', key, 'id') == 0 or redis.call('HEXISTS', key, 'bytes') == 1 then return end
  local log = event_bytes(path, 0)
  local bytes = log + redis.call('STRLEN', snapshot_key(path))
  for _, record in ipairs(redis.call('HVALS', requests_key(path))) do bytes = bytes + #record end
  redis.call('HSET', key, 'bytes', string.format('%.0f', bytes), 'log', string.format('%.0f', log))
  add_usage(path, 1, bytes)
end

-- The rule of `MessageRecord::counted_bytes`.
local function count_record(ref)
  local at, bytes, task = unpack(redis.call('HMGET', record_key(ref), 'at', 'bytes', 'task'))
  local message = string.match(ref, '^[^:]*:[^:]*:[^:]*:%x*:(.*)$')
  if not at or bytes or not message then return end
  bytes = 256 + #message + (task and #task or 0) + redis.call('HSTRLEN', record_key(ref), 'reply')
  redis.call('HSET', record_key(ref), 'bytes', bytes)
  add_usage(ref, 0, bytes)
end

for _, key in ipairs(ARGV) do
  local kind, name = string.sub(key, 1, 2), string.sub(key, 3)
  if kind == 'm:' then count_record(name) elseif kind == 't:' then count_task(name) end
end
