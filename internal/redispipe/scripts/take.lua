-- Takes what operations ask for, each wholly or not at all, in order.
--
-- KEYS     three for each key: count (hash), pending (hash), memory (sorted set)
-- ARGV[1]  fresh: ms after a set during which takings may be refused
-- ARGV[2]  recall: ms that the memory must reach back for that
-- ARGV[3]  ms until the keys expire
-- ARGV     then for each operation: id, firm (1 or 0), number of wants, and for
--          each want: number of its key (1 = the first three of KEYS), amount
-- Returns  three integers for each operation: fate (0 took, 1 doubted, 2 repeated,
--          3 short), and if it is short, the number of the key and what is left
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local fresh, recall = tonumber(ARGV[1]), tonumber(ARGV[2])

local counts = {} -- number of key -> {free, doubt, sure}
local function count(k)
  if not counts[k] then
    local h = redis.call('HMGET', KEYS[3 * k - 2], 'free', 'doubt', 'at', 'since')
    counts[k] = {
      free = tonumber(h[1] or 0),
      doubt = tonumber(h[2] or 0),
      sure = h[3] and h[4] and math.abs(now - h[3]) <= fresh and now - h[4] >= recall,
    }
  end
  return counts[k]
end

local function decide(op, firm, wants)
  -- The memory first: who has the last unit may ask again.
  for _, w in ipairs(wants) do
    if redis.call('ZSCORE', KEYS[3 * w.key], op) then
      return 2, 0, 0
    end
  end
  local fate = 0
  for _, w in ipairs(wants) do
    local c = count(w.key)
    if firm and c.sure and c.free + c.doubt < w.amount then
      return 3, w.key, math.max(c.free + c.doubt, 0)
    end
    if c.free < w.amount then
      fate = 1
    end
  end
  for _, w in ipairs(wants) do
    local c = count(w.key)
    c.free = c.free - w.amount
    redis.call('HINCRBY', KEYS[3 * w.key - 2], 'free', -w.amount)
    redis.call('HSET', KEYS[3 * w.key - 1], op, string.format('%.0f 0 %.0f 0', w.amount, now))
    redis.call('ZADD', KEYS[3 * w.key], now, op)
  end
  return fate, 0, 0
end

local out, i = {}, 4
while i <= #ARGV do
  local op, firm, n = ARGV[i], ARGV[i + 1] == '1', tonumber(ARGV[i + 2])
  local wants = {}
  for j = 1, n do
    wants[j] = { key = tonumber(ARGV[i + 1 + 2 * j]), amount = tonumber(ARGV[i + 2 + 2 * j]) }
  end
  i = i + 3 + 2 * n
  local fate, key, left = decide(op, firm, wants)
  out[#out + 1], out[#out + 2], out[#out + 3] = fate, key, left
end
for _, k in ipairs(KEYS) do
  redis.call('PEXPIRE', k, ARGV[3])
end
return out
