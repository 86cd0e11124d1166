-- retire.lua drops the listings of windows that are over for good.
--
-- KEYS  1 windows   2 final   3… of each window its sorted set, and its hidden set
-- ARGV  for each window: its name in the listing, its listing as it was read
--
-- Returns {number of listings dropped}.
--
-- A window is over at the time in its listing, its key is gone a day after that,
-- its listing goes a day after that. One whose key is still there (somebody has
-- taken its expiry away) stays listed: a key without a listing would halt. Its revision goes first.

local call, tonumber = redis.call, tonumber
local TWO_DAYS = 2 * 86400000

local time = call('TIME')
local now = tonumber(time[1]) * 1000
local dropped = 0
for i = 3, #KEYS, 2 do
  local name, listing = ARGV[i - 2], ARGV[i - 1]
  local expires = tonumber(string.match(listing, ' (%d+)$'))
  if expires and now >= expires + TWO_DAYS
      and call('HGET', KEYS[1], name) == listing
      and call('EXISTS', KEYS[i], KEYS[i + 1]) == 0 then
    call('HDEL', KEYS[2], name)
    dropped = dropped + call('HDEL', KEYS[1], name)
  end
end
return {dropped}
