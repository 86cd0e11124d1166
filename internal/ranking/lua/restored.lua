-- restored.lua notes beside live boards what a snapshot says of windows that were dropped, or sealed,
-- before its rows take their place.
--
-- KEYS  1 the lock   2 windows   3 dropped   4 final
-- ARGV  1 what the lock holds while it is ours   2 number of fields of what is dropped
--       3… those fields, each with its value, then those of what is final
--
-- Returns {noted}, or {lost} where the lock isn't ours any more: then nothing is written.
--
-- What the live boards say is of later, and stays. Without the swap of what was dropped nothing is opened, as
-- before, and the next seal of a window is another revision, or the one that the snapshot has: until a
-- rebuild replaces it, it is said to lack what that lacks. What open windows lack is noted as they are swapped.

local call = redis.call

if call('GET', KEYS[1]) ~= ARGV[1] then return {'lost'} end
local final = 3 + 2 * tonumber(ARGV[2])
for i = 3, final - 1, 2 do
  local there = call('HGET', KEYS[2], ARGV[i])
  there = there or call('HGET', KEYS[3], ARGV[i])
  if not there then call('HSET', KEYS[3], ARGV[i], ARGV[i + 1]) end
end
for i = final, #ARGV, 2 do
  local there = call('HGET', KEYS[4], ARGV[i])
  if not there then call('HSET', KEYS[4], ARGV[i], ARGV[i + 1]) end
end
return {'noted'}
