-- Prepended to every script: the names of keys, and functions that several scripts use.
--
-- KEYS[1] is the bucket: every key starts with it, and its hash tag puts them all on one node.
-- Redis runs a script alone but does not roll it back if it fails. So each script makes all comparisons first and then
-- writes, and its writes cannot fail. Numbers are compared as text, since Lua numbers have 53 bits only. Strings are
-- compared byte by byte, since Lua's `<` follows the locale of the server.
local bucket = KEYS[1]

local function task_key(path) return bucket .. 't:' .. path end          -- hash: the head
local function events_key(path) return bucket .. 'e:' .. path end        -- list: the log after `folded`
local function snapshot_key(path) return bucket .. 's:' .. path end      -- string
local function requests_key(path) return bucket .. 'r:' .. path end      -- hash: request id -> record
local function request_refs_key(path) return bucket .. 'q:' .. path end  -- hash: request id -> message ref
local function owned_key(path) return bucket .. 'o:' .. path end         -- set: refs of its message records
local function record_key(ref) return bucket .. 'm:' .. ref end          -- hash: a message record
local function webhooks_key(path) return bucket .. 'w:' .. path end      -- hash: webhook id -> cursor and record
local function usage_key(owner) return bucket .. 'u:' .. owner end       -- hash: what it has in this bucket
local open_key = bucket .. 'open'          -- sorted set by task number: tasks with work or requests
local ended_key = bucket .. 'ended'        -- sorted set by time of the end: ended tasks
local foldable_key = bucket .. 'foldable'  -- sorted set by time of the end: those with events to fold
local orphans_key = bucket .. 'orphans'    -- sorted set by time: refs of message records whose task is gone
local hooked_key = bucket .. 'hooked'      -- sorted set by task number: tasks with webhooks
local hooks_key = bucket .. 'hooks'        -- sorted set by task number: tasks with open webhooks
local number_key = bucket .. 'number'      -- the last task's number
local tasks_key = bucket .. 'tasks'        -- the number of tasks

-- One sorted set per state, all scores 0: members are the time in 13 hex digits followed by the id, so that they sort like
-- a listing, and a listing can continue from a position that is not a member.
local function list_key(scope, state) return bucket .. 'l:' .. scope .. ':' .. state end
local function context_key(scope, state, context)
  return bucket .. 'c:' .. scope .. ':' .. state .. ':' .. context
end

-- The client reads the first thirteen, in this order. `place` is the status time as 13 hex digits, `told` the version of
-- the snapshot, `said` the number of the last status event, or '0' if a user message came after it. `bytes` is what the
-- task counts for its owner, without its message records; `log` what its events after `folded` have of that.
local HEAD = {
  'id', 'number', 'context', 'generation', 'created_at', 'version', 'folded', 'state', 'status_at', 'work',
  'attempts', 'holder', 'fence', 'place', 'ended', 'scope', 'told', 'said', 'bytes', 'log',
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

-- Head, snapshot, and the events after the snapshot.
local function whole_task(path, head)
  local skip = tonumber(head.told or '0') - tonumber(head.folded)
  local tail = redis.call('LRANGE', events_key(path), skip > 0 and skip or 0, -1)
  return { head_reply(head), redis.call('GET', snapshot_key(path)), tail }
end

-- Number and record of the event with the status message; false without one.
local function status_event(path, head)
  if not head.said or head.said == '0' then return head.said or false, false end
  local index = tonumber(head.said) - tonumber(head.folded) - 1
  if index < 0 then return head.said, redis.call('HGET', task_key(path), 'said_record') end
  return head.said, redis.call('LINDEX', events_key(path), index)
end

-- Adds to what an owner has stored. `name` is the name of a scope, a path or a ref: all start with agent, tenant, owner.
local function add_usage(name, tasks, bytes)
  local key = usage_key(string.match(name, '^[^:]*:[^:]*:([^:]*)'))
  if tasks ~= 0 then redis.call('HINCRBY', key, 'tasks', tasks) end
  local left = redis.call('HINCRBY', key, 'bytes', bytes)
  if left <= 0 and tonumber(redis.call('HGET', key, 'tasks') or '0') <= 0 then redis.call('DEL', key) end
end

-- Bytes of the events from the log's index `from` up to `to`, or to its end.
local function event_bytes(path, from, to)
  local bytes = 0
  while not to or from <= to do
    local last = from + 31
    if to and last > to then last = to end
    local chunk = redis.call('LRANGE', events_key(path), from, last)
    if #chunk == 0 then break end
    for _, record in ipairs(chunk) do bytes = bytes + #record end
    from = from + #chunk
  end
  return bytes
end

local function read_record(ref)
  local record = redis.call('HMGET', record_key(ref), 'at', 'task', 'event', 'reply')
  return record[1] and record
end

-- `parent` is the task that owns the record: when that task is purged, the record becomes an orphan. A record of another
-- task, or of none, is an orphan from the start. `bytes` is what it counts for its owner; the caller adds that.
local function keep_record(ref, task, path, event, has_reply, reply, at, bytes, parent)
  local key = record_key(ref)
  redis.call('HSET', key, 'at', at, 'bytes', bytes)
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

local function set_member(yes, key, score, member)
  if yes then redis.call('ZADD', key, score, member) else redis.call('ZREM', key, member) end
end

local function mark_open(path, head)
  local open = head.work ~= '0' or redis.call('HLEN', requests_key(path)) > 0
  set_member(open, open_key, head.number, path)
end

-- A webhook is its cursor, nine numbers in text with spaces between ('-' for none), a line break, and its record:
-- revision, done, task_as_of, failures, failing_since, due, claimed_by, claimed_until, state. State 0 is open.
local function cursor_of(webhook)
  local line = string.match(webhook, '^[^\n]*')
  local cursor = {}
  for number in string.gmatch(line, '[^ ]+') do cursor[#cursor + 1] = number end
  return cursor, string.sub(webhook, #line + 2)
end

-- Keeps a task in the sets of tasks with webhooks as long as it has some.
local function mark_webhooks(path, number)
  local any, open = false, false
  for _, webhook in ipairs(redis.call('HVALS', webhooks_key(path))) do
    any = true
    if cursor_of(webhook)[9] == '0' then open = true end
  end
  set_member(any, hooked_key, number, path)
  set_member(open, hooks_key, number, path)
end

-- May the task be folded or removed? Not while a webhook is open, unless it ended before `despite`.
local function may_go(path, ended_at, despite)
  return tonumber(ended_at) < tonumber(despite) or not redis.call('ZSCORE', hooks_key, path)
end

-- Up to `limit` tasks of a set by the time of their end: path, time, path, time, … Only those that may go.
local function oldest(set, before, despite, limit)
  local found, skip = {}, 0
  while #found < 2 * limit do
    local page = redis.call('ZRANGEBYSCORE', set, '-inf', '(' .. before, 'WITHSCORES', 'LIMIT', skip, limit)
    for i = 1, #page, 2 do
      if #found < 2 * limit and may_go(page[i], page[i + 1], despite) then
        found[#found + 1] = page[i]
        found[#found + 1] = page[i + 1]
      end
    end
    if #page < 2 * limit then break end
    skip = skip + limit
  end
  return found
end
