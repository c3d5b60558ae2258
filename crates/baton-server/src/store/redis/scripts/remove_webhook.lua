-- Removes webhook ARGV[2] of the task ARGV[1] if it has revision ARGV[3], or with '' whatever revision it has. Answers 1 if it
-- did, else 0.
local path, id = ARGV[1], ARGV[2]
local head = read_head(path)
local webhook = redis.call('HGET', webhooks_key(path), id)
if not head or not webhook then return 0 end
local cursor, record = cursor_of(webhook)
if ARGV[3] ~= '' and cursor[1] ~= ARGV[3] then return 0 end
redis.call('HDEL', webhooks_key(path), id)
redis.call('HSET', task_key(path), 'bytes', string.format('%.0f', tonumber(head.bytes) - #record))
add_usage(path, 0, -#record)
mark_webhooks(path, head.number)
return 1
