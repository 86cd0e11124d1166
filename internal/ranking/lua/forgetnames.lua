-- forgetnames.lua removes names of members whose last window has gone.
--
-- KEYS  1 names
-- ARGV  members, each followed by its name as it was read
--
-- Returns {number of names removed}. One that has changed since stays. As a listing, a name goes two
-- days after the time in it.

-- include greater.lua
-- include name.lua

local call = redis.call
local TWO_DAYS = 2 * 86400000

local now, gone = call('TIME')[1] * 1000, 0
for i = 1, #ARGV, 2 do
  local is = readName(ARGV[i + 1])
  if is and now >= is[2] + TWO_DAYS and call('HGET', KEYS[1], ARGV[i]) == ARGV[i + 1] then
    gone = gone + call('HDEL', KEYS[1], ARGV[i])
  end
end
return {gone}
