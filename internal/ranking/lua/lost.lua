-- lost.lua says which windows of a page of the listing Redis has lost.
--
-- KEYS  1 windows   2… of each window its sorted set, and its hidden set
-- ARGV  1… their names in the listing
--
-- Returns {name, …}: those that are listed and not over, and lack a key that they have to have. What
-- was dropped since the page was read is no longer listed.

local call = redis.call
local time = call('TIME')
local now = tonumber(time[1]) * 1000 + tonumber(time[2]) / 1000
local lost = {}

-- include sets.lua

for i = 1, #ARGV do
  local listing = call('HGET', KEYS[1], ARGV[i])
  local expires = string.match(listing or '', ' (%d+)$')
  if expires and now < tonumber(expires) and not whole(setsOf(listing), present(KEYS[2 * i], KEYS[2 * i + 1])) then
    lost[#lost + 1] = ARGV[i]
  end
end
return lost
