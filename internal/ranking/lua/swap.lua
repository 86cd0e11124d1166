-- swap.lua replaces live boards by a rebuild's shadow, or writes nothing and returns the reason.
--
-- KEYS  1 hold   2 lock   3 ledger   4 schema   5 origin   6 windows
--       7 shadow's ledger   8 shadow's schema   9 shadow's windows   10 dropped
--       11 banned   12 final   13 workers
--       for each window to be replaced: its live sorted set and hidden set, and those of the shadow
-- ARGV  1 content of the hold while the caller owns it, '' to swap without a hold   2 content of the lock
--       3 schema   4 ms that the mark of a finished swap lives
--       5 number of windows that the shadow lists   6 number of the ledger's fields
--       7 the version of banned that the shadow's hidden sets are based on, '' for none
--       8 number of periods that are counted from an earlier time on
--       9 number of live windows that the caller found in the listing
--       for each field: its name, the live ledger's position ('' for none), the shadow's position, the origin to write
--         ('' to keep it)
--       for each of these periods: its field in the origins, that time, ms, '0' from the beginning
--       for each window: its listing, whose sets are ignored; '' if the shadow doesn't have the window
--
-- Returns one of
--   {swapped}                     also if an earlier call did it, whose answer was lost
--   {unheld}                      the hold has expired, or another job has one
--   {unlocked}                    the same for the lock
--   {banned}                      a ban has changed since
--   {schema, found schema or ''}  of the live boards
--   {moved, field, live, shadow}  the two ledgers differ from each other, or from what the caller read; without a
--                                 hold: the live ledger is behind the shadow's
--   {again}                       without a hold: more windows are listed than the caller read
--   {damaged, what}               the shadow isn't as the caller read it: a key is gone, or exists without a
--                                 listing, or other windows are listed
--
-- Everything is compared before the first write. A ledger that is torn:p counts what p denotes once its scores are
-- replaced.
--
-- Under a hold, windows may be kept, so the two ledgers must be equal. If the live one were behind, events would
-- count twice in the windows that are kept; if it were ahead, events would never count in the others. Without a hold,
-- every window that accepts events is replaced, so the shadow's ledger may be behind. It replaces the live one, as if
-- Redis had gone back: workers continue from it, and the boards are refilled up to where they were. If the live
-- ledger is behind the shadow's, Redis went back, and the caller starts again. No window becomes final meanwhile:
-- seal.lua seals nothing during a rebuild.
--
-- The first write to the ledger marks all of it as torn, and the last one moves it. If the script dies between them,
-- the mark remains, and another rebuild repairs the ledger. One command writes the mark: otherwise a part of a lost
-- ledger could exist, and the other partitions would look as if they had been added later. The schema is written
-- before the mark, because no rebuild could repair a ledger without one; it only changes if it was lost with the
-- ledger. The script renames keys and moves no scores, and Redis frees the replaced keys in the background. So its
-- duration depends on the number of windows, not of members. It also ends the hold.
--
-- If a final window is replaced, its data was lost, and the new data isn't what was final. So the window becomes
-- open. The script records the reopening first, so that the next seal gets another revision (seal.lua). No event is
-- missing in the window any more.

local call, unpack = redis.call, unpack

-- include listing.lua
-- include record.lua

local DAY = 86400000 -- a key lives longer than its window by this, see apply.lua
local SLICE = 1000   -- keys per command; unpack returns at most 8,000 values

if call('GET', KEYS[8]) == 'swapped' then return {'swapped'} end
local takesOver = ARGV[1] == ''
if (call('GET', KEYS[1]) or '') ~= ARGV[1] then return {'unheld'} end
if call('GET', KEYS[2]) ~= ARGV[2] then return {'unlocked'} end
local schema, fields = call('GET', KEYS[4]), tonumber(ARGV[6])
if schema and schema ~= ARGV[3] or not schema and call('HLEN', KEYS[3]) > 0 then return {'schema', schema or ''} end
if call('GET', KEYS[8]) ~= ARGV[3] then return {'damaged', 'schema'} end

if (call('HGET', KEYS[11], 'version') or '') ~= ARGV[7] then return {'banned'} end

local first, live = 10, 0 -- index of the first field's first argument; number of fields in the live ledger
if takesOver and call('HLEN', KEYS[6]) ~= tonumber(ARGV[9]) then return {'again'} end
local refills = {} -- the offset up to which each partition is read again
local periods = first + 4 * fields -- index of the first period's argument
for i = first, periods - 1, 4 do
  local name, seen, at = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  local found, shadow = call('HGET', KEYS[3], name) or '', call('HGET', KEYS[7], name) or ''
  local denotes = string.match(found, '^torn:(.*)$') or found
  local may = denotes == shadow
  if takesOver and found ~= '' and not may then
    local from, to, reaches = string.match(denotes, '^%d+'), string.match(denotes, '^%d+%.%.(%d+)'), tonumber(shadow)
    may = from and reaches and tonumber(from) >= reaches
    refills['refill:' .. name] = (to or from or '0') .. ' rebuilt'
  end
  if shadow ~= at or found ~= '' and not may or not takesOver and found ~= seen then return {'moved', name, found, shadow} end
  if found ~= '' then live = live + 1 end
end
if call('HLEN', KEYS[3]) ~= live or live ~= 0 and live ~= fields then return {'moved', '', '', ''} end
if fields == 0 or call('HLEN', KEYS[7]) ~= fields then return {'moved', '', '', ''} end

-- Only pieces add to the shadow's listing, and they move its ledger. So if the ledger is as the caller read it and
-- the number of windows is equal, the listing is unchanged. The sets of its windows are read again, because a ban may
-- have changed them since.
local windows = periods + 2 * tonumber(ARGV[8]) -- index of the first window's argument
if call('HLEN', KEYS[9]) ~= tonumber(ARGV[5]) then return {'damaged', 'windows'} end
local tag = string.len(KEYS[3]) - string.len('ledger') -- length of every key before its name
local all = (#KEYS - 13) / 4
local sets = {} -- which of its two sets each of the shadow's windows has, by number
local known = {} -- parsed listings; windows of a period have equal ones
local function entry(listing)
  known[listing] = known[listing] or readListing(listing) or {}
  return known[listing]
end
for from = 0, all - 1, SLICE do
  local names, shadows, hidden, at = {}, {}, {}, {}
  for i = from, math.min(from + SLICE, all) - 1 do
    local shadow, beside = KEYS[16 + 4 * i], KEYS[17 + 4 * i]
    if ARGV[windows + i] ~= '' then
      local n = #names + 1
      names[n], shadows[n], hidden[n], at[n] = string.sub(KEYS[14 + 4 * i], tag + 1), shadow, beside, i
    elseif call('EXISTS', shadow, beside) > 0 then
      return {'damaged', shadow}
    end
  end
  if #names > 0 then
    local listings = call('HMGET', KEYS[9], unpack(names))
    local odd = call('EXISTS', unpack(hidden)) > 0
    for n = 1, #names do odd = odd or entry(listings[n]).sets end
    odd = odd or call('EXISTS', unpack(shadows)) ~= #names
    for n = 1, odd and #names or 0 do
      local is = present(shadows[n], hidden[n])
      if not whole(entry(listings[n]).sets, is) then return {'damaged', shadows[n]} end
      sets[at[n]] = is
    end
  end
end

-- Write.
call('SET', KEYS[4], ARGV[3])
local torn = {}
for i = first, periods - 1, 4 do
  torn[#torn + 1] = ARGV[i]
  torn[#torn + 1] = 'torn:' .. ARGV[i + 2]
end
local most = 7 * SLICE -- values
for i = 1, #torn, most do
  call('HSET', KEYS[3], unpack(torn, i, math.min(i + most - 1, #torn)))
end
local now -- Unix ms
local function reopen(names)
  local listings, records = call('HMGET', KEYS[6], unpack(names)), call('HMGET', KEYS[12], unpack(names))
  for n = 1, #names do -- from its record or its listing: the other may be lost
    local final, r = entry(listings[n]).final, readRecord(records[n])
    local reopened = not final and (not r or r.reopened)
    if not reopened or r and #r.passed > 0 then
      r = r or {revision = 0}
      r.revision, r.passed = math.max(r.revision, final or 0), {}
      if not reopened then
        now = now or tonumber(call('TIME')[1]) * 1000
        r.reopened, r.why = now, 'rebuilt'
      end
      call('HSET', KEYS[12], names[n], recordText(r))
    end
  end
end
local droppedBefore = call('EXISTS', KEYS[10]) == 1 -- an operator may want dropped boards again
for from = 0, all - 1, SLICE do
  local to = math.min(from + SLICE, all) - 1
  local old, names, listed, dropped = {}, {}, {}, {}
  for i = from, to do
    local live, listing = KEYS[14 + 4 * i], ARGV[windows + i]
    old[#old + 1] = live
    old[#old + 1] = KEYS[15 + 4 * i]
    local name = string.sub(live, tag + 1)
    names[#names + 1] = name
    if listing ~= '' then
      listed[#listed + 1] = name
      listed[#listed + 1] = listingText(entry(listing), sets[i] or 'shown')
    else
      dropped[#dropped + 1] = name
    end
  end
  reopen(names)
  call('UNLINK', unpack(old))
  for i = from, to do
    local listing, has = ARGV[windows + i], sets[i] or 'shown'
    for j = 16 + 4 * i, listing == '' and 0 or 17 + 4 * i do
      if has == 'both' or (has == 'shown') == (j == 16 + 4 * i) then
        call('PEXPIREAT', KEYS[j], string.format('%.0f', entry(listing).expires + DAY))
        call('RENAME', KEYS[j], KEYS[j - 2])
      end
    end
  end
  if #listed > 0 then call('HSET', KEYS[6], unpack(listed)) end
  if #dropped > 0 then call('HDEL', KEYS[6], unpack(dropped)) end
  if droppedBefore then call('HDEL', KEYS[10], unpack(names)) end
end
for i = first, periods - 1, 4 do
  if ARGV[i + 3] ~= '' then call('HSET', KEYS[5], ARGV[i], ARGV[i + 3]) end
end
for i = periods, windows - 1, 2 do
  if ARGV[i + 1] == '0' then
    call('HDEL', KEYS[5], ARGV[i])
  else
    call('HSET', KEYS[5], ARGV[i], ARGV[i + 1])
  end
end
for name, to in pairs(refills) do call('HSET', KEYS[13], name, to) end
for i = first, periods - 1, 4 do call('HSET', KEYS[3], ARGV[i], ARGV[i + 2]) end

-- The rest is for a caller who lost the answer, and for the consumers that wait.
call('UNLINK', KEYS[7])
call('SET', KEYS[8], 'swapped', 'PX', ARGV[4])
call('UNLINK', KEYS[1])
return {'swapped'}
