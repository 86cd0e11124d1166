-- stay.lua changes until when windows are readable.
--
-- KEYS  1 windows   2… of each window its sorted set, and its hidden set
-- ARGV  for each window: its name in the listing, its listing as it was read, and as it becomes, and until when it
--       is readable by either, Unix ms
--
-- Returns {changed, how many are}. A window that is listed otherwise meanwhile, or whose time is over, stays as it is.
--
-- A key outlives its window's time in the listing by a day, and never less: of a longer time the keys
-- are first, of a shorter one the listing is. If the script dies between them a key lives longer than
-- that, which retire.lua waits for.

local call, tonumber = redis.call, tonumber
local DAY = 86400000 -- a key expires this long after its window's time

local now = tonumber(call('TIME')[1]) * 1000

local function expire(key, at)
  if call('PTTL', key) < 0 then return end
  call('PEXPIREAT', key, string.format('%.0f', at + DAY))
end

local changed = 0
for i = 2, #KEYS, 2 do
  local arg = 5 * (i / 2) - 4
  local name, listing, becomes = ARGV[arg], ARGV[arg + 1], ARGV[arg + 2]
  local was, to = tonumber(ARGV[arg + 3]), tonumber(ARGV[arg + 4])
  if was > now and call('HGET', KEYS[1], name) == listing then
    if to < was then call('HSET', KEYS[1], name, becomes) end
    expire(KEYS[i], to)
    expire(KEYS[i + 1], to)
    if to > was then call('HSET', KEYS[1], name, becomes) end
    changed = changed + 1
  end
end
return {'changed', changed}
