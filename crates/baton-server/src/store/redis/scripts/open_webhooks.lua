-- The open webhooks of up to ARGV[3] tasks with numbers from ARGV[1] to ARGV[2]: for each webhook {path, number, version, id,
-- webhook}.
local found = {}
local tasks = redis.call('ZRANGEBYSCORE', hooks_key, ARGV[1], ARGV[2], 'WITHSCORES', 'LIMIT', 0, ARGV[3])
for i = 1, #tasks, 2 do
  local path = tasks[i]
  local head = read_head(path)
  local webhooks = redis.call('HGETALL', webhooks_key(path))
  for j = 1, #webhooks, 2 do
    if head and cursor_of(webhooks[j + 1])[9] == '0' then
      found[#found + 1] = { path, head.number, head.version, webhooks[j], webhooks[j + 1] }
    end
  end
end
return found
