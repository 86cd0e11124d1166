-- release.lua lets go of a lock, if it is ours.
--
-- KEYS  1 the lock
-- ARGV  1 what it holds if it is ours
--
-- Returns {number of locks released}.

local call = redis.call

if call('GET', KEYS[1]) ~= ARGV[1] then return {0} end
return {call('UNLINK', KEYS[1])}
