-- Says where an entry is.
--
-- KEYS     fronts (sorted set), lanes (hash), known (hash), results (hash)
-- ARGV     id of the entry
-- Returns  nothing; or number, number served last, partitions, result or '', partition
local fronts, lanes, known, results = unpack(KEYS)
local place = redis.call('HGET', known, ARGV[1])
if not place then
  return {}
end
local number, partition = place:match('^%S+ (%d+) %d+ (.*)$')
local served = (redis.call('HGET', lanes, partition) or '0 0'):match('^%d+ (%d+)')
local result = redis.call('HGET', results, ARGV[1]) or ''
return { tonumber(number), tonumber(served), redis.call('ZCARD', fronts), result:sub(2), partition }
