-- Sets keys to what the ledger had available at a line of its journal, less the
-- takings that are not in that line, and forgets what is old.
--
-- KEYS     three for each key: count (hash), pending (hash), memory (sorted set)
-- ARGV[1]  fresh: ms after a set during which takings may be refused
-- ARGV[2]  recall: ms that the memory must reach back for that
-- ARGV[3]  ms until the keys expire
-- ARGV[4]  lease: ms after which a taking that nobody has settled is dropped
-- ARGV[5]  memory: ms for which operations are remembered
-- ARGV[6]  how many operations are remembered
-- ARGV     then three for each key: available, line, gap (1 = the memory starts anew)
-- Returns  three integers for each key: what is left, whether that is sure (1), and
--          how many ms the memory reaches back
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local fresh, recall, lease, memory, most =
  tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])

local function set(count, pending, available, line)
  local free, doubt = available, 0
  local all = redis.call('HGETALL', pending)
  for i = 1, #all, 2 do
    local amount, seq, at = all[i + 1]:match('^(%d+) (%d+) (%d+)')
    local settled = tonumber(seq)
    if (settled > 0 and settled <= line) or (settled == 0 and now - at > lease) then
      redis.call('HDEL', pending, all[i])
    else
      free = free - amount
      if settled == 0 then
        doubt = doubt + amount
        redis.call('HSET', pending, all[i], amount .. ' 0 ' .. at .. ' 1')
      end
    end
  end
  redis.call('HSET', count, 'free', string.format('%.0f', free), 'doubt', string.format('%.0f', doubt),
    'seq', string.format('%.0f', line), 'at', string.format('%.0f', now))
end

-- trim forgets what is too old or too much, and returns how far back the rest reaches.
local function trim(key, since)
  redis.call('ZREMRANGEBYSCORE', key, '-inf', now - memory)
  local over = redis.call('ZCARD', key) - most
  if over > 0 then
    local last = redis.call('ZRANGE', key, over - 1, over - 1, 'WITHSCORES')
    redis.call('ZREMRANGEBYRANK', key, 0, over - 1)
    since = math.max(since, tonumber(last[2]))
  end
  return since
end

local out = {}
for k = 1, #KEYS / 3 do
  local count, pending, seen = KEYS[3 * k - 2], KEYS[3 * k - 1], KEYS[3 * k]
  local available, line, gap = tonumber(ARGV[3 * k + 4]), tonumber(ARGV[3 * k + 5]), ARGV[3 * k + 6]
  local h = redis.call('HMGET', count, 'seq', 'at', 'since')
  -- An old level whose successor is no longer fresh comes from a ledger that was
  -- itself set back.
  if line >= tonumber(h[1] or 0) or math.abs(now - (h[2] or 0)) > fresh then
    set(count, pending, available, line)
  end
  local since = tonumber(h[3] or now)
  if gap == '1' then
    since = now
  end
  since = trim(seen, since)
  redis.call('HSET', count, 'since', string.format('%.0f', since))
  for i = 3 * k - 2, 3 * k do
    redis.call('PEXPIRE', KEYS[i], ARGV[3])
  end
  h = redis.call('HMGET', count, 'free', 'doubt', 'at')
  out[#out + 1] = h[1] + h[2]
  out[#out + 1] = (math.abs(now - h[3]) <= fresh and now - since >= recall) and 1 or 0
  out[#out + 1] = now - since
end
return out
