-- read.lua reads a window's rows, or members, and what says whether that is all of it, as
-- of one moment.
--
-- KEYS  1 schema   2 windows   3 origin   4 ledger   5 workers   6 the window's sorted set
--       7 its hidden set
-- ARGV  1 schema   2 name in the listing   3 first row (from 0)   4 last row, or
--       '' for none   5 rows above and below the first member to look up, or ''
--       6 1 to look members up who are hidden, too   7… members to look up
--
-- Returns {schema, what it is or '', now ms, workers fields, ledger fields, number of
-- windows} where that differs, else
--   {window, listing or '', number of members, origin fields, first row,
--    {member, score, …}, {rank from 0 or -1, score or '', …},
--    now ms, ledger fields, workers fields, why what is there isn't shown or ''}
-- A window whose retention is over has no listing, no rows and no members. Why is
--   board_lost      it is listed, and its key and its hidden set are gone
--   board_unlisted  it isn't listed, and its key is there
--   ledger_lost     windows are listed, and there is no ledger: its rows are shown

local call = redis.call

-- include greater.lua

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
local members, why = call('ZCARD', KEYS[6]), ''
local expires = listing and tonumber(string.match(listing, ' (%d+)$'))
if listing and (not expires or expires <= now) then
  listing, members = false, 0 -- its key lives a day longer
elseif listing and members == 0 then
  if call('EXISTS', KEYS[7]) == 0 then why = 'board_lost' end
elseif not listing and (members > 0 or call('EXISTS', KEYS[7]) == 1) then
  why, members = 'board_unlisted', 0
elseif listing and call('HLEN', KEYS[4]) == 0 then
  why = 'ledger_lost'
end

-- The rank that a hidden member would have: of equal scores the greater id, by bytes, is first.
local function above(score, id)
  local low, high, own = 0, members, tonumber(score)
  while low < high do
    local middle = math.floor((low + high) / 2)
    local row = call('ZREVRANGE', KEYS[6], middle, middle, 'WITHSCORES')
    local other = tonumber(row[2])
    if other > own or other == own and greater(row[1], id) then low = middle + 1 else high = middle end
  end
  return low
end

local rows, looked, from = {}, {}, ARGV[3]
for i = 7, #ARGV do
  local rank, score = members > 0 and call('ZREVRANK', KEYS[6], ARGV[i]), ''
  if rank then
    score = call('ZSCORE', KEYS[6], ARGV[i])
  elseif ARGV[6] == '1' and listing then
    score = call('ZSCORE', KEYS[7], ARGV[i]) or ''
    rank = score ~= '' and above(score, ARGV[i])
  end
  looked[#looked + 1] = rank or -1
  looked[#looked + 1] = score
end
if ARGV[5] ~= '' and looked[1] and looked[1] >= 0 then
  from = math.max(0, looked[1] - tonumber(ARGV[5]))
  rows = call('ZREVRANGE', KEYS[6], from, looked[1] + tonumber(ARGV[5]), 'WITHSCORES')
elseif ARGV[5] == '' and members > 0 and ARGV[4] ~= '' then
  rows = call('ZREVRANGE', KEYS[6], from, ARGV[4], 'WITHSCORES')
end
return {
  'window', listing or '', members, call('HGETALL', KEYS[3]), tonumber(from), rows, looked,
  said, call('HGETALL', KEYS[4]), call('HGETALL', KEYS[5]), why,
}
