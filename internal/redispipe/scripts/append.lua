-- Puts an entry at the end of its partition.
--
-- KEYS     state (hash), free (list), fronts (sorted set), lanes (hash), known (hash),
--          results (hash), kept (sorted set), and the partition's stream
-- ARGV     id of the entry, digest of the request, partition, units, the most units
--          that may then wait in the partition, the most entries that may wait at
--          all, the entry, channel
-- Returns  verdict (0 new, 1 repeat, 2 reused, 3 full, 4 sold out), and for the first
--          two: number, number served last, partitions, result or '', partition
local state, free, fronts, lanes, known, results, kept, stream = unpack(KEYS)
local id, print, partition, units, most, room, entry, channel = unpack(ARGV)
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

-- lane: number given last, number served last, units, failures, fence, owner
local function lane(p)
  local last, served, waiting, rest =
    (redis.call('HGET', lanes, p) or '0 0 0 0 0 -'):match('^(%d+) (%d+) (%d+) (.*)$')
  return tonumber(last), tonumber(served), tonumber(waiting), rest
end

-- The id first: who asks again has a place, though the line is full.
local old = redis.call('HGET', known, id)
local result = old and redis.call('HGET', results, id) or ''
if old and result:sub(1, 1) ~= 'f' then
  local first, number, _, p = old:match('^(%S+) (%d+) (%d+) (.*)$')
  if first ~= print then
    return { 2 }
  end
  local _, served = lane(p)
  return { 1, tonumber(number), served, redis.call('ZCARD', fronts), result:sub(2), p }
end

if tonumber(redis.call('HGET', state, 'waiting') or 0) >= tonumber(room) then
  return { 3 }
end
local last, served, waiting, rest = lane(partition)
if tonumber(units) > 0 and waiting + units > tonumber(most) then
  return { 4 }
end
last = last + 1
redis.call('XADD', stream, string.format('%.0f-0', last), 'at', string.format('%.0f', now), 'entry', entry)
redis.call('HSET', lanes, partition, string.format('%.0f %.0f %.0f %s', last, served, waiting + units, rest))
redis.call('HSET', known, id, string.format('%s %.0f %s %s', print, last, units, partition))
redis.call('HINCRBY', state, 'waiting', 1)
if old then
  redis.call('HDEL', results, id)
  redis.call('ZREM', kept, id)
end
if last == served + 1 then
  redis.call('RPUSH', free, partition)
  redis.call('ZADD', fronts, now, partition)
  redis.call('PUBLISH', channel, '')
end
return { 0, last, served, redis.call('ZCARD', fronts), '', partition }
