-- Put in front of every script: names of keys, and the moves that several scripts make.
--
-- KEYS[1] is the bucket: every key starts with it, and its hash tag puts them all on one node.
-- A script is run alone but not undone when it fails half way. So each compares first and then writes,
-- and what it writes cannot fail. Numbers are compared as text: a Lua number has 53 bits. Strings are
-- compared byte by byte: Lua's `<` follows the locale of the server.
local bucket = KEYS[1]

local function task_key(path) return bucket .. 't:' .. path end          -- hash: the head
local function events_key(path) return bucket .. 'e:' .. path end        -- list: the log after `folded`
local function snapshot_key(path) return bucket .. 's:' .. path end      -- string
local function requests_key(path) return bucket .. 'r:' .. path end      -- hash: request id -> record
local function request_refs_key(path) return bucket .. 'q:' .. path end  -- hash: request id -> message ref
local function owned_key(path) return bucket .. 'o:' .. path end         -- set: refs of its message records
local function record_key(ref) return bucket .. 'm:' .. ref end          -- hash: a message record
local open_key = bucket .. 'open'          -- sorted set by task number: has work or requests
local ended_key = bucket .. 'ended'        -- sorted set by time of the end
local foldable_key = bucket .. 'foldable'  -- sorted set by time of the end
local orphans_key = bucket .. 'orphans'    -- sorted set by time: refs of records without a task
local number_key = bucket .. 'number'      -- the last task's number
local tasks_key = bucket .. 'tasks'        -- how many there are

-- One set per state, all scores 0: members are the time in 13 hex digits and then the id, so that the
-- order of bytes is the order of a listing, and a position need not be a member.
local function list_key(scope, state) return bucket .. 'l:' .. scope .. ':' .. state end
local function context_key(scope, state, context)
  return bucket .. 'c:' .. scope .. ':' .. state .. ':' .. context
end

-- The first thirteen are what the client reads, in this order.
local HEAD = {
  'id', 'number', 'context', 'generation', 'created_at', 'version', 'folded', 'state', 'status_at', 'work',
  'attempts', 'holder', 'fence', 'place', 'ended', 'scope', 'told', 'said',
}

local function read_head(path)
  local values = redis.call('HMGET', task_key(path), unpack(HEAD))
  if not values[1] then return nil end
  local head = {}
  for i, name in ipairs(HEAD) do head[name] = values[i] end
  return head
end

local function head_reply(head)
  local reply = {}
  for i = 1, 13 do reply[i] = head[HEAD[i]] end
  return reply
end

-- Head, snapshot, and the events the snapshot lacks. `told` is the snapshot's version.
local function whole_task(path, head)
  local skip = tonumber(head.told or '0') - tonumber(head.folded)
  local tail = redis.call('LRANGE', events_key(path), skip > 0 and skip or 0, -1)
  return { head_reply(head), redis.call('GET', snapshot_key(path)), tail }
end

-- Number and record of the event with what the status says; false without one. `said` is kept by appends: the last
-- status, '0' if a user message came after it.
local function said_by(path, head)
  if not head.said or head.said == '0' then return head.said or false, false end
  local place = tonumber(head.said) - tonumber(head.folded) - 1
  if place < 0 then return head.said, redis.call('HGET', task_key(path), 'said_record') end
  return head.said, redis.call('LINDEX', events_key(path), place)
end

local function read_record(ref)
  local record = redis.call('HMGET', record_key(ref), 'at', 'task', 'event', 'reply')
  return record[1] and record
end

-- `parent` is the task that lets go of the record when it is purged. A record of any other task, or of
-- none, is an orphan from the start.
local function keep_record(ref, task, path, event, has_reply, reply, at, parent)
  local key = record_key(ref)
  redis.call('HSET', key, 'at', at)
  if task ~= '' then redis.call('HSET', key, 'task', task, 'path', path) end
  if event ~= '' then redis.call('HSET', key, 'event', event) end
  if has_reply == '1' then redis.call('HSET', key, 'reply', reply) end
  if task ~= '' and path == parent then
    redis.call('SADD', owned_key(parent), ref)
  else
    redis.call('ZADD', orphans_key, at, ref)
  end
end

local function unlist(head)
  local member = head.place .. head.id
  redis.call('ZREM', list_key(head.scope, head.state), member)
  redis.call('ZREM', context_key(head.scope, head.state, head.context), member)
end

local function is_member(yes, key, score, member)
  if yes then redis.call('ZADD', key, score, member) else redis.call('ZREM', key, member) end
end

local function mark_open(path, head)
  local open = head.work ~= '0' or redis.call('HLEN', requests_key(path)) > 0
  is_member(open, open_key, head.number, path)
end
