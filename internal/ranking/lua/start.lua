-- start.lua sets where partitions start: schema, origins and ledger in one call.
--
-- KEYS  1 ledger   2 schema   3 origin   4 windows   5 hold   6 workers
-- ARGV  1 schema   2 ms that a rebuild's shadow lives, '' for live boards
--       for each partition, to the end:
--         field of the ledger
--         expected value in the ledger; '' for none, 'beside others' for none while the ledger has other fields
--         position to write
--         origin to write, '' to keep it. The script writes the later offset and the later time of the old and the new
--         origin, as an origin of listed windows never decreases, and the new one's log
--         offset up to which a lost Redis is refilled, '' for none
--
-- Returns one of
--   {applied}
--   {moved, field, what the ledger holds, or ''}
--   {schema, found schema}
--   {held}
--   {orphaned}      windows are listed, and the ledger is empty
--
-- The first caller decides for all. A later caller finds that the ledger moved, and reads it. One command writes the
-- ledger, at the end, so after a script has died the same call can be repeated. With a part of the ledger written,
-- the other partitions would look as if they had been added later.
--
-- A partition that has a position keeps its refill offset. A new one gets its own, so that nothing remains of a
-- ledger that was deleted.

local call = redis.call

-- later returns the greater of two integers as text: a double would round large ones.
local function later(a, b)
  if #a ~= #b then return #a > #b and a or b end
  return a > b and a or b
end

local schema = call('GET', KEYS[2])
if schema and schema ~= ARGV[1] then return {'schema', schema} end
if call('EXISTS', KEYS[5]) == 1 then return {'held'} end
if call('HLEN', KEYS[1]) == 0 and call('HLEN', KEYS[4]) > 0 then return {'orphaned'} end
for i = 3, #ARGV, 5 do
  local found, expected = call('HGET', KEYS[1], ARGV[i]) or '', ARGV[i + 1]
  if expected == 'beside others' and call('HLEN', KEYS[1]) > 0 then expected = '' end
  if found ~= expected then return {'moved', ARGV[i], found} end
end

call('SET', KEYS[2], ARGV[1])
local empty = call('HLEN', KEYS[4]) == 0
for i = 3, #ARGV, 5 do
  local origin = ARGV[i + 3]
  -- Without a window and a position, an origin is left of a Redis that lost both. Events before it may count now.
  if origin ~= '' and empty and not call('HGET', KEYS[1], ARGV[i]) then
    call('HSET', KEYS[3], ARGV[i], origin)
  elseif origin ~= '' then
    local offset, time = string.match(call('HGET', KEYS[3], ARGV[i]) or '', '^(%d+) (%d+)')
    if offset then
      local o, t, log = string.match(origin, '^(%d+) (%d+)(.*)$')
      origin = later(offset, o) .. ' ' .. later(time, t) .. log
    end
    call('HSET', KEYS[3], ARGV[i], origin)
  end
  if ARGV[2] == '' and ARGV[i + 4] ~= '' then
    call('HSET', KEYS[6], 'refill:' .. ARGV[i], ARGV[i + 4])
  elseif ARGV[2] == '' and not call('HGET', KEYS[1], ARGV[i]) then
    call('HDEL', KEYS[6], 'refill:' .. ARGV[i])
  end
end
local fields = {}
for i = 3, #ARGV, 5 do
  fields[#fields + 1] = ARGV[i]
  fields[#fields + 1] = ARGV[i + 2]
end
local SLICE = 7000 -- values; unpack returns at most 8,000
for first = 1, #fields, SLICE do
  call('HSET', KEYS[1], unpack(fields, first, math.min(first + SLICE - 1, #fields)))
end
if ARGV[2] ~= '' then
  local time = call('TIME')
  local lease = string.format('%.0f', tonumber(time[1]) * 1000 + tonumber(time[2]) / 1000 + tonumber(ARGV[2]))
  for i = 1, 3 do call('PEXPIREAT', KEYS[i], lease) end
end
return {'applied'}
