-- One page of whole tasks. ARGV: scope, '1' if within a context, the context, upper end, lower end, limit,
-- and the states asked for. Merges one range per state, so that a rare state skips nothing.
local scope, within, context = ARGV[1], ARGV[2] == '1', ARGV[3]
local upper, lower, limit = ARGV[4], ARGV[5], tonumber(ARGV[6])

-- By bytes, longer after shorter.
local function is_greater(a, b)
  local i = 1
  while true do
    local x, y = string.byte(a, i), string.byte(b, i)
    if x ~= y then return (x or -1) > (y or -1) end
    if not x then return false end
    i = i + 1
  end
end

local ranges = {}
for i = 7, #ARGV do
  local key = within and context_key(scope, ARGV[i], context) or list_key(scope, ARGV[i])
  local members = redis.call('ZREVRANGEBYLEX', key, upper, lower, 'LIMIT', 0, limit)
  if #members > 0 then ranges[#ranges + 1] = { members = members, at = 1 } end
end
local page = {}
while #page < limit do
  local newest
  for _, range in ipairs(ranges) do
    local member = range.members[range.at]
    if member and (not newest or is_greater(member, newest.members[newest.at])) then newest = range end
  end
  if not newest then break end
  local path = scope .. ':' .. string.sub(newest.members[newest.at], 14)
  newest.at = newest.at + 1
  page[#page + 1] = whole_task(path, read_head(path))
end
return page
