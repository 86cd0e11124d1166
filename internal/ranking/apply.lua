-- apply.lua adds one piece of a batch to the standings and moves the ledger, or
-- writes nothing and says why.
--
-- KEYS  1 ledger   2 schema   3 hold   4 windows   5… each window's sorted set
-- ARGV  1 field of the ledger   2 expected   3 next   4 schema
--       for each window, in the order of KEYS:
--         name in the listing, start ms, end ms, retention ms,
--         layout (readable or wide), k, tick ms, max points
--       for each group, to the end:
--         number of windows, their numbers (from 1),
--         number of members, their ids, their points, their times ms
--
-- Returns one of
--   {applied}
--   {moved, what the ledger holds, or ''}
--   {schema, what it is, or ''}
--   {held}
--   {bounds, window, listing}     listed with another start or end
--   {lost, window}                listed, and its key is gone
--   {unlisted, window}            not listed, and its key exists
--   {foreign, window, member}     a score that this layout doesn't write
--   {overflow, member, …}         they would leave the range of points
--
-- Everything is read and checked before the first write. The first write marks
-- the ledger as torn, the last one moves it: a script that dies between them
-- leaves the mark, and nobody adds anything twice. Scores go to redis.call as
-- numbers, which Redis writes exactly; offsets stay text.

local call, unpack, tonumber = redis.call, unpack, tonumber
local floor, frexp, ldexp = math.floor, math.frexp, math.ldexp

local DAY = 86400000  -- a key expires this long after its window's retention, ms
local SLICE = 1000    -- members a command; unpack carries at most 8,000 values
local P52, P53 = 2 ^ 52, 2 ^ 53

local ledger, listings = KEYS[1], KEYS[4]
local field, expected = ARGV[1], ARGV[2]

local found = call('HGET', ledger, field)
if found ~= expected then return {'moved', found or ''} end
local schema = call('GET', KEYS[2])
if schema ~= ARGV[4] then return {'schema', schema or ''} end
if call('EXISTS', KEYS[3]) == 1 then return {'held'} end

local time = call('TIME')
local now = time[1] * 1000 + floor(time[2] / 1000)

-- The windows. One whose retention is over is neither read nor written.
local windows = {}
local arg = 5
for i = 1, #KEYS - 4 do
  local w = {
    key = KEYS[4 + i], name = ARGV[arg],
    first = tonumber(ARGV[arg + 1]), last = tonumber(ARGV[arg + 2]) - 1,
    wide = ARGV[arg + 4] == 'wide', k = tonumber(ARGV[arg + 5]),
    tick = tonumber(ARGV[arg + 6]), max = tonumber(ARGV[arg + 7]),
  }
  w.expires = w.last + 1 + ARGV[arg + 3]
  local listing = call('HGET', listings, w.name)
  if listing then
    local first, last, expires = string.match(listing, '^(%S+) (%S+) (%d+)$')
    if first ~= ARGV[arg + 1] or last ~= ARGV[arg + 2] then
      return {'bounds', w.name, listing}
    end
    w.expires = tonumber(expires)
  end
  w.live = now < w.expires
  if w.live then
    local there = call('EXISTS', w.key) == 1
    if listing and not there then return {'lost', w.name} end
    if there and not listing then return {'unlisted', w.name} end
    if not listing then
      w.listing = ARGV[arg + 1] .. ' ' .. ARGV[arg + 2] .. ' ' .. string.format('%.0f', w.expires)
    end
  end
  windows[i] = w
  arg = arg + 8
end

-- Both layouts, as in package codec: old is what Redis answered, or false.
-- They append the new score to out, and return true on overflow, nil on a
-- score that isn't of the layout.
local function readable(w, ids, old, points, times, out)
  local first, last, tick, max, scale = w.first, w.last, w.tick, w.max, 2 ^ w.k
  local over
  for i = 1, #points do
    local at, p = times[i], points[i]
    if at < first then at = first end
    local ticks = floor((last - at) / tick)
    if old[i] then
      local score = tonumber(old[i])
      local steps, whole = score * scale, floor(score)
      if steps % 1 ~= 0 then return nil, i end
      local had = steps - whole * scale
      p = p + whole
      if had < ticks then ticks = had end
    end
    if p > max or p < -max then
      over = over or {}
      over[#over + 1] = i
    end
    out[2 * i - 1] = p + ticks / scale
    out[2 * i] = ids[i]
  end
  return over or false
end

local function wide(w, ids, old, points, times, out)
  local first, last, tick, max = w.first, w.last, w.tick, w.max
  local scale, high = 2 ^ w.k, 2 ^ (52 - w.k)
  local over
  for i = 1, #points do
    local at, p = times[i], points[i] + max
    if at < first then at = first end
    local ticks = floor((last - at) / tick)
    if old[i] then
      local score = tonumber(old[i])
      if not (score >= 2 ^ -1022 and score < math.huge) then return nil, i end
      local f, e = frexp(score)
      local m = f * P53 - P52
      local low = floor(m / scale)
      local had = m - low * scale
      local biased = (e + 1021) * high + low
      if biased > 2 * max then return nil, i end
      p = p + biased - max
      if had < ticks then ticks = had end
    end
    if p > 2 * max or p < 0 then
      over = over or {}
      over[#over + 1] = i
    end
    local h = floor(p / high)
    out[2 * i - 1] = ldexp(P52 + (p - h * high) * scale + ticks, h - 1074)
    out[2 * i] = ids[i]
  end
  return over or false
end

-- Read everything and work out every new score.
local writes = {}
local overflow, refused = {'overflow'}, {}
while arg <= #ARGV do
  local count = tonumber(ARGV[arg])
  local members = tonumber(ARGV[arg + count + 1])
  local ids = arg + count + 1 -- the id before the first
  for from = 1, members, SLICE do
    local to = math.min(from + SLICE - 1, members)
    local id, points, times = {unpack(ARGV, ids + from, ids + to)}, {}, {}
    for i = from, to do
      points[i - from + 1] = tonumber(ARGV[ids + members + i])
      times[i - from + 1] = tonumber(ARGV[ids + 2 * members + i])
    end
    for n = 1, count do
      local w = windows[tonumber(ARGV[arg + n])]
      if w.live then
        local out = {}
        local old = call('ZMSCORE', w.key, unpack(id))
        local over, where = (w.wide and wide or readable)(w, id, old, points, times, out)
        if over == nil then return {'foreign', w.name, id[where]} end
        for _, i in ipairs(over or {}) do
          if not refused[id[i]] then
            refused[id[i]] = true
            overflow[#overflow + 1] = id[i]
          end
        end
        writes[#writes + 1] = {w.key, out}
      end
    end
  end
  arg = ids + 3 * members + 1
end
if #overflow > 1 then return overflow end

-- Write.
call('HSET', ledger, field, 'torn:' .. expected)
for _, w in ipairs(writes) do
  call('ZADD', w[1], unpack(w[2]))
end
for _, w in ipairs(windows) do
  if w.listing and w.live and call('EXISTS', w.key) == 1 then
    call('HSET', listings, w.name, w.listing)
    call('PEXPIREAT', w.key, string.format('%.0f', w.expires + DAY))
  end
end
call('HSET', ledger, field, ARGV[3])
return {'applied'}
