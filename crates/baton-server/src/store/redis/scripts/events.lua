-- Events numbered above ARGV[2], at most ARGV[3] of them; no further one is added after ARGV[4] bytes.
-- Answers {number of the first event, records}.
local path, after, limit, most = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local folded = tonumber(redis.call('HGET', task_key(path), 'folded') or '0')
if after < folded then after = folded end
local records, bytes, at = {}, 0, after - folded
while #records < limit and bytes < most do
  local chunk = redis.call('LRANGE', events_key(path), at, at + 31)
  if #chunk == 0 then break end
  at = at + #chunk
  for _, record in ipairs(chunk) do
    if #records >= limit or bytes >= most then break end
    records[#records + 1] = record
    bytes = bytes + #record
  end
end
return { string.format('%.0f', after + 1), records }
