-- dropboards.lua drops windows: nobody is in them any more, and nobody will be.
--
-- KEYS  1 windows   2 dropped   3 a rebuild's lock   4… the sorted set of each window
-- ARGV  the windows' names in the listing
--
-- Returns {number of windows dropped}, or {busy} while a rebuild is under way, which would
-- bring them back.
--
-- A window that were only removed would be opened again by its next event, and would look
-- whole. So it is kept in mind until it would be over: apply.lua opens none that is. A
-- script that dies midway leaves a key that isn't listed, and is never looked at: it
-- expires with its window.

local call = redis.call

if call('EXISTS', KEYS[3]) == 1 then return {'busy'} end
local dropped = 0
for i = 1, #ARGV do
  local name = ARGV[i]
  local listing = call('HGET', KEYS[1], name)
  if listing then
    call('HSET', KEYS[2], name, string.match(listing, '%d+$') or '')
    call('HDEL', KEYS[1], name)
    call('UNLINK', KEYS[3 + i])
    dropped = dropped + 1
  end
end
return {dropped}
