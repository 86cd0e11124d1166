-- stay.lua changes until when windows are readable.
--
-- KEYS  1 windows   2… of each window its sorted set, and its hidden set
-- ARGV  1 longer or shorter   then for each window: its name in the listing, its listing as it was
--       read, and until when it is to be readable at least, or at most, Unix ms
--
-- Returns {changed, how many are}. A window that is listed otherwise meanwhile, or whose time is over, or
-- is long or short enough already, stays as it is.
--
-- A key outlives its window's time in the listing by a day, and never less: of a longer time the keys
-- are first, of a shorter one the listing is. If the script dies between them a key lives longer than
-- that, which retire.lua waits for.

local call, tonumber = redis.call, tonumber
local DAY = 86400000 -- a key expires this long after its window's time

local time = call('TIME')
local now = tonumber(time[1]) * 1000
local longer = ARGV[1] == 'longer'

local function expire(key, at)
  if call('PTTL', key) < 0 then return end
  call('PEXPIREAT', key, string.format('%.0f', at + DAY))
end

local changed = 0
for i = 2, #KEYS, 2 do
  local arg = 3 * (i / 2) - 1
  local name, listing, to = ARGV[arg], ARGV[arg + 1], tonumber(ARGV[arg + 2])
  local expires = tonumber(string.match(listing, ' (%d+)$') or '')
  local other = expires and (longer and to > expires or not longer and to < expires)
  if other and expires > now and call('HGET', KEYS[1], name) == listing then
    local listed = string.gsub(listing, ' %d+$', string.format(' %.0f', to))
    if not longer then call('HSET', KEYS[1], name, listed) end
    expire(KEYS[i], to)
    expire(KEYS[i + 1], to)
    if longer then call('HSET', KEYS[1], name, listed) end
    changed = changed + 1
  end
end
return {'changed', changed}
