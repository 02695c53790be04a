-- Says how much waits.
--
-- KEYS     state (hash), fronts (sorted set)
-- Returns  entries, partitions, ms for which the oldest has been waiting
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local oldest = redis.call('ZRANGE', KEYS[2], 0, 0, 'WITHSCORES')[2]
return {
  tonumber(redis.call('HGET', KEYS[1], 'waiting') or 0),
  redis.call('ZCARD', KEYS[2]),
  oldest and math.max(now - oldest, 0) or 0,
}
