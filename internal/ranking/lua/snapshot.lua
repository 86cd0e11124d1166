-- snapshot.lua reads a page of a window together with what is counted at that instant, or begins a
-- snapshot. What that is for, and why its pages are exact, is in internal/archive/snapshot.
--
-- KEYS  1 token of the snapshot   2 ledger   3 schema   4 a rebuild's lock   5 origin   6 rules
--       7 banned   8 windows
--       of a page: 9 the window's sorted set   10 its hidden set   11 final
-- ARGV  1 what the token holds while the snapshot is ours   2 ms that it lives on   3 schema
--       4 begin, look, or which of the window's sets to read: shown, hidden
--       of a page: 5 the window's name in the listing   6 where the scan goes on, 0 to begin it
--       7 about how many members
--
-- Returns one of
--   {read, now ms, ledger fields, origin fields, for each field of the ledger by which rules it is
--     counted ('' where that isn't noted), version of banned ('' for nobody), and of a page the
--     window's listing, its record among the final ones ('' where it was never sealed), where the scan
--     goes on (0 at its end), {member, score, …}}
--   {lost}                the token isn't there, or is another's
--   {other, whose it is}  to begin: another snapshot is being read
--   {schema, what it is, or ''}
--   {rebuilding}          a rebuild is under way, which may replace any window
--   {torn, field}         a piece was written in part
--   {gone}                the window isn't listed any more, or its retention is over
--   {missing}             it is listed, and a key that it has to have is gone
--
-- The token is set in the call that reads the first positions: where it is still there, Redis hasn't
-- gone back to before them. A swap takes it away.

local call = redis.call

-- include sets.lua

local token, begins = call('GET', KEYS[1]), ARGV[4] == 'begin'
if begins and token and token ~= ARGV[1] then return {'other', token} end
if not begins and token ~= ARGV[1] then return {'lost'} end
local schema = call('GET', KEYS[3])
if schema ~= ARGV[3] then return {'schema', schema or ''} end
if call('EXISTS', KEYS[4]) == 1 then return {'rebuilding'} end

local ledger, fields, by = call('HGETALL', KEYS[2]), {}, {}
for i = 1, #ledger, 2 do
  if string.sub(ledger[i + 1], 1, 5) == 'torn:' then return {'torn', ledger[i]} end
  fields[#fields + 1] = ledger[i]
end
local SLICE = 7000 -- values; unpack carries at most 8,000
for first = 1, #fields, SLICE do
  local noted = call('HMGET', KEYS[6], unpack(fields, first, math.min(first + SLICE - 1, #fields)))
  for i = 1, #noted do by[#by + 1] = noted[i] or '' end
end
local time = call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local answer = {
  'read', string.format('%.0f', now), ledger,
  call('HGETALL', KEYS[5]),
  by,
  call('HGET', KEYS[7], 'version') or '',
}
if #KEYS > 8 then
  local listing = call('HGET', KEYS[8], ARGV[5])
  if not listing or now >= (tonumber(string.match(listing, ' (%d+)$') or '') or math.huge) then return {'gone'} end
  if not whole(setsOf(listing), present(KEYS[9], KEYS[10])) then return {'missing'} end
  local page = call('ZSCAN', ARGV[4] == 'hidden' and KEYS[10] or KEYS[9], ARGV[6], 'COUNT', ARGV[7])
  answer[7], answer[8] = listing, call('HGET', KEYS[11], ARGV[5]) or ''
  answer[9], answer[10] = page[1], page[2]
end

if begins then
  call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
else
  call('PEXPIREAT', KEYS[1], string.format('%.0f', now + tonumber(ARGV[2])))
end
return answer
