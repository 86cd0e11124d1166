-- compare.lua compares some members of a sorted set with those of another.
--
-- KEYS  1 a   2 b
-- ARGV  1 where a's scan goes on, or '' for the members given   2 about how many of a
--       or 2… the members
--
-- Returns {where the scan goes on (0 at its end), {member, a's score or '', b's, …}} with the
-- members whose scores differ.
--
-- A scan gives every member that is in a from its begin to its end, some of them twice;
-- its order is none.

local call, unpack = redis.call, unpack
local out = {}

local function pair(member, a, b)
  -- + 0, not tonumber: see layouts.lua
  if (a and a + 0) == (b and b + 0) then return end
  local n = #out
  out[n + 1], out[n + 2], out[n + 3] = member, a or '', b or ''
end

if ARGV[1] ~= '' then
  local page = call('ZSCAN', KEYS[1], ARGV[1], 'COUNT', ARGV[2])
  local found, members = page[2], {}
  for from = 1, #found, 2000 do
    members = {}
    for i = from, math.min(from + 1999, #found), 2 do members[#members + 1] = found[i] end
    local other = call('ZMSCORE', KEYS[2], unpack(members))
    for i = 1, #members do pair(members[i], found[from + 2 * i - 1], other[i]) end
  end
  return {page[1], out}
end

for from = 2, #ARGV, 1000 do
  local to = math.min(from + 999, #ARGV)
  local a, b = call('ZMSCORE', KEYS[1], unpack(ARGV, from, to)), call('ZMSCORE', KEYS[2], unpack(ARGV, from, to))
  for i = from, to do pair(ARGV[i], a[i - from + 1], b[i - from + 1]) end
end
return {'0', out}
