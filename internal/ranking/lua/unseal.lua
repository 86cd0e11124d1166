-- unseal.lua takes a window's seal back: what comes for it counts again.
--
-- KEYS  1 windows   2 final   3 a rebuild's lock   4 ledger   5 hold
-- ARGV  1 the window's name in the listing   2 until when nothing seals it by itself, Unix ms   3 why
--
-- Returns {unsealed, its revision}, {open} where it isn't final, {over} where its retention is over, so that
-- nothing would count in it and nothing would seal it again, {busy} while a rebuild is under way, which has
-- decided to leave the window alone, or {held} while one is about to swap, or a reshard copies what is there.
--
-- That it was taken back is noted before it is, so that the next seal is another revision. Between the
-- seal and now events have passed the window by, and nothing brings them back but a rebuild: they are those
-- that the ledger counts by now and didn't then, so it is noted beside the seal's (record.lua). Where the record
-- is lost, or the ledger, nobody knows which: then the instant 0, or this one, has no ledger.

-- include listing.lua
-- include record.lua

local call = redis.call

if call('EXISTS', KEYS[3]) == 1 then return {'busy'} end
if call('EXISTS', KEYS[5]) == 1 then return {'held'} end
local l = readListing(call('HGET', KEYS[1], ARGV[1]))
if not (l and l.final) then return {'open'} end
local time = call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2]) -- µs
if l.expires * 1000 <= now then return {'over'} end
local r = readRecord(call('HGET', KEYS[2], ARGV[1])) or {at = 0, passed = {}}
local ledger = call('HGETALL', KEYS[4])
local counted = cjson.encode(ledger)
if #ledger > 0 then call('HSET', KEYS[2], string.format('@%.0f', now), counted) end
-- A call that died before its last write has noted an earlier end of the same.
local last = r.passed[#r.passed]
if last and last[1] == r.at then table.remove(r.passed) end
table.insert(r.passed, {r.at, now})
r.revision, r.reopened, r.why = l.final, tonumber(ARGV[2]), ARGV[3]
call('HSET', KEYS[2], ARGV[1], recordText(r))
l.final = nil
call('HSET', KEYS[1], ARGV[1], listingText(l))
return {'unsealed', r.revision}
