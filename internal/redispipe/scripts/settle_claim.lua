-- Ends a claim: its first entries end as it is told, the rest waits in front again.
--
-- KEYS     state (hash), free (list), claims (sorted set), fronts (sorted set), lanes
--          (hash), known (hash), results (hash), kept (sorted set), and the
--          partition's stream
-- ARGV     partition, fence, how many results to keep, channel, left over (1 or 0),
--          then two for each entry that ends: id, and '' (given up) or how it ended:
--          'd' or 'f' (may be forgotten as soon as somebody asks again), and the result
-- Returns  1, or 0 if the claim was lost
local state, free, claims, fronts, lanes, known, results, kept, stream = unpack(KEYS)
local partition, fence, keep, channel, left = unpack(ARGV)
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local last, served, units, failures, mine =
  (redis.call('HGET', lanes, partition) or ''):match('^(%d+) (%d+) (%d+) (%d+) (%d+) ')
if mine ~= fence then
  return 0
end
last, served, units, failures = tonumber(last), tonumber(served), tonumber(units), tonumber(failures)

redis.call('ZREM', claims, partition) -- first, as it is possible without memory
local ids = {}
for i = 6, #ARGV, 2 do
  local id, result = ARGV[i], ARGV[i + 1]
  local number, want = (redis.call('HGET', known, id) or '0 0 0'):match('^%S+ (%d+) (%d+)')
  served = served + 1
  units = math.max(units - want, 0)
  failures = 0
  if result == '' then
    redis.call('HDEL', known, id)
  else
    redis.call('HSET', results, id, result)
    -- In the order in which they were decided.
    redis.call('ZADD', kept, redis.call('HINCRBY', state, 'decided', 1), id)
  end
  ids[#ids + 1] = id
end
redis.call('HINCRBY', state, 'waiting', -#ids)
failures = failures + left

if served >= last then
  redis.call('DEL', stream)
  redis.call('HDEL', lanes, partition)
  redis.call('ZREM', fronts, partition)
else
  redis.call('XTRIM', stream, 'MINID', string.format('%.0f-0', served + 1))
  redis.call('HSET', lanes, partition, string.format('%.0f %.0f %.0f %.0f 0 -', last, served, units, failures))
  local front = redis.call('XRANGE', stream, '-', '+', 'COUNT', 1)[1]
  redis.call('ZADD', fronts, front and front[2][2] or now, partition)
  redis.call('RPUSH', free, partition)
  redis.call('PUBLISH', channel, '')
end

local over = math.min(redis.call('ZCARD', kept) - keep, 1000) -- at a time, as Lua's unpack has a limit
if over > 0 then
  local old = redis.call('ZRANGE', kept, 0, over - 1)
  redis.call('ZREMRANGEBYRANK', kept, 0, over - 1)
  redis.call('HDEL', known, unpack(old))
  redis.call('HDEL', results, unpack(old))
end
if #ids > 0 then
  redis.call('PUBLISH', channel, table.concat(ids, '\n'))
end
return 1
