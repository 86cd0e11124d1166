-- rows.lua reads single rows of a window.
--
-- KEYS  1 the window's sorted set
-- ARGV  1… ranks, from 0
--
-- Returns {member, score, …}: of a rank that isn't there '' and ''.

local rows = {}
for _, rank in ipairs(ARGV) do
  local row = redis.call('ZREVRANGE', KEYS[1], rank, rank, 'WITHSCORES')
  rows[#rows + 1] = row[1] or ''
  rows[#rows + 1] = row[2] or ''
end
return rows
