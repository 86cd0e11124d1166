-- mark.lua has a shard be a reshard's copy from now on: what others have on their way for it is
-- refused. Boards that are read, and another's copy, stay.
--
-- KEYS  1 whose copy it is   2 schema
-- ARGV  1 what the first holds while the copy is ours   2 whose it may have been, '' for nobody's
--       3 ms that it lives
--
-- Returns one of
--   {marked}              also if it was ours already: then it lives on from now
--   {other, whose it is}
--   {stands}              it is nobody's copy, and has a schema: boards

local call = redis.call

local found = call('GET', KEYS[1]) or ''
if found ~= ARGV[1] then
  if found ~= ARGV[2] then return {'other', found} end
  local schema = call('GET', KEYS[2]) or ''
  if found == '' and schema ~= '' and not string.find(schema, '^{"moved":') then return {'stands'} end
end
call('SET', KEYS[1], ARGV[1], 'PX', ARGV[3])
return {'marked'}
