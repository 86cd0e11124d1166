-- read.lua reads rows or members of a window, and the state that tells whether the window is complete, as of one
-- moment.
--
-- KEYS  1 schema   2 windows   3 origin   4 ledger   5 workers   6 the window's sorted set   7 its hidden set
-- ARGV  1 schema   2 name in the listing
--       3 origin of the place around which rows are read: top, bottom, member (the first to look up), pivot, next
--         (below the pivot's own row), or '' to read no rows
--       4 number of rows from the origin down to the place; with bottom, up to it   5 score and   6 member of the pivot
--       7 rows above the place   8 rows below it
--       9 1 to read rows on the other side in place of those past an end   10 lowest score of the rows, or ''
--       11 1 to also look up hidden members
--       12 bits of ticks of a wide score, or 0 for readable scores, to return ties; '' for no ties
--       13 number of scores to count   14… the scores, then the members to look up
--
-- Returns {schema, found schema or '', now ms, workers fields, ledger fields, number of windows} if the schema
-- differs, else
--   {window, listing or '', number of members, origin fields, rank of the first row from 0,
--    {member, score, …}, {rank from 0 or -1, score or '', …},
--    now ms, ledger fields, workers fields, problem or '',
--    number of members above the place, {number of members with at least each score, …},
--    {number with more than the first row, number with at least as much as the last, then for each looked-up member the
--     number with more and with at least as much, or -1 and -1}, empty without ties}
-- If its retention is over, a window has no listing, no rows and no members. The problem is one of
--   board_lost      the window is listed, and its keys are gone: it has no rows
--   board_unlisted  the window isn't listed, and a key of it exists: it has no rows
--   ledger_lost     windows are listed, and there is no ledger: the rows are returned

local call = redis.call

-- include greater.lua
-- include listing.lua

local time = call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local said = string.format('%.0f', now)

local schema = call('GET', KEYS[1])
if schema ~= ARGV[1] then
  return {
    'schema', schema or '', said, call('HGETALL', KEYS[5]), call('HGETALL', KEYS[4]),
    call('HLEN', KEYS[2]),
  }
end

local listing = call('HGET', KEYS[2], ARGV[2])
local ledger = call('HGETALL', KEYS[4])
local members, why = call('ZCARD', KEYS[6]), ''
local l = listing and readListing(listing)
if listing and (not l or l.expires <= now) then
  listing, members = false, 0 -- its key expires a day later
elseif listing and (members == 0 or l.sets) and not whole(l.sets, present(KEYS[6], KEYS[7])) then
  why, members = 'board_lost', 0
elseif not listing and (members > 0 or call('EXISTS', KEYS[7]) == 1) then
  why, members = 'board_unlisted', 0
elseif listing and #ledger == 0 then
  why = 'ledger_lost'
end

-- Returns the number of members above a place. Equal scores are sorted by id, by bytes, the greatest first.
local function above(score, id)
  local low, high, own = 0, members, score + 0 -- not tonumber: see layouts.lua
  while low < high do
    local middle = math.floor((low + high) / 2)
    local row = call('ZREVRANGE', KEYS[6], middle, middle, 'WITHSCORES')
    local other = row[2] + 0
    if other > own or other == own and greater(row[1], id) then low = middle + 1 else high = middle end
  end
  return low
end

-- Returns the range of the scores with the same points or tuple, whatever their ticks (codec's TupleLayout.Bounds):
-- the lowest score, and the first score above all of them. bits is the number of tick bits of a wide score, else 0.
local function bounds(bits, score)
  score = score + 0 -- not tonumber: see layouts.lua
  if bits == 0 then
    local low = score - score % 1 -- rounds down, also below zero
    return low, low + 1
  end
  local fraction, exponent = math.frexp(score)
  local step = 2 ^ (bits - 53) -- value of 1 of a tuple in the fraction
  local low = fraction - fraction % step
  return math.ldexp(low, exponent), math.ldexp(low + step, exponent)
end

-- Returns how many members have at least a score.
local function least(score)
  return members > 0 and call('ZCOUNT', KEYS[6], score, '+inf') or 0
end

local counts, looked, unseen, start = {}, {}, {}, 14 + ARGV[13]
for i = 14, start - 1 do counts[#counts + 1] = least(ARGV[i]) end
for i = start, #ARGV do
  local rank, score = members > 0 and call('ZREVRANK', KEYS[6], ARGV[i]), ''
  if rank then
    score = call('ZSCORE', KEYS[6], ARGV[i])
  elseif ARGV[11] == '1' and listing then
    score = call('ZSCORE', KEYS[7], ARGV[i]) or ''
    rank = score ~= '' and above(score, ARGV[i])
    unseen[#looked + 2] = 1 -- a hidden member, who isn't counted
  end
  looked[#looked + 1] = rank or -1
  looked[#looked + 1] = score
end

-- Returns the place as the number of members above it; nil for none.
local function placed()
  local from, skip = ARGV[3], tonumber(ARGV[4])
  if from == 'top' then return skip end
  if from == 'bottom' then return members - skip end
  if from == 'member' then return looked[1] and looked[1] >= 0 and looked[1] or nil end
  if from == '' then return nil end
  local place = above(ARGV[5], ARGV[6])
  if from == 'next' and ARGV[6] ~= '' then
    local row = call('ZREVRANGE', KEYS[6], place, place, 'WITHSCORES')
    if row[1] == ARGV[6] and row[2] + 0 == ARGV[5] + 0 then place = place + 1 end
  end
  return place + skip
end

local rows, place, first = {}, placed(), 0
if place and members > 0 then
  local last = place + ARGV[8] - 1
  first = place - ARGV[7]
  if ARGV[9] == '1' then
    if first < 0 then last = last - first elseif last >= members then first = first - last + members - 1 end
  end
  first, last = math.max(0, first), math.min(last, members - 1)
  if ARGV[10] ~= '' then last = math.min(last, least(ARGV[10]) - 1) end
  if last >= first then rows = call('ZREVRANGE', KEYS[6], first, last, 'WITHSCORES') end
end

local ties, bits = {}, tonumber(ARGV[12])
if bits then
  ties = {0, 0}
  if #rows > 0 then
    local _, above_first = bounds(bits, rows[2])
    ties = {least(above_first), least((bounds(bits, rows[#rows])))}
  end
  for i = 2, #looked, 2 do
    local more, as_many = -1, -1
    if looked[i] ~= '' then
      local low, high = bounds(bits, looked[i])
      more, as_many = least(high), least(low) + (unseen[i] or 0)
    end
    ties[#ties + 1] = more
    ties[#ties + 1] = as_many
  end
end
return {
  'window', listing or '', members, call('HGETALL', KEYS[3]), first, rows, looked,
  said, ledger, call('HGETALL', KEYS[5]), why, place or 0, counts, ties,
}
