-- unseal.lua reopens a final window: later events count in it again.
--
-- KEYS  1 windows   2 final   3 a rebuild's lock   4 ledger   5 hold
-- ARGV  1 the window's name in the listing   2 until when no job seals it by itself, Unix ms   3 the reason
--
-- Returns {unsealed, the revision of the seal}; {open} if the window isn't final; {over} if its retention is over, so
-- that no event would count in it and no job would seal it again; {busy} while a rebuild is running, which has
-- decided to keep the window; or {held} while a rebuild is about to swap, or a reshard copies the shard.
--
-- The script records the reopening before it removes the seal, so that the next seal gets another revision. Events
-- that came since the seal are missing in the window, and only a rebuild adds them: they are the events that the
-- ledger counts now and didn't count at the seal. The script adds the two instants to the window's record
-- (record.lua). If the record or the ledger is lost, these events are unknown: then instant 0, or this instant, has
-- no ledger.

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
-- If a call died before its last write, the record already has an earlier end for the same seal.
local last = r.passed[#r.passed]
if last and last[1] == r.at then table.remove(r.passed) end
table.insert(r.passed, {r.at, now})
r.revision, r.reopened, r.why = l.final, tonumber(ARGV[2]), ARGV[3]
call('HSET', KEYS[2], ARGV[1], recordText(r))
l.final = nil
call('HSET', KEYS[1], ARGV[1], listingText(l))
return {'unsealed', r.revision}
