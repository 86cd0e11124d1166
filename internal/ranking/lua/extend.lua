-- extend.lua adds periods to the schema of a shard, and records since when each is counted.
--
-- KEYS  1 schema   2 origin   3 hold
-- ARGV  1 the schema without the periods   2 with them   3 ms: the times of all events that were counted so far are
--       less
--         than this ahead of Redis's clock
--       for each period, to the end: its field in the origins, and the start of its first window, ms; '' if it has no
--         first window, or always if the board has been counted in the period all along
--
-- Returns one of
--   {extended}     also if it was extended before
--   {schema, found schema or ''}
--   {held}         a rebuild or a reshard is about to switch to what it built with the old schema
--
-- From this call on, workers with the old schema write nothing. All events that were counted before have times
-- earlier than now plus ARGV 3. The period's windows that start before that instant may lack some of these events, so
-- they are incomplete. The schema is written last, so that a period in it always has its time.

local call = redis.call

local schema = call('GET', KEYS[1])
if schema == ARGV[2] then return {'extended'} end
if schema ~= ARGV[1] then return {'schema', schema or ''} end
if call('EXISTS', KEYS[3]) == 1 then return {'held'} end
local time = call('TIME')
local since = tonumber(time[1]) * 1000 + math.ceil(tonumber(time[2]) / 1000) + tonumber(ARGV[3])
for i = 4, #ARGV, 2 do
  local first = tonumber(ARGV[i + 1])
  if ARGV[i + 1] == 'always' then
    local known = call('HGET', KEYS[2], ARGV[i])
    if not known then call('HSET', KEYS[2], ARGV[i], '0') end
  elseif not first or first < since then
    call('HSET', KEYS[2], ARGV[i], string.format('%.0f', since))
  end
end
call('SET', KEYS[1], ARGV[2])
return {'extended'}
