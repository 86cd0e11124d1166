-- unseal.lua takes a window's seal back: what comes for it counts again.
--
-- KEYS  1 windows   2 final   3 a rebuild's lock
-- ARGV  1 the window's name in the listing   2 until when nothing seals it by itself, Unix ms   3 why
--
-- Returns {unsealed, its revision}, {open} where it isn't final, or {busy} while a rebuild is under
-- way, which has decided to leave the window alone.
--
-- That it was taken back is noted before it is, so that the next seal is another revision.

local call = redis.call

if call('EXISTS', KEYS[3]) == 1 then return {'busy'} end
local listing = call('HGET', KEYS[1], ARGV[1]) or ''
local revision = string.match(listing, ' =(%d+) ')
if not revision then return {'open'} end
local record = call('HGET', KEYS[2], ARGV[1]) or ''
local instant = string.match(record, '^%d+ (%d+)') or '0'
call('HSET', KEYS[2], ARGV[1], string.format('%s %s reopened %s %s', revision, instant, ARGV[2], ARGV[3]))
call('HSET', KEYS[1], ARGV[1], (string.gsub(listing, '=%d+ ', '', 1)))
return {'unsealed', tonumber(revision)}
