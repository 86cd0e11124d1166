-- seal.lua makes windows final: from then on nothing is added to them.
--
-- KEYS  1 ledger   2 schema   3 hold   4 windows   5 a rebuild's lock   6 final
--       7… of each window its sorted set, and its hidden set
-- ARGV  1 schema   2 number of partitions   3… of each its field of the ledger, and the offset before which every event
--         must be counted: the log's end, as read after the last of the windows stopped accepting events
--       then for each window: its name in the listing, its listing as it was read ('' if this shard has none), its
--         listing on a shard that has one, ms for which it accepts events after its end, and its lowest revision: the
--         one that another shard has sealed it with
--
-- Returns one of
--   {sealed, result for each window…}
--   {schema, found schema or ''}
--   {held}                        a rebuild is about to swap, or a reshard to switch
--   {busy}                        a rebuild is running, which may replace any of the windows
--   {behind, field, position}     a partition isn't counted up to its offset
-- A window's result is
--   a number     the window is final with this revision, perhaps since an earlier call
--   open         it still accepts events, by Redis's clock
--   listing      its listing has changed since it was read, or its retention is over
--   lost         one of its keys is gone: it must be rebuilt first
--
-- Every shard lists a final window, also without a member. Otherwise a late event of a member on a shard without the
-- listing would open the window there.
--
-- The script writes the ledger first, then the revision, and the listing last. If it dies between them, nothing is
-- sealed, and the next call uses the same revision.

local call, tonumber = redis.call, tonumber

-- include listing.lua
-- include record.lua

local schema = call('GET', KEYS[2])
if schema ~= ARGV[1] then return {'schema', schema or ''} end
if call('EXISTS', KEYS[3]) == 1 then return {'held'} end
if call('EXISTS', KEYS[5]) == 1 then return {'busy'} end

-- Offsets are below 2^53: even a log with a million records a second reaches that only after 250 years.
local arg = 3 + 2 * tonumber(ARGV[2])
for i = 3, arg - 1, 2 do
  local position = call('HGET', KEYS[1], ARGV[i]) or ''
  local from = tonumber(string.match(position, '^%d+') or '') -- nil for torn:…
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
    -- The window was final all the time, and now gets a later revision: this shard went back to before the window was
    -- reopened, and other shards didn't. If the record is lost, it is unknown since when: instant 0 has no ledger.
    if revision > 0 then table.insert(r.passed, {r.at, instant}) end
    r.at, revision = instant, r.revision
    call('HSET', KEYS[6], name, recordText(r))
    l.final = revision
    call('HSET', KEYS[4], name, listingText(l, is or 'none'))
    all[i + 1] = revision
  end
end
return all
