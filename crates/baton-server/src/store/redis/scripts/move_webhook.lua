-- Replaces the cursor of webhook ARGV[2] of task number ARGV[1] if it has revision ARGV[3]; ARGV[4] is the new one. Answers
-- 1 if it did, else 0.
local path = redis.call('ZRANGEBYSCORE', hooked_key, ARGV[1], ARGV[1])[1]
if not path then return 0 end
local webhook = redis.call('HGET', webhooks_key(path), ARGV[2])
if not webhook then return 0 end
local cursor, record = cursor_of(webhook)
if cursor[1] ~= ARGV[3] then return 0 end
redis.call('HSET', webhooks_key(path), ARGV[2], ARGV[4] .. '\n' .. record)
mark_webhooks(path, ARGV[1])
return 1
