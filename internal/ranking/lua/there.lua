-- there.lua says which of some windows exist.
--
-- KEYS  1… of each its sorted set, and its hidden set
--
-- Returns {1 or 0, …}: 1 where one of the two is there.

local call, there = redis.call, {}
for i = 1, #KEYS, 2 do there[#there + 1] = math.min(1, call('EXISTS', KEYS[i], KEYS[i + 1])) end
return there
