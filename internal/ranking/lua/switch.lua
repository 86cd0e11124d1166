-- switch.lua writes a text: how many shards a prefix has, that a shard was left, or whose copy a shard is.
--
-- KEYS  1 what is written   2 a lock that has to be ours; the first again for none   3 a schema that no boards may have
--       if nothing was written before, if that matters
-- ARGV  1 what the lock holds while it is ours   2 the text   3 ms that it lives, '' for ever   4 what is expected there,
--       '' for nothing; absent if that doesn't matter
--
-- Returns one of
--   {written}            also if it was written before, by a call whose answer never came
--   {lost}               the lock isn't ours any more
--   {other, what is there}
--   {stands}             boards stand there

local call = redis.call

if KEYS[2] ~= KEYS[1] and call('GET', KEYS[2]) ~= ARGV[1] then return {'lost'} end
local found = call('GET', KEYS[1]) or ''
if found ~= ARGV[2] and ARGV[4] and found ~= ARGV[4] then return {'other', found} end
local schema = KEYS[3] and found == '' and call('GET', KEYS[3]) or ''
if schema ~= '' and not string.find(schema, '^{"moved":') then return {'stands'} end
if ARGV[3] == '' then
  call('SET', KEYS[1], ARGV[2])
else
  call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
end
return {'written'}
