-- load.lua loads rows of a snapshot into a window of a rebuild's shadow, or what was dropped.
--
-- KEYS  1 loaded: how far of which snapshot it is   2 the shadow's windows   3 its dropped
--       of a window: 4 its sorted set   5 its hidden set
-- ARGV  1 what loaded has to hold, '' for nothing   2 what it then holds   3 ms that a key lives
--       4 the window's name in the listing, '' for what is dropped   5 its listing there
--       6… of each row its score and member; of what is dropped field and value
--
-- Returns one of
--   {loaded}          also if it was before, and the answer was lost
--   {over}            the window's retention is over: its rows are passed over
--   {lost, what loaded holds, or ''}   Redis went back meanwhile, or the lease was over
--
-- Of two rows of a member the later one stays. Rows of both sets are shown ones, since the bans of
-- now are another matter; but for the empty id, which is nobody's and keeps the hidden set of a window
-- where all are erased. loaded moves last: what dies midway is sent again, and writes the same.

local call, unpack = redis.call, unpack

-- include sets.lua

local found = call('GET', KEYS[1]) or ''
if found == ARGV[2] then return {'loaded'} end
if found ~= ARGV[1] then return {'lost', found} end
local time = call('TIME')
local now = tonumber(time[1]) * 1000 + tonumber(time[2]) / 1000
local lease = string.format('%.0f', now + tonumber(ARGV[3]))
local SLICE = 2000 -- values a command; unpack carries at most 8,000

local answer, name, listing = 'loaded', ARGV[4], ARGV[5]
if name == '' then
  for first = 6, #ARGV, SLICE do
    call('HSET', KEYS[3], unpack(ARGV, first, math.min(first + SLICE - 1, #ARGV)))
  end
  if #ARGV > 5 then call('PEXPIREAT', KEYS[3], lease) end
elseif now >= tonumber(string.match(listing, '%d+$')) then
  answer = 'over'
else
  local rows, nobody = {}, nil
  for i = 6, #ARGV, 2 do
    if ARGV[i + 1] == '' then
      nobody = ARGV[i]
    else
      rows[#rows + 1], rows[#rows + 2] = ARGV[i], ARGV[i + 1]
    end
  end
  local begins, hides = call('EXISTS', KEYS[4]) == 0, call('EXISTS', KEYS[5]) == 0
  for first = 1, #rows, SLICE do
    call('ZADD', KEYS[4], unpack(rows, first, math.min(first + SLICE - 1, #rows)))
  end
  if begins and #rows > 0 then call('PEXPIREAT', KEYS[4], lease) end
  if nobody then call('ZADD', KEYS[5], nobody, '') end
  if hides and nobody then call('PEXPIREAT', KEYS[5], lease) end
  call('HSET', KEYS[2], name, withSets(listing, present(KEYS[4], KEYS[5]) or 'none'))
  call('PEXPIREAT', KEYS[2], lease)
end
call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return {answer}
