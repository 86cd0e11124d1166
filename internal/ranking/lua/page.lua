-- page.lua reads rows of windows, while nobody else may write them.
--
-- KEYS  1 the lock that keeps others out   2… the sorted set of each window
-- ARGV  1 what the lock holds while it is ours   then for each window: first and last rank,
--       from 0, as ZREVRANGE counts
--
-- Returns {rows, {member, score, …}, …}, a list a window, or {lost} where the lock isn't ours
-- any more.

local call = redis.call

if call('GET', KEYS[1]) ~= ARGV[1] then return {'lost'} end
local page = {'rows'}
for i = 2, #KEYS do
  page[i] = call('ZREVRANGE', KEYS[i], ARGV[2 * i - 2], ARGV[2 * i - 1], 'WITHSCORES')
end
return page
