-- Notes in which line of the journal takings ended. If the last set contains that
-- line, free has been lessened twice.
--
-- KEYS     three for each key: count (hash), pending (hash), memory (sorted set)
-- ARGV     three for each taking: number of its key (1 = the first three of KEYS),
--          id of the operation, line
-- Returns  nothing
for i = 1, #ARGV, 3 do
  local k, op, line = tonumber(ARGV[i]), ARGV[i + 1], tonumber(ARGV[i + 2])
  local count, pending = KEYS[3 * k - 2], KEYS[3 * k - 1]
  local p = redis.call('HGET', pending, op)
  if p then
    local amount, at, doubtful = p:match('^(%d+) %d+ (%d+) (%d)$')
    if doubtful == '1' then
      redis.call('HINCRBY', count, 'doubt', '-' .. amount)
    end
    if line <= tonumber(redis.call('HGET', count, 'seq') or 0) then
      redis.call('HDEL', pending, op)
      redis.call('HINCRBY', count, 'free', amount)
    else
      redis.call('HSET', pending, op, amount .. ' ' .. ARGV[i + 2] .. ' ' .. at .. ' 0')
    end
  end
end
return false
