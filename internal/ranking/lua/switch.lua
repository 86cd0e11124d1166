-- switch.lua writes a text: the number of a prefix's shards, that members of a shard have moved, or who owns a copy.
--
-- KEYS  1 the key to write   2 a lock that the caller must hold, or the first key for no lock
--       3 the schema of a shard that must have no boards if key 1 is empty; may be absent
-- ARGV  1 content of the lock while the caller holds it   2 the text   3 ms until it expires, '' for never
--       4 the expected old text, '' for none; absent if any will do
--
-- Returns one of
--   {written}            also if an earlier call wrote it, whose answer was lost
--   {lost}               the caller no longer holds the lock
--   {other, the found text}
--   {stands}             the shard has boards

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
