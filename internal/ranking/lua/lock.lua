-- lock.lua takes a lock that ends by itself, or says who has it.
--
-- KEYS  1 the lock   2 a lock that has to be ours already; the first again for none
-- ARGV  1 what the first is to hold   2 ms that it lives   3 what the second holds
--
-- Returns one of
--   {taken}         also if it was ours already: then it lives on from now
--   {lost}          the second isn't ours any more
--   {busy, what it holds, ms that it still lives}

local call = redis.call

if KEYS[2] ~= KEYS[1] and call('GET', KEYS[2]) ~= ARGV[3] then return {'lost'} end
local holds = call('GET', KEYS[1])
if holds and holds ~= ARGV[1] then return {'busy', holds, call('PTTL', KEYS[1])} end
call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return {'taken'}
