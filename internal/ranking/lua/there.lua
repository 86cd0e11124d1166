-- there.lua says which of some keys exist.
--
-- KEYS  1… the keys
--
-- Returns {1 or 0, …}.

local call, there = redis.call, {}
for i = 1, #KEYS do there[i] = call('EXISTS', KEYS[i]) end
return there
