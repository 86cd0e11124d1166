-- renew.lua lets a part of what a rebuild has live on, to one moment for all of it.
--
-- KEYS  1 the lock   2… keys of the rebuild
-- ARGV  1 what the lock holds if it is ours   2 until when the keys are to live, ms; '' to
--       choose that moment and renew nothing yet   3 ms from now on, to choose it
--       4 number of keys that come in pairs, of which one has to be there: the last ones
--
-- Returns one of
--   {renewed, until when}
--   {lost, key}     the lock isn't ours any more, or a key is gone: none of these was
--                   renewed, since a shadow of which a part is gone is no shadow

local call = redis.call

if call('GET', KEYS[1]) ~= ARGV[1] then return {'lost', KEYS[1]} end
local single = #KEYS - tonumber(ARGV[4])
for i = 2, single do
  if call('EXISTS', KEYS[i]) == 0 then return {'lost', KEYS[i]} end
end
for i = single + 1, #KEYS, 2 do
  if call('EXISTS', KEYS[i], KEYS[i + 1]) == 0 then return {'lost', KEYS[i]} end
end
if ARGV[2] ~= '' then
  for i = 2, #KEYS do call('PEXPIREAT', KEYS[i], ARGV[2]) end
  return {'renewed', ARGV[2]}
end
local time = call('TIME')
return {'renewed', string.format('%.0f', tonumber(time[1]) * 1000 + tonumber(time[2]) / 1000 + tonumber(ARGV[3]))}
