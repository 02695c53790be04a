-- Gives the taking of an operation back, if it is pending, and forgets it.
--
-- KEYS     three for each key: count (hash), pending (hash), memory (sorted set)
-- ARGV[1]  id of the operation
-- Returns  nothing
for k = 1, #KEYS, 3 do
  local p = redis.call('HGET', KEYS[k + 1], ARGV[1])
  if p then
    local amount, doubtful = p:match('^(%d+) %d+ %d+ (%d)$')
    redis.call('HDEL', KEYS[k + 1], ARGV[1])
    redis.call('HINCRBY', KEYS[k], 'free', amount)
    if doubtful == '1' then
      redis.call('HINCRBY', KEYS[k], 'doubt', '-' .. amount)
    end
    redis.call('ZREM', KEYS[k + 2], ARGV[1])
  end
end
return false
