-- One webhook. Answers {'stored', number, webhook} | {'unknown'} | {'full'}.
local path, id, record, most = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local head = read_head(path)
if not head then return { 'unknown' } end
local before = redis.call('HGET', webhooks_key(path), id)
if not before and redis.call('HLEN', webhooks_key(path)) >= most then return { 'full' } end

local revision, done, length = '1', head.version, 0
if before then
  local cursor, old = cursor_of(before)
  revision, done, length = string.format('%.0f', tonumber(cursor[1]) + 1), cursor[2], #old
end
local state = '0'
if head.ended == '1' and tonumber(done) >= tonumber(head.version) then state = '1' end
local webhook = revision .. ' ' .. done .. ' - 0 - 0 - - ' .. state .. '\n' .. record
redis.call('HSET', webhooks_key(path), id, webhook)
local change = #record - length
redis.call('HSET', task_key(path), 'bytes', string.format('%.0f', tonumber(head.bytes) + change))
add_usage(path, 0, change)
mark_webhooks(path, head.number)
return { 'stored', head.number, webhook }
