-- seal.lua makes windows final: from then on nothing is added to them.
--
-- KEYS  1 ledger   2 schema   3 hold   4 windows   5 a rebuild's lock   6 final
--       7… of each window its sorted set, and its hidden set
-- ARGV  1 schema   2 number of partitions   3… of each its field of the ledger, and the offset
--       before which every event has to count: the log's end as it was found once the last of
--       the windows took nothing any more
--       then for each window: its name in the listing, its listing as it was read ('' where this
--         shard has none), the listing that it has on a shard that has it, ms that it takes events
--         after its end, and its least revision: what another shard was sealed with already
--
-- Returns one of
--   {sealed, what each window is by now…}
--   {schema, what it is, or ''}
--   {held}                        a rebuild is about to swap, or a reshard to switch over
--   {busy}                        a rebuild is under way, which may replace any of them
--   {behind, field, position}     a partition doesn't count that far yet
-- A window is
--   a number     final, of this revision; it may have been before
--   open         it takes events still, by the clock of Redis
--   listing      it isn't listed as it was read any more, or its retention is over
--   lost         a key of it is gone: it has to be rebuilt first
--
-- Late events of a member on any shard would open a window that is listed on others alone, so
-- every shard lists a final window.
--
-- The first write is the ledger, the second the revision, the last the listing: a script that dies
-- between them has sealed nothing, and the next call gives the same revision again.

local call, tonumber = redis.call, tonumber

-- include listing.lua
-- include record.lua

local schema = call('GET', KEYS[2])
if schema ~= ARGV[1] then return {'schema', schema or ''} end
if call('EXISTS', KEYS[3]) == 1 then return {'held'} end
if call('EXISTS', KEYS[5]) == 1 then return {'busy'} end

-- Offsets are whole and below 2^53, or the log would have to be 250 years old at a million a second.
local arg = 3 + 2 * tonumber(ARGV[2])
for i = 3, arg - 1, 2 do
  local position = call('HGET', KEYS[1], ARGV[i]) or ''
  local from = tonumber(string.match(position, '^%d+') or '') -- of torn:… nothing
  if not from or from < tonumber(ARGV[i + 1]) then return {'behind', ARGV[i], position} end
end

local time = call('TIME')
local now = tonumber(time[1]) * 1000 + tonumber(time[2]) / 1000
local instant = tonumber(time[1]) * 1000000 + tonumber(time[2]) -- µs
local noted = false

local all = {'sealed'}
for i = 1, (#KEYS - 6) / 2 do
  local name, seen, listing = ARGV[arg], ARGV[arg + 1], ARGV[arg + 2]
  local lateness, least = tonumber(ARGV[arg + 3]), tonumber(ARGV[arg + 4])
  arg = arg + 5
  local found = call('HGET', KEYS[4], name) or ''
  local l, own, is = readListing(listing), readListing(found) or {}, present(KEYS[5 + 2 * i], KEYS[6 + 2 * i])
  local revision = own.final or 0
  if revision > 0 and revision >= least then
    all[i + 1] = revision
  elseif found ~= seen or not l or now >= l.expires then
    all[i + 1] = 'listing'
  elseif now <= l['end'] + lateness then
    all[i + 1] = 'open'
  elseif found ~= '' and not whole(own.sets, is) or found == '' and is then
    all[i + 1] = 'lost'
  else
    local r = readRecord(call('HGET', KEYS[6], name)) or {at = 0, passed = {}, revision = 1}
    if r.reopened then r.revision, r.reopened = r.revision + 1, nil end
    r.revision = math.max(r.revision, least)
    if not noted then
      local counted = cjson.encode(call('HGETALL', KEYS[1]))
      call('HSET', KEYS[6], string.format('@%.0f', instant), counted)
      noted = true
    end
    -- It has been final all the while, and is called by a later revision: the shard went back to before it
    -- was reopened, and others didn't. Where its record is lost nobody knows since when: no ledger is of 0.
    if revision > 0 then table.insert(r.passed, {r.at, instant}) end
    r.at, revision = instant, r.revision
    call('HSET', KEYS[6], name, recordText(r))
    l.final = revision
    call('HSET', KEYS[4], name, listingText(l, is or 'none'))
    all[i + 1] = revision
  end
end
return all
