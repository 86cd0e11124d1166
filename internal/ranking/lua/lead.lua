-- lead.lua takes, renews or releases the leader's lease.
--
-- KEYS  1 the leader
-- ARGV  1 the owner: a process, by a name that no other process ever has   2 the token of the owner's lease; '' to take
--       the lease   3 a token that a new one must exceed   4 duration of the lease from now, ms; 0 to release it
--
-- Returns one of
--   {leads, token}
--   {busy, the other owner, ms until its lease ends}
--   {lost}                 the owner no longer has a lease with this token
--   {full}                 no larger token exists
--   {unknown, content of the key}
--
-- The key holds the token, the lease's end and duration in ms, and the owner. It never expires, so that the next
-- token is larger than the last one, however long ago that was. A released lease keeps its token.
--
-- If Redis's clock goes back, the lease would last longer by the difference. So a lease that ends later than one
-- duration from now is shortened to one duration. If the clock goes forward, the lease ends early: two processes lead
-- for a moment, and the later one has the larger token.

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

-- The owner of a lease can take it again: it doesn't know that it has it, because the answer was lost.
if owner ~= ARGV[1] and till > now then
  if till > now + length then
    till = now + length
    write(token, till, length, owner)
  end
  return {'busy', owner, string.format('%.0f', till - now)}
end
token = math.max(token, tonumber(ARGV[3])) + 1
if token >= 9007199254740992 then return {'full'} end -- 2^53: above it Lua's numbers skip integers
write(token, now + lasts, lasts, ARGV[1])
return {'leads', string.format('%.0f', token)}
