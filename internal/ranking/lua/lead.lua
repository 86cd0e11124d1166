-- lead.lua takes the lease of the leader, renews it, or lets go of it.
--
-- KEYS  1 the leader
-- ARGV  1 who wants it: a process, by a name that no other ever has   2 the token that it leads by;
--       '' to take the lease   3 a token that a new one has to be larger than   4 ms that the lease
--       lasts from now; 0 to let go of it
--
-- Returns one of
--   {leads, token}
--   {busy, who has it, ms that they still do}
--   {lost}                 it doesn't lead by that token any more
--   {full}                 there is no larger token
--   {unknown, what the key holds}
--
-- The key holds the token, until when and how long the lease is, in ms, and who has it. It never
-- expires: the next token is larger than the last, however long ago that was. What a lease that is
-- let go of keeps is its token.
--
-- A clock that went back would leave the lease for as long as that: a lease that is to end later
-- than a whole length from now is written anew, to end by then. A clock that went forward ends it
-- early: two lead for a moment, and the later has the larger token.

local call, tonumber = redis.call, tonumber

local time = call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local lasts = tonumber(ARGV[4])

local function write(token, till, length, owner)
  call('SET', KEYS[1], string.format('%.0f %.0f %.0f %s', token, till, length, owner))
end

local holds = call('GET', KEYS[1])
local token, till, length, owner = 0, 0, 0, ''
if holds then
  local t, e, l, o = string.match(holds, '^(%d+) (%d+) (%d+) (.*)$')
  if not t then return {'unknown', holds} end
  token, till, length, owner = tonumber(t), tonumber(e), tonumber(l), o
end

if ARGV[2] ~= '' then
  if owner ~= ARGV[1] or token ~= tonumber(ARGV[2]) then return {'lost'} end
  write(token, lasts > 0 and now + lasts or 0, lasts, owner)
  return {'leads', string.format('%.0f', token)}
end

-- Whoever has it and takes it again doesn't know of it: the answer was lost.
if owner ~= ARGV[1] and till > now then
  if till > now + length then
    till = now + length
    write(token, till, length, owner)
  end
  return {'busy', owner, string.format('%.0f', till - now)}
end
token = math.max(token, tonumber(ARGV[3])) + 1
if token >= 9007199254740992 then return {'full'} end -- 2^53: beyond it a number of Lua isn't the next
write(token, now + lasts, lasts, ARGV[1])
return {'leads', string.format('%.0f', token)}
