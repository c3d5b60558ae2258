-- One page of tasks. ARGV: scope, '1' if within a context, the context, upper bound, lower bound, limit, '1' if the total
-- is wanted, '1' if only heads and status messages are wanted, most bytes, and the wanted states. Merges one range per
-- state, so that a list of a rare state does not scan tasks of others. Answers { page, 1 if there are more, total }.
local scope, within, context = ARGV[1], ARGV[2] == '1', ARGV[3]
local upper, lower, limit = ARGV[4], ARGV[5], tonumber(ARGV[6])
local counted, brief, most_bytes = ARGV[7] == '1', ARGV[8] == '1', tonumber(ARGV[9])

-- Compares by bytes; a string is greater than its prefixes.
local function is_greater(a, b)
  local i = 1
  while true do
    local x, y = string.byte(a, i), string.byte(b, i)
    if x ~= y then return (x or -1) > (y or -1) end
    if not x then return false end
    i = i + 1
  end
end

local function read_task(path, budget)
  local head = read_head(path)
  local number, said = status_event(path, head)
  -- A task of format 1 has no such number, and is read whole.
  if brief and number then
    return { 'brief', head_reply(head), number, said }, said and string.len(said) or 0
  end
  local length = redis.call('STRLEN', snapshot_key(path))
  if length > budget then return nil, length end
  local task = whole_task(path, head)
  for _, record in ipairs(task[3]) do length = length + string.len(record) end
  return { 'whole', task }, length
end

local ranges, total = {}, 0
for i = 10, #ARGV do
  local key = within and context_key(scope, ARGV[i], context) or list_key(scope, ARGV[i])
  -- O(log n): a sorted set knows the rank of each member.
  if counted then total = total + redis.call('ZLEXCOUNT', key, lower, '+') end
  local members = redis.call('ZREVRANGEBYLEX', key, upper, lower, 'LIMIT', 0, limit + 1)
  if #members > 0 then ranges[#ranges + 1] = { members = members, at = 1 } end
end
local page, more, bytes = {}, 0, 0
while true do
  local newest
  for _, range in ipairs(ranges) do
    local member = range.members[range.at]
    if member and (not newest or is_greater(member, newest.members[newest.at])) then newest = range end
  end
  if not newest then break end
  more = 1
  if #page == limit then break end
  local path = scope .. ':' .. string.sub(newest.members[newest.at], 14)
  newest.at = newest.at + 1
  local task, weight = read_task(path, #page == 0 and math.huge or most_bytes - bytes)
  bytes = bytes + weight
  if #page > 0 and bytes > most_bytes then break end
  page[#page + 1] = task
  more = 0
end
return { page, more, total }
