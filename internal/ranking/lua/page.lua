-- page.lua reads a page of sorted sets, as of one moment.
--
-- KEYS  1 a lock that the caller must hold, or the first set if there is no lock   2… the sorted sets
-- ARGV  1 content of the lock while the caller holds it, '' if there is no lock
--       2 what to read: ranks, then for each set the first and the last rank, from 0, as in ZREVRANGE; scan, then a
--         cursor of the first set and the approximate number of members; or members, then at most 7,000 members
--
-- Returns {lost} if the caller no longer holds the lock, else
--   {rows, {member, score, …}, …}    for ranks, a list for each set
--   {scores, next cursor (0 at the end, or for members), {member, …}, {score or '', …}, …}
--     with a list of scores for each set
--
-- A scan returns every member that exists from its start to its end, some of them twice, in no order.

local call = redis.call
local SLICE = 1000 -- members per command; unpack returns at most 8,000 values

if ARGV[1] ~= '' and call('GET', KEYS[1]) ~= ARGV[1] then return {'lost'} end
if ARGV[2] == 'ranks' then
  local page = {'rows'}
  for i = 2, #KEYS do page[i] = call('ZREVRANGE', KEYS[i], ARGV[2 * i - 1], ARGV[2 * i], 'WITHSCORES') end
  return page
end

local page, members = {'scores', '0'}, {}
if ARGV[2] == 'scan' then
  local found = call('ZSCAN', KEYS[2], ARGV[3], 'COUNT', ARGV[4])
  page[2] = found[1]
  page[4] = {}
  for i = 1, #found[2], 2 do
    members[#members + 1] = found[2][i]
    page[4][#members] = found[2][i + 1]
  end
else
  for i = 3, #ARGV do members[i - 2] = ARGV[i] end
end
page[3] = members
for k = #page > 3 and 3 or 2, #KEYS do
  local scores = {}
  for from = 1, #members, SLICE do
    local some = call('ZMSCORE', KEYS[k], unpack(members, from, math.min(from + SLICE - 1, #members)))
    for i = 1, #some do scores[from + i - 1] = some[i] or '' end
  end
  page[k + 2] = scores
end
return page
