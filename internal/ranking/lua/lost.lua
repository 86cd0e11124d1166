-- lost.lua says which windows of a page of the listing Redis has lost.
--
-- KEYS  1 windows   2… the sorted set of each window
-- ARGV  1… their names in the listing
--
-- Returns {name, …}: those that are listed and not over, and whose key is gone. What was
-- dropped since the page was read is no longer listed.

local call = redis.call
local time = call('TIME')
local now = tonumber(time[1]) * 1000 + tonumber(time[2]) / 1000
local lost = {}
for i = 2, #KEYS do
  local listing = call('HGET', KEYS[1], ARGV[i - 1])
  local expires = string.match(listing or '', ' (%d+)$')
  if expires and now < tonumber(expires) and call('EXISTS', KEYS[i]) == 0 then lost[#lost + 1] = ARGV[i - 1] end
end
return lost
