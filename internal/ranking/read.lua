-- read.lua reads a window's rows, or members, as of one moment.
--
-- KEYS  1 schema   2 windows   3 origin   4 the window's sorted set
-- ARGV  1 schema   2 name in the listing   3 first row (from 0)   4 last row, or
--       '' for none   5… members to look up
--
-- Returns {schema, what it is, or ''} where that differs, else
--   {window, listing or '', number of members, origin fields,
--    {member, score, …}, {rank from 0 or -1, score or '', …}}
-- A window whose retention is over has no listing, no rows and no members.

local call = redis.call
local schema = call('GET', KEYS[1])
if schema ~= ARGV[1] then return {'schema', schema or ''} end

local time = call('TIME')
local now = tonumber(time[1]) * 1000 + tonumber(time[2]) / 1000
local listing = call('HGET', KEYS[2], ARGV[2])
local expires = listing and tonumber(string.match(listing, ' (%d+)$'))
if not expires or expires <= now then listing = false end

local rows, looked = {}, {}
if listing and ARGV[4] ~= '' then
  rows = call('ZREVRANGE', KEYS[4], ARGV[3], ARGV[4], 'WITHSCORES')
end
for i = 5, #ARGV do
  local rank = listing and call('ZREVRANK', KEYS[4], ARGV[i])
  looked[#looked + 1] = rank or -1
  looked[#looked + 1] = rank and call('ZSCORE', KEYS[4], ARGV[i]) or ''
end
return {
  'window', listing or '', listing and call('ZCARD', KEYS[4]) or 0,
  call('HGETALL', KEYS[3]), rows, looked,
}
