-- extend.lua adds periods to the schema of a shard, whose windows all lie ahead: whatever was
-- counted before lies in none of them.
--
-- KEYS  1 schema
-- ARGV  1 the schema without them   2 with them   3 ms by which it has to be done
--
-- Returns one of
--   {extended}     also if it was before
--   {schema, what it is, or ''}
--   {too late}
--
-- Whoever still writes by the schema without them finds another one from here on, and stops: so
-- no event is counted without them that may lie in one of their windows.

local call = redis.call

local schema = call('GET', KEYS[1])
if schema == ARGV[2] then return {'extended'} end
if schema ~= ARGV[1] then return {'schema', schema or ''} end
local time = call('TIME')
if tonumber(time[1]) * 1000 + tonumber(time[2]) / 1000 >= tonumber(ARGV[3]) then return {'too late'} end
call('SET', KEYS[1], ARGV[2])
return {'extended'}
