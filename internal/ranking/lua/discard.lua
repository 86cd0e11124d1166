-- discard.lua removes keys while a lock is ours.
--
-- KEYS  1 the lock   2… the keys
-- ARGV  1 what the lock holds while it is ours
--
-- Returns {discarded, number of keys that were there}, or {lost} where the lock isn't ours any
-- more: then nothing is removed.

local call = redis.call

if call('GET', KEYS[1]) ~= ARGV[1] then return {'lost'} end
local n = 0
for i = 2, #KEYS do
  n = n + call('UNLINK', KEYS[i])
end
return {'discarded', n}
