-- One append. Answers {'written', number} | {'conflict'} | {'duplicate', record}.
local path, scope, id, is_birth = ARGV[1], ARGV[2], ARGV[3], ARGV[4] == '1'
local context, generation, created_at = ARGV[5], ARGV[6], ARGV[7]
local expected, fence = ARGV[8], ARGV[9]
local version, state, status_at, place, work = ARGV[10], ARGV[11], ARGV[12], ARGV[13], ARGV[14]
local attempts, holder, new_fence, ended = ARGV[15], ARGV[16], ARGV[17], ARGV[18]
local snapshot_version, snapshot = ARGV[19], ARGV[20]
local ref = ARGV[21]
local events, settled = tonumber(ARGV[29]), tonumber(ARGV[30])

if ref ~= '' then
  local earlier = read_record(ref)
  if earlier then return { 'duplicate', earlier } end
end
local was = read_head(path)
if is_birth then
  if was then return { 'conflict' } end
elseif not was or was.version ~= expected or was.fence ~= fence then
  return { 'conflict' }
end
if not is_birth and ended == '1' and events > 0 then
  -- A task must not end while a message is pending that this append does not write into the log.
  local written = {}
  for i = 0, settled - 1 do
    local at = 31 + events + 2 * i
    if ARGV[at + 1] ~= '' then written[ARGV[at]] = true end
  end
  for _, request in ipairs(redis.call('HKEYS', request_refs_key(path))) do
    if not written[request] then return { 'conflict' } end
  end
end

-- All comparisons are done; from here on the script only writes.
local key = task_key(path)
-- What the task counts after this: `added` are the bytes of the events, `behind` those that the snapshot does not cover.
local added, behind = 0, 0
for i = 1, events do
  local length = #ARGV[30 + i]
  added = added + length
  if snapshot_version ~= '' and tonumber(expected) + i > tonumber(snapshot_version) then behind = behind + length end
end
local change, log = added, tonumber(was and was.log or '0') + added
if snapshot_version ~= '' then
  change = change + #snapshot - redis.call('STRLEN', snapshot_key(path))
  if tonumber(snapshot_version) >= tonumber(expected) then
    redis.call('HSET', key, 'covered', string.format('%.0f', log - behind))
  else
    redis.call('HDEL', key, 'covered')
  end
end
for i = 0, settled - 1 do change = change - redis.call('HSTRLEN', requests_key(path), ARGV[31 + events + 2 * i]) end
local bytes = tonumber(was and was.bytes or '0') + change
if is_birth then
  redis.call('INCR', tasks_key)
  redis.call('HSET', key, 'id', id, 'scope', scope, 'number', redis.call('INCR', number_key),
    'context', context, 'generation', generation, 'created_at', created_at, 'folded', '0')
end
redis.call('HSET', key, 'version', version, 'state', state, 'status_at', status_at, 'place', place,
  'work', work, 'attempts', attempts, 'holder', holder, 'fence', new_fence, 'ended', ended,
  'bytes', string.format('%.0f', bytes), 'log', string.format('%.0f', log))
if snapshot_version ~= '' then
  redis.call('HSET', key, 'told', snapshot_version)
  redis.call('SET', snapshot_key(path), snapshot)
end
local at = 31
local said = is_birth and '0' or nil
for i = 1, events do
  local kind = string.sub(ARGV[at], 3, 3)
  if kind == 'U' then said = '0' end
  if kind == 'S' then said = string.format('%.0f', tonumber(expected) + i) end
  redis.call('RPUSH', events_key(path), ARGV[at])
  at = at + 1
end
if said then redis.call('HSET', key, 'said', said) end
for _ = 1, settled do
  local request, event = ARGV[at], ARGV[at + 1]
  at = at + 2
  local message = redis.call('HGET', request_refs_key(path), request)
  redis.call('HDEL', request_refs_key(path), request)
  redis.call('HDEL', requests_key(path), request)
  if message and event ~= '' then redis.call('HSET', record_key(message), 'event', event) end
end
if ref ~= '' then
  keep_record(ref, ARGV[22], ARGV[23], ARGV[24], ARGV[25], ARGV[26], ARGV[27], ARGV[28], path)
  change = change + tonumber(ARGV[28])
end
add_usage(scope, is_birth and 1 or 0, change)

local now = read_head(path)
if not was or was.place ~= place or was.state ~= state then
  if was then unlist(was) end
  redis.call('ZADD', list_key(scope, state), 0, place .. id)
  redis.call('ZADD', context_key(scope, state, now.context), 0, place .. id)
end
if ended == '1' or (was and was.ended == '1') then
  set_member(ended == '1', ended_key, status_at, path)
  set_member(ended == '1' and tonumber(now.told or '0') > tonumber(now.folded), foldable_key, status_at, path)
end
mark_open(path, now)
local webhook, record = ARGV[at], ARGV[at + 1]
if webhook ~= '' then
  redis.call('HSET', webhooks_key(path), webhook, '1 0 - 0 - 0 - - 0\n' .. record)
  redis.call('HSET', key, 'bytes', string.format('%.0f', bytes + #record))
  add_usage(scope, 0, #record)
  mark_webhooks(path, now.number)
end
return { 'written', now.number }
