-- Keeps a failed webhook: KEYS[1] is a hash by task and id, KEYS[2] sorts them by time. ARGV: member, place in the order,
-- record, most.
local old = redis.call('HGET', KEYS[1], ARGV[1])
if old then redis.call('ZREM', KEYS[2], string.match(old, '^[^\n]*')) end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2] .. '\n' .. ARGV[3])
redis.call('ZADD', KEYS[2], 0, ARGV[2])
while redis.call('ZCARD', KEYS[2]) > tonumber(ARGV[4]) do
  local place = redis.call('ZPOPMIN', KEYS[2])[1]
  -- A place is 13 digits of time and the member.
  redis.call('HDEL', KEYS[1], string.sub(place, 14))
end
return 1
