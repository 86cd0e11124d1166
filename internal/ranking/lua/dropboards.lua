-- dropboards.lua drops windows: nobody is in them any more, and nobody will be.
--
-- KEYS  1 windows   2 dropped   3 a rebuild's lock   4… of each window its sorted set, and
--       its hidden set
-- ARGV  the windows' names in the listing
--
-- Returns {number of windows dropped, their names…}, or {busy} while a rebuild is under way,
-- which would bring them back.
--
-- A window that were only removed would be opened again by its next event, and would look
-- whole. So it is kept in mind until it would be over: apply.lua opens none that is.
--
-- What is listed counts as before, also if it is kept in mind already. So a script that dies
-- between HSET and UNLINK has changed nothing for anybody; between UNLINK and HDEL it leaves
-- a window that is listed and lost, which halts those who count in it. Either way the window
-- is still listed, and the same command finds it again and finishes it.
--
-- A drop is what makes room, so it has to work on a Redis that is full: HSET isn't refused
-- for that (OOM) once the script has called what writes and takes no memory. UNLINK and
-- HDEL are called first on what isn't there: without the right to one of them, or to HSET,
-- which comes next, nothing is written.

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
