-- settle.lua settles where calendar windows start and end. A settled border never moves.
--
-- KEYS  1 borders
-- ARGV  1 1 to settle borders, '' only to read them
--       for each border: its name, the caller's instant for it ms, until when it is kept ms
--
-- Returns {ms, …}: where each border is settled, or '' if it isn't. A border that would no longer be kept isn't
-- settled.
--
-- A border is kept longer than any window that starts or ends there. When a border is settled, the script removes the
-- borders that are no longer kept.

local call, tonumber = redis.call, tonumber
local time = call('TIME')
local now = tonumber(time[1]) * 1000

local settled, new = {}, false
for i = 2, #ARGV, 3 do
  local found, at, keep = call('HGET', KEYS[1], ARGV[i]), nil, nil
  if found then at, keep = string.match(found, '^(%S+) (%S+)$') end
  if ARGV[1] == '1' then
    if not at and now < tonumber(ARGV[i + 2]) then
      at, keep, new = ARGV[i + 1], -1, true
    end
    if at and tonumber(keep) < tonumber(ARGV[i + 2]) then
      call('HSET', KEYS[1], ARGV[i], at .. ' ' .. ARGV[i + 2])
    end
  end
  settled[#settled + 1] = at or ''
end
if new then
  local all = call('HGETALL', KEYS[1])
  for i = 1, #all, 2 do
    local keep = tonumber(string.match(all[i + 1], ' (%S+)$'))
    if keep and keep <= now then call('HDEL', KEYS[1], all[i]) end
  end
end
return settled
