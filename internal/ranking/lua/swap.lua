-- swap.lua puts a rebuild's shadow in the place of live boards, or writes nothing and
-- says why.
--
-- KEYS  1 hold   2 lock   3 ledger   4 schema   5 origin   6 windows
--       7 shadow's ledger   8 shadow's schema   9 shadow's windows   10 dropped
--       11 banned   12 final   13 workers
--       for each window to be replaced: its live sorted set and hidden set, the shadow's two
-- ARGV  1 what the hold holds if it is ours, '' to swap without one   2 what the lock holds
--       3 schema   4 ms that the mark lives by which this is known to have swapped
--       5 number of windows that the shadow lists   6 number of the ledger's fields
--       7 the version of banned that the shadow's hidden sets are by, '' for none
--       8 number of periods that are counted from an earlier time on   9 number of live windows
--         that the caller saw listed
--       for each field: its name, what the live ledger holds ('' for nothing), the
--         shadow's position, the origin to write ('' to leave it)
--       for each of these periods: its field in the origins, that time, ms, '0' from the beginning
--       for each window: its listing, whichever sets that says, '' if the shadow has nothing of it
--
-- Returns one of
--   {swapped}                     also if it was before, and the answer was lost
--   {unheld}                      the hold has lapsed, or another has one
--   {unlocked}                    so has the lock
--   {banned}                      somebody was banned since, or shown again
--   {schema, what it is, or ''}   of the live boards
--   {moved, field, live, shadow}  the two ledgers, or what the caller saw of them, differ; without a hold: the
--                                 live one is behind the shadow's
--   {again}                       without a hold: more is listed than the caller saw
--   {damaged, what}               the shadow isn't what the caller saw: a key of it is
--                                 gone, or is there and isn't listed, or it lists others
--
-- Everything is compared before the first write. A ledger that is torn:p denotes what p
-- does once its scores are replaced.
--
-- Under a hold, windows may be kept, and nothing less than equal ledgers will do: with a live one that is behind,
-- events would count twice in the windows that are kept, and with one that is ahead, never in the others.
-- Without a hold, every window that takes events is replaced, so the shadow's ledger may be behind. It replaces the
-- live one, as if Redis had gone back: workers continue from it, and the boards are refilled up to where they were.
-- If the live ledger is behind the shadow's, Redis went back, and the caller starts again. No window becomes final
-- meanwhile, as seal.lua seals nothing during a rebuild.
--
-- The first write marks the whole ledger as torn, the last moves it: a script that dies
-- between them leaves the mark, and another rebuild settles it. The mark is written by one
-- command: of a ledger that was lost a part would be back, and the other partitions would
-- look as if they had been added since. Before it comes the schema, which is there unless
-- it was lost with the ledger: a ledger without one could be settled by nobody. Names move
-- and no score does, and what is replaced is freed in the background: what this takes
-- depends on the number of windows, not of members. It ends the hold, too.
--
-- A final window that is replaced was lost, and what takes its place isn't what was final: it is open,
-- and noted as reopened before it is, so that the next seal is another revision (seal.lua). No
-- event has passed it by any more.

local call, unpack = redis.call, unpack

-- include listing.lua
-- include record.lua

local DAY = 86400000 -- a key outlives its window by so much, see apply.lua
local SLICE = 1000   -- keys a command; unpack carries at most 8,000 values

if call('GET', KEYS[8]) == 'swapped' then return {'swapped'} end
local takesOver = ARGV[1] == ''
if (call('GET', KEYS[1]) or '') ~= ARGV[1] then return {'unheld'} end
if call('GET', KEYS[2]) ~= ARGV[2] then return {'unlocked'} end
local schema, fields = call('GET', KEYS[4]), tonumber(ARGV[6])
if schema and schema ~= ARGV[3] or not schema and call('HLEN', KEYS[3]) > 0 then return {'schema', schema or ''} end
if call('GET', KEYS[8]) ~= ARGV[3] then return {'damaged', 'schema'} end

if (call('HGET', KEYS[11], 'version') or '') ~= ARGV[7] then return {'banned'} end

local first, live = 10, 0 -- the first field's first argument; fields that the live ledger has
if takesOver and call('HLEN', KEYS[6]) ~= tonumber(ARGV[9]) then return {'again'} end
local refills = {} -- up to which offset a partition is read again
local periods = first + 4 * fields -- the first period's argument
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

-- The shadow's listing only grows, by pieces, which move its ledger: where that is what the
-- caller saw, so is the listing, if it counts as many. Read is which sets its windows have: what
-- the caller saw of that may be of before a ban.
local windows = periods + 2 * tonumber(ARGV[8]) -- the first window's argument
if call('HLEN', KEYS[9]) ~= tonumber(ARGV[5]) then return {'damaged', 'windows'} end
local tag = string.len(KEYS[3]) - string.len('ledger') -- of every key, before its name
local all = (#KEYS - 13) / 4
local sets = {} -- which of its two sets each of the shadow's windows has, by its number
local known = {} -- windows of a period are listed alike
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
  for n = 1, #names do -- by its record or by its listing: the other may be lost
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
local droppedBefore = call('EXISTS', KEYS[10]) == 1 -- boards that are wanted again
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

-- What is left is for whoever has to ask again, and for the consumers that wait.
call('UNLINK', KEYS[7])
call('SET', KEYS[8], 'swapped', 'PX', ARGV[4])
call('UNLINK', KEYS[1])
return {'swapped'}
