-- Claims the next partition that nobody has. First it frees those whose claim has
-- lapsed, and those that this worker's process has been given and does not know
-- of: their answer was lost, or the server was set back.
--
-- KEYS     state (hash), free (list), claims (sorted set), lanes (hash), and the last
--          turn of the process (string)
-- ARGV     process, its turn, lease in ms, then the fences of its claims
-- Returns  partition, fence, failures, number served last; or only how many ms there
--          are until a claim lapses, -1 = none will; or nothing: the turn was late
local state, free, claims, lanes, turn = unpack(KEYS)
local process, lease = ARGV[1], tonumber(ARGV[3])
local time = redis.call('TIME')
local us = time[1] * 1000000 + time[2]
local now = math.floor(us / 1000)

-- What was sent before a later turn knows too little of what the process has.
if tonumber(ARGV[2]) <= tonumber(redis.call('GET', turn) or 0) then
  return {}
end
local has = {}
for i = 4, #ARGV do
  has[ARGV[i]] = true
end

local function split(p)
  local numbers, failures, fence, owner = (redis.call('HGET', lanes, p) or ''):match('^(%d+ %d+ %d+) (%d+) (%d+) (%S+)$')
  return numbers, tonumber(failures), fence, owner
end

-- The first write of each way through must be one that is possible without memory.
local all = redis.call('ZRANGE', claims, 0, -1, 'WITHSCORES')
for i = 1, #all, 2 do
  local p = all[i]
  local numbers, failures, fence, owner = split(p)
  local lapsed = now >= tonumber(all[i + 1])
  local lost = owner == process and not has[fence]
  if not numbers then
    redis.call('ZREM', claims, p)
  elseif lapsed or lost then
    if lapsed then
      failures = failures + 1 -- the first entry may be what killed the worker
    end
    redis.call('ZREM', claims, p)
    redis.call('HSET', lanes, p, numbers .. ' ' .. failures .. ' 0 -')
    redis.call('RPUSH', free, p)
  end
end

local p = redis.call('LPOP', free)
while p and not redis.call('HGET', lanes, p) do
  p = redis.call('LPOP', free)
end
redis.call('SET', turn, ARGV[2], 'PX', ARGV[3])
if not p then
  local first = redis.call('ZRANGE', claims, 0, 0, 'WITHSCORES')
  return { first[2] and math.max(tonumber(first[2]) - now, 1) or -1 }
end
-- Fences grow though all else is forgotten.
local fence = math.max(us, tonumber(redis.call('HGET', state, 'fence') or 0) + 1)
local text = string.format('%.0f', fence)
local numbers, failures = split(p)
redis.call('HSET', state, 'fence', text)
redis.call('HSET', lanes, p, numbers .. ' ' .. failures .. ' ' .. text .. ' ' .. process)
redis.call('ZADD', claims, now + lease, p)
return { p, fence, failures, tonumber(numbers:match('^%d+ (%d+)')) }
