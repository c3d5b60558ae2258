-- Notes a request. Answers {'noted', id, head} | {'duplicate', record} | {'full'} | {'ended', head} | {'unknown'}.
local path, record, most_pending, ref = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]

if ref ~= '' then
  local earlier = read_record(ref)
  if earlier then return { 'duplicate', earlier } end
end
local head = read_head(path)
if not head then return { 'unknown' } end
if head.ended == '1' then return { 'ended', head_reply(head) } end
if redis.call('HLEN', requests_key(path)) >= most_pending then return { 'full' } end

local request = redis.call('HINCRBY', task_key(path), 'requests', 1)
redis.call('HSET', requests_key(path), request, record)
redis.call('HINCRBY', task_key(path), 'bytes', #record)
local bytes = #record
if ref ~= '' then
  redis.call('HSET', request_refs_key(path), request, ref)
  keep_record(ref, ARGV[5], ARGV[6], ARGV[7], ARGV[8], ARGV[9], ARGV[10], ARGV[11], path)
  bytes = bytes + tonumber(ARGV[11])
end
add_usage(path, 0, bytes)
mark_open(path, head)
return { 'noted', tostring(request), head_reply(head) }
