-- renumber.lua is the one step that changes how many shards a prefix has.
--
-- KEYS  1 the record   2 the reshard's lock
-- ARGV  1 what the lock holds while it is ours   2 the record to write   3 the record that is
--       expected, '' for none
--
-- Returns one of
--   {written}            also if it was written before, by a call whose answer never came
--   {lost}               the lock isn't ours any more
--   {other, the record}

local call = redis.call

if call('GET', KEYS[2]) ~= ARGV[1] then return {'lost'} end
local found = call('GET', KEYS[1]) or ''
if found == ARGV[2] then return {'written'} end
if found ~= ARGV[3] then return {'other', found} end
call('SET', KEYS[1], ARGV[2])
return {'written'}
