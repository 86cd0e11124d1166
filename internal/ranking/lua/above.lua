-- above.lua counts the members of a window above others, who needn't be in it, and reads the
-- rows around the first of them. Above somebody is who has a greater score, or the same and a
-- greater id, by bytes: the order of ZREVRANGE.
--
-- KEYS  1 the window's sorted set
-- ARGV  1 rows to read above the first   2 rows to read from the first on
--       3 1 to return ties
--       4… score and id of each; without an id whoever has at least the score is above. With ties
--       then the least score of its points, and the first one above all of those
--
-- Returns {{number of members above each, …}, {member, score, …},
--   {number with more than each and number with at least as much, …}, empty without ties}.

local call, floor = redis.call, math.floor

-- include greater.lua

-- Equal scores are in order of their ids, and there may be a million: a search in halves.
local function above(score, id)
  if id == '' then return call('ZCOUNT', KEYS[1], score, '+inf') end
  local low = call('ZCOUNT', KEYS[1], '(' .. score, '+inf')
  local high = low + call('ZCOUNT', KEYS[1], score, score)
  while low < high do
    local middle = floor((low + high) / 2)
    if greater(call('ZREVRANGE', KEYS[1], middle, middle)[1], id) then low = middle + 1 else high = middle end
  end
  return low
end

-- How many members have at least a score, counted once: others may have the same points, and those
-- of the next ones begin where these end.
local known = {}
local function least(score)
  local n = known[score]
  if not n then
    n = call('ZCOUNT', KEYS[1], score, '+inf')
    known[score] = n
  end
  return n
end

local counts, rows, ties = {}, {}, {}
local tied = ARGV[3] == '1'
for i = 4, #ARGV, tied and 4 or 2 do
  local more, as_many
  if tied then
    more, as_many = least(ARGV[i + 3]), least(ARGV[i + 2])
    ties[#ties + 1] = more
    ties[#ties + 1] = as_many
  end
  -- Who has more is above, who has less isn't: where nobody has as much there is nothing to count.
  counts[#counts + 1] = tied and more == as_many and more or above(ARGV[i], ARGV[i + 1])
end
local first = math.max(0, (counts[1] or 0) - tonumber(ARGV[1]))
local last = (counts[1] or 0) + tonumber(ARGV[2]) - 1
if last >= first then rows = call('ZREVRANGE', KEYS[1], first, last, 'WITHSCORES') end
return {counts, rows, ties}
