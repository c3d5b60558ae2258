-- Removes a webhook. Answers 1 if it was there, else 0.
local path, id = ARGV[1], ARGV[2]
local head = read_head(path)
local webhook = redis.call('HGET', webhooks_key(path), id)
if not head or not webhook then return 0 end
local _, record = cursor_of(webhook)
redis.call('HDEL', webhooks_key(path), id)
redis.call('HSET', task_key(path), 'bytes', string.format('%.0f', tonumber(head.bytes) - #record))
add_usage(path, 0, -#record)
mark_webhooks(path, head.number)
return 1
