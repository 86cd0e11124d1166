-- dropboards.lua drops windows with all of their standings. Nothing opens them again.
--
-- KEYS  1 windows   2 dropped   3 a rebuild's lock   4… of each window its sorted set, and its hidden set
-- ARGV  the windows' names in the listing
--
-- Returns {number of windows dropped, their names…}, or {busy} while a rebuild is running, which would bring them
-- back.
--
-- If a window were only removed, its next event would open it again, and it would look complete. So dropped keeps its
-- name until the window would be over, and apply.lua doesn't open it.
--
-- A listed window counts as before, even if dropped has its name. So a script that dies between HSET and UNLINK has
-- changed nothing that counts. A script that dies between UNLINK and HDEL leaves a window that is listed and lost,
-- and workers with events for it halt. In both cases the window is still listed, so the same command finds and
-- finishes it.
--
-- An operator may drop boards to free memory, so the script must work on a full Redis. Redis doesn't refuse HSET
-- (OOM) once the script has called a write command that needs no memory. So UNLINK and HDEL are first called on
-- something that doesn't exist. If the right to one of them, or to HSET, which follows, is missing, nothing is
-- written.

-- include listing.lua

local call = redis.call

if call('EXISTS', KEYS[3]) == 1 then return {'busy'} end
call('UNLINK', KEYS[3])
call('HDEL', KEYS[1], '')
local dropped = {0}
for i = 1, #ARGV do
  local name = ARGV[i]
  local listing = call('HGET', KEYS[1], name)
  if listing then
    local l = readListing(listing)
    call('HSET', KEYS[2], name, l and string.format('%.0f', l.expires) or '')
    call('UNLINK', KEYS[2 * i + 2], KEYS[2 * i + 3])
    call('HDEL', KEYS[1], name)
    dropped[#dropped + 1] = name
    dropped[1] = dropped[1] + 1
  end
end
return dropped
