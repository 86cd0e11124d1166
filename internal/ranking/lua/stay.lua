-- stay.lua changes the time until which windows are readable.
--
-- KEYS  1 windows   2… of each window its sorted set, and its hidden set
-- ARGV  for each window: its name in the listing, its old listing, its new listing, and the time until which it is
--       readable in each, Unix ms
--
-- Returns {changed, number of windows changed}. A window stays unchanged if its listing is not the old one, or if the
-- old time is over.
--
-- A key must live a day longer than its window's time in the listing, and never shorter. So the script extends the
-- keys first, and shortens the listing first. If it dies in between, a key lives longer, and retire.lua waits for
-- that.

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
