-- leave.lua marks a shard whose members have moved to another number of shards: whoever still
-- writes or reads it finds that in place of a schema.
--
-- KEYS  1 schema   2 hold
-- ARGV  1 the mark   2 what the hold holds while it is ours
--
-- Returns {left}, or {lost} where the hold isn't ours any more.

local call = redis.call

if call('GET', KEYS[2]) ~= ARGV[2] then return {'lost'} end
call('SET', KEYS[1], ARGV[1])
return {'left'}
