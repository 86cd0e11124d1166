-- renew.lua lets all that a rebuild has live on from now, to the same moment.
--
-- KEYS  1 the lock   2… every key of the shadow
-- ARGV  1 what the lock holds if it is ours   2 ms
--
-- Returns one of
--   {renewed}
--   {lost, key}     it isn't ours any more, or a key of the shadow is gone: nothing was
--                   renewed, since a shadow of which a part is gone is no shadow

local call = redis.call

if call('GET', KEYS[1]) ~= ARGV[1] then return {'lost', KEYS[1]} end
for i = 2, #KEYS do
  if call('EXISTS', KEYS[i]) == 0 then return {'lost', KEYS[i]} end
end
local time = call('TIME')
local lease = string.format('%.0f', tonumber(time[1]) * 1000 + tonumber(time[2]) / 1000 + tonumber(ARGV[2]))
for i = 1, #KEYS do call('PEXPIREAT', KEYS[i], lease) end
return {'renewed'}
