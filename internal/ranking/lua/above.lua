-- above.lua counts the members of a window above others, who needn't be in it, and reads the
-- rows around the first of them. Above somebody is who has a greater score, or the same and a
-- greater id, by bytes: the order of ZREVRANGE.
--
-- KEYS  1 the window's sorted set
-- ARGV  1 rows to read above the first   2 rows to read from the first on
--       3… score and id of each; without an id whoever has at least the score is above
--
-- Returns {{number of members above each, …}, {member, score, …}}.

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

local counts, rows = {}, {}
for i = 3, #ARGV, 2 do counts[#counts + 1] = above(ARGV[i], ARGV[i + 1]) end
local first = math.max(0, (counts[1] or 0) - tonumber(ARGV[1]))
local last = (counts[1] or 0) + tonumber(ARGV[2]) - 1
if last >= first then rows = call('ZREVRANGE', KEYS[1], first, last, 'WITHSCORES') end
return {counts, rows}
