-- longer.lua has windows stay readable until a later time than they were to.
--
-- KEYS  1 windows   2… of each window its sorted set, and its hidden set
-- ARGV  for each window: its name in the listing, its listing as it was read, and until when it is
--       to be readable at least, Unix ms
--
-- Returns {longer, how many are}. One that is listed otherwise meanwhile, or whose time is over or
-- later already, stays as it is.
--
-- The keys are first: what dies between them and the listing has a key that lives longer than it
-- is listed, which retire.lua waits for.

local call, tonumber = redis.call, tonumber
local DAY = 86400000 -- a key expires this long after its window's time

local time = call('TIME')
local now = tonumber(time[1]) * 1000
local longer = 0
for i = 2, #KEYS, 2 do
  local arg = 3 * (i / 2) - 2
  local name, listing, to = ARGV[arg], ARGV[arg + 1], tonumber(ARGV[arg + 2])
  local expires = tonumber(string.match(listing, ' (%d+)$') or '')
  if expires and expires > now and to > expires and call('HGET', KEYS[1], name) == listing then
    for j = i, i + 1 do
      local left = call('PTTL', KEYS[j])
      if left >= 0 then call('PEXPIREAT', KEYS[j], string.format('%.0f', to + DAY)) end
    end
    call('HSET', KEYS[1], name, (string.gsub(listing, ' %d+$', string.format(' %.0f', to))))
    longer = longer + 1
  end
end
return {'longer', longer}
