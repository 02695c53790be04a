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

-- many runs a command with pairs or single arguments, as many at a time as Lua can
-- unpack.
local chunk = 1000
local function many(command, key, args, each)
  for from = 1, #args, chunk do
    local out = redis.call(command, key, unpack(args, from, math.min(from + chunk - 1, #args)))
    if each then
      each(from, out)
    end
  end
end

local keys = {} -- number of key -> what is known of it, and what is to be written
local function key(k)
  if not keys[k] then
    local h = redis.call('HMGET', KEYS[3 * k - 2], 'free', 'doubt', 'at', 'since')
    keys[k] = {
      free = tonumber(h[1] or 0),
      doubt = tonumber(h[2] or 0),
      sure = h[3] and h[4] and math.abs(now - h[3]) <= fresh and now - h[4] >= recall,
      asked = {}, known = {}, taken = 0, pending = {}, memory = {},
    }
  end
  return keys[k]
end

local operations, i = {}, 4
while i <= #ARGV do
  local o = { id = ARGV[i], firm = ARGV[i + 1] == '1', wants = {} }
  for j = 1, tonumber(ARGV[i + 2]) do
    local k = tonumber(ARGV[i + 1 + 2 * j])
    o.wants[j] = { number = k, key = key(k), amount = tonumber(ARGV[i + 2 + 2 * j]) }
    table.insert(key(k).asked, o.id)
  end
  table.insert(operations, o)
  i = i + 3 + 2 * #o.wants
end
for k, c in pairs(keys) do
  many('ZMSCORE', KEYS[3 * k], c.asked, function(from, scores)
    for n, score in ipairs(scores) do
      c.known[c.asked[from + n - 1]] = score and true or nil
    end
  end)
end

local stamp = string.format('%.0f', now)
local function decide(o)
  -- The memory first: who has the last unit may ask again.
  for _, w in ipairs(o.wants) do
    if w.key.known[o.id] then
      return 2, 0, 0
    end
  end
  local fate = 0
  for _, w in ipairs(o.wants) do
    local c = w.key
    if o.firm and c.sure and c.free + c.doubt < w.amount then
      return 3, w.number, math.max(c.free + c.doubt, 0)
    end
    if c.free < w.amount then
      fate = 1
    end
  end
  for _, w in ipairs(o.wants) do
    local c = w.key
    c.free, c.taken, c.known[o.id] = c.free - w.amount, c.taken + w.amount, true
    table.insert(c.pending, o.id)
    table.insert(c.pending, string.format('%.0f 0 ', w.amount) .. stamp .. ' 0')
    table.insert(c.memory, stamp)
    table.insert(c.memory, o.id)
  end
  return fate, 0, 0
end

local out = {}
for n, o in ipairs(operations) do
  out[3 * n - 2], out[3 * n - 1], out[3 * n] = decide(o)
end
for k, c in pairs(keys) do
  if c.taken > 0 then
    redis.call('HINCRBY', KEYS[3 * k - 2], 'free', string.format('-%.0f', c.taken))
    many('HSET', KEYS[3 * k - 1], c.pending)
    many('ZADD', KEYS[3 * k], c.memory)
  end
end
for _, k in ipairs(KEYS) do
  redis.call('PEXPIRE', k, ARGV[3])
end
return out
