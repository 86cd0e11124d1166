-- number.lua says how many shards a prefix has, by the record of it, and whether a reshard is
-- under way.
--
-- KEYS  1 the record   2 a reshard's lock
--
-- Returns {the record or '', what the lock holds or ''}.

local call = redis.call

local record = call('GET', KEYS[1]) or ''
local lock = call('GET', KEYS[2]) or ''
return {record, lock}
