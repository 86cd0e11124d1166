-- ban.lua marks banned members, and moves standings between the sorted set and the hidden set of windows. It copies
-- scores unchanged, so the layout doesn't matter.
--
-- KEYS  1 banned   2 schema   3 hold   4 names   5 windows
--       then for each window: its sorted set, its hidden set
-- ARGV  1 schema   2 what to do: ban, unban, go (process windows) or end
--       3 the ban's field of banned   4 the mark to write; for go and end, the mark that was written
--       5 the field's value after all windows, '' to remove it; for go, the next mark
--       6 ms that banned lives, '' for live boards
--       7 number of members   8… the members, then for each window its name in the listing
--
-- Returns one of
--   {done}
--   {erased}      unban of an erased member, which is impossible
--   {schema, found schema}
--   {held}
--
-- banned has a field for each ban: <board>:<member>, or :<member> for all boards. Its value is one of
--   hiding <id> <n>    the member's changes go to the hidden set; some standings may still be shown
--   hidden             all standings are in the hidden sets
--   showing <id> <n>   the member's changes are shown; some standings may still be in the hidden set
--   erasing <id> <n>   the member's changes are dropped; some standings may still exist
--   erased             no standing is left
-- where n is the number of calls that have processed windows. The field version changes with every change of the
-- others.
--
-- A member's standing in a window is in at most one of the window's two sets at every instant: a script that moves it
-- removes it from the old set in the same call. apply.lua reads both sets for a member with a field here, and changes
-- the standing where it finds it. A field is removed only after all listed windows are processed, so a member without
-- a field has nothing in a hidden set. If the caller dies between two calls, no point is lost or counted twice, and
-- the next caller processes the remaining windows. If two callers do the opposite, each call does what the field says
-- at that instant, and only the caller whose mark is still there can end. Each call that processes windows increases
-- the number in the mark, so that a caller notices if Redis has lost a call:
--
--   the caller                      Redis
--   writes the mark hiding x 0      has it, and saves a snapshot
--   processes windows: hiding x 1   moves the standings
--                                   goes back: hiding x 0, and the standings are shown
--   ends hiding x 1                 the mark differs: another call starts again
--
-- A window's listing tells which of the two sets exist (listing.lua), so that a lost set is noticed. If a call
-- changes that, it marks the window as moving first, and writes the sets that exist afterwards. If a window has
-- already lost a set, the call marks it as lost, because a move could create the missing key again.
--
-- Within a call a standing is first written to the new set and then removed from the old one. A script that dies in
-- between leaves it in both, with the same score. Then ban.lua and apply.lua use the hidden one and remove the other.

local call = redis.call
local DAY = 86400000 -- a key expires this long after its window's retention, see apply.lua

local banned = KEYS[1]
local schema = call('GET', KEYS[2])
if schema and schema ~= ARGV[1] then return {'schema', schema} end
if call('EXISTS', KEYS[3]) == 1 then return {'held'} end

local what, field, mark, done = ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local is = call('HGET', banned, field) or ''
local was = string.match(is, '^%a+') or ''
local gone = was == 'erased' or was == 'erasing'
local write
if what == 'ban' then
  -- A ban that is finished stays so, and an erased member doesn't become merely hidden.
  if was ~= done and was ~= 'erased' and (was ~= 'erasing' or done == 'erased') then write = mark end
elseif what == 'unban' then
  if gone then return {'erased'} end
  if is ~= '' then write = mark end
elseif what == 'end' and is == mark then
  write = done
end
if write == '' then
  -- The script changes the version before it removes the field: if it dies in between, a rebuild that has taken the
  -- bans notices a change.
  if ARGV[6] == '' and call('HLEN', banned) == 2 then
    call('HDEL', banned, field, 'version')
  else
    call('HSET', banned, 'version', mark)
    call('HDEL', banned, field)
  end
elseif write then
  call('HSET', banned, field, write, 'version', mark .. ' ' .. write)
end
local function now()
  local time = call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
local function expire(key, at) call('PEXPIREAT', key, string.format('%.0f', at)) end
if write and ARGV[6] ~= '' then expire(banned, now() + tonumber(ARGV[6])) end

-- Returns when a key expires, in Unix ms; nil if it doesn't. Redis before 7.0 reports only the remaining time, and
-- its clock advances while a script runs: the two belong to one ms if the clock is equal before and after.
local function expiry(key)
  local after, before, left = now(), nil, nil
  repeat
    before, left, after = after, call('PTTL', key), now()
  until before == after
  return left > 0 and before + left or nil
end

-- Returns where a member's standings on a board belong: shown, hidden or erased.
local known = {}
local function place(board, member)
  local at = board .. ':' .. member
  if not known[at] then
    known[at] = 'shown'
    for _, name in ipairs({at, ':' .. member}) do
      local state = string.match(call('HGET', banned, name) or '', '^%a+')
      if state == 'erased' or state == 'erasing' then
        known[at] = 'erased'
      elseif (state == 'hidden' or state == 'hiding') and known[at] ~= 'erased' then
        known[at] = 'hidden'
      end
    end
  end
  return known[at]
end

-- include listing.lua

-- Starts to move standings in a window, and returns its listing; nil if the window isn't listed or has lost a set.
local function begin(name, shown, hidden)
  local l = readListing(call('HGET', KEYS[5], name))
  if not l then return nil end
  if not whole(l.sets, present(shown, hidden)) then
    if l.sets ~= 'lost' then call('HSET', KEYS[5], name, listingText(l, 'lost')) end
    return nil
  end
  -- A move can create a set, or remove one that has at most one member.
  local least = call('ZCARD', shown)
  least = math.min(least, call('ZCARD', hidden))
  if least < 2 then call('HSET', KEYS[5], name, listingText(l, 'moving')) end
  return l
end

local function finish(l, name, shown, hidden)
  for _, key in ipairs({shown, hidden}) do
    if call('PTTL', key) == -1 then -- a call created it, and died before it set the expiry
      expire(key, ARGV[6] ~= '' and now() + tonumber(ARGV[6]) or l.expires + DAY)
    end
  end
  local is = listingText(l, present(shown, hidden))
  local said = call('HGET', KEYS[5], name)
  if is ~= said then call('HSET', KEYS[5], name, is) end
end

-- Moves a standing. A set that this creates expires with the set that the standing comes from.
local function move(from, to, member, score)
  local begins = call('EXISTS', to) == 0
  local expires = begins and expiry(from)
  call('ZADD', to, score, member)
  if expires then expire(to, expires) end
  if from ~= to then call('ZREM', from, member) end
end

local members = tonumber(ARGV[7])
for i = 8, 7 + members do -- a member who is erased on all boards has no name any more
  if place('', ARGV[i]) == 'erased' then call('HDEL', KEYS[4], ARGV[i]) end
end
for w = 1, (#KEYS - 5) / 2 do
  local shown, hidden, name = KEYS[2 * w + 4], KEYS[2 * w + 5], ARGV[7 + members + w]
  local board, listing, moves = string.match(name, '^[^:]*'), nil, false
  for i = 8, 7 + members do
    local member = ARGV[i]
    local seen, unseen = call('ZSCORE', shown, member), call('ZSCORE', hidden, member)
    local to = (seen or unseen) and place(board, member)
    if to and not moves and (to == 'erased' or to == 'hidden' and seen or to == 'shown' and unseen) then
      listing, moves = begin(name, shown, hidden), true
    end
    if to == 'erased' then
      -- A listed window must have a key, so the empty id, which is no member's, keeps one.
      if call('ZCARD', shown) + call('ZCARD', hidden) == (seen and 1 or 0) + (unseen and 1 or 0) then
        move(seen and shown or hidden, hidden, '', 0)
      end
      if seen then call('ZREM', shown, member) end
      if unseen then call('ZREM', hidden, member) end
    elseif to == 'hidden' and seen then
      if unseen then call('ZREM', shown, member) else move(shown, hidden, member, seen) end
    elseif to == 'shown' and unseen then
      move(hidden, shown, member, unseen)
    end
  end
  if listing then finish(listing, name, shown, hidden) end
end
if what == 'go' and is == mark then call('HSET', banned, field, done) end
return {'done'}
