-- above.lua counts the members of a window that are above given pivots, and reads the rows around the first pivot. A
-- pivot's member need not be in the window. A row is above a pivot if its score is greater, or if its score is equal
-- and its id is greater, by bytes: the order of ZREVRANGE.
--
-- KEYS  1 the window's sorted set
-- ARGV  1 rows to read above the first pivot   2 rows to read from the first pivot on
--       3 1 to return ties
--       4… score and id of each pivot; with an empty id, every member with at least the score is above. With ties, also
--         the lowest score with the same points, and the first score above all of those
--
-- Returns {{number of members above each pivot, …}, {member, score, …},
--   {number with more than each pivot and number with at least as much, …}, empty without ties}.

local call, floor = redis.call, math.floor

-- include greater.lua

-- Equal scores are sorted by id, and there may be a million of them, so this uses a binary search.
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

-- Returns how many members have at least a score. It counts each score once: pivots may have the same points, and a
-- pivot's range of scores begins where another one's ends.
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
  -- Members with more are above the pivot, members with less aren't. Without members with as much, more is the count.
  counts[#counts + 1] = tied and more == as_many and more or above(ARGV[i], ARGV[i + 1])
end
local first = math.max(0, (counts[1] or 0) - tonumber(ARGV[1]))
local last = (counts[1] or 0) + tonumber(ARGV[2]) - 1
if last >= first then rows = call('ZREVRANGE', KEYS[1], first, last, 'WITHSCORES') end
return {counts, rows, ties}
