-- unseal.lua takes a window's seal back: what comes for it counts again.
--
-- KEYS  1 windows   2 final   3 a rebuild's lock   4 ledger
-- ARGV  1 the window's name in the listing   2 until when nothing seals it by itself, Unix ms   3 why
--
-- Returns {unsealed, its revision}, {open} where it isn't final, or {busy} while a rebuild is under
-- way, which has decided to leave the window alone.
--
-- That it was taken back is noted before it is, so that the next seal is another revision. Between the
-- seal and now events have passed the window by, and nothing brings them back but a rebuild: they are those
-- that the ledger counts by now and didn't then, so it is noted beside the seal's (seal.lua).

local call = redis.call

if call('EXISTS', KEYS[3]) == 1 then return {'busy'} end
local listing = call('HGET', KEYS[1], ARGV[1]) or ''
local revision = string.match(listing, ' =(%d+) ')
if not revision then return {'open'} end
local record = call('HGET', KEYS[2], ARGV[1]) or ''
local instant, passed = string.match(record, '^%d+ (%d+) ?([%d,-]*)')
if instant then
  local time = call('TIME')
  local now = string.format('%s%06d', time[1], tonumber(time[2]))
  local counted = cjson.encode(call('HGETALL', KEYS[4]))
  call('HSET', KEYS[2], '@' .. now, counted)
  -- A call that died before its last write has noted an earlier end of the same.
  passed = string.gsub(passed, ',?' .. instant .. '%-%d+$', '')
  passed = (passed == '' and '' or passed .. ',') .. instant .. '-' .. now .. ' '
end
call('HSET', KEYS[2], ARGV[1], string.format('%s %s %sreopened %s %s', revision, instant or '0', passed or '', ARGV[2], ARGV[3]))
call('HSET', KEYS[1], ARGV[1], (string.gsub(listing, '=%d+ ', '', 1)))
return {'unsealed', tonumber(revision)}
