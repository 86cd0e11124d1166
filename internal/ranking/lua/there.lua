-- there.lua says which of some windows have the keys that they have to have.
--
-- KEYS  1 windows   2… of each its sorted set, and its hidden set
-- ARGV  1… their names in the listing
--
-- Returns {1 or 0, …}: 1 where a window that is listed has lost none (sets.lua), and where one that
-- isn't has a key.

local call, there = redis.call, {}

-- include sets.lua

for i, name in ipairs(ARGV) do
  local listing, is = call('HGET', KEYS[1], name), present(KEYS[2 * i], KEYS[2 * i + 1])
  if listing then is = whole(setsOf(listing), is) end
  there[i] = is and 1 or 0
end
return there
