-- ban.lua marks who isn't shown, and puts the standings of some members in some windows where
-- they belong by now. It moves scores as they are: no layout matters to it.
--
-- KEYS  1 banned   2 schema   3 hold   4 names   5 windows
--       then for each window: its sorted set, its hidden set
-- ARGV  1 schema   2 what to do: ban, unban, go (through windows) or end
--       3 the field of banned that this is about   4 the mark to write, or, to go and to end, the one
--         that was written   5 what it is once all windows are gone through, '' for nothing, or, to go,
--         the next mark
--       6 ms that banned lives, '' for live boards
--       7 number of members   8… the members, then for each window its name in the listing
--
-- Returns one of
--   {done}
--   {erased}      to unban one who is erased: for good
--   {schema, what it is}
--   {held}
--
-- banned has for each ban a field, <board>:<member>, or :<member> for all boards, which is
--   hiding <id> <n>    from now on their changes go to the hidden set; some of their standings
--                      may still be shown
--   hidden             none is shown any more
--   showing <id> <n>   from now on their changes are shown; some of their standings may still be
--                      in the hidden set
--   erasing <id> <n>   nothing is counted for them any more; something may still be there
--   erased             nothing is left
-- where n is how many calls have gone through windows; and one, version, which is another after every change.
--
-- A member's standing in a window is in one of the window's two sets at every instant, or in
-- none: each script that moves one removes it where it was in the same call, and apply.lua,
-- which looks into both for whoever has a field here, goes on from where it finds it. A field
-- goes only after every window that was listed has been gone through: who has none has nothing
-- in a hidden set. So whatever dies between two calls, no point is lost and none is twice; what
-- isn't gone through yet is, by whoever calls again. Of two who do the opposite, each call
-- does what the field says at its instant, and only whose mark it still is ends it. Each call that
-- goes through windows counts in the mark, so that what Redis has lost isn't taken for done:
--
--   the caller                      Redis
--   marks: hiding x 0               has it, and saves itself
--   goes through: hiding x 1        moves the standings
--                                   goes back: hiding x 0, and they are shown
--   ends hiding x 1                 the mark differs: another call starts again
--
-- Which of its two sets a window has is in its listing (listing.lua), so that one that is lost is missed.
-- Where a call changes that, it says so before, and what it has come to after. A window that has lost
-- one is marked: what is moved may make the key again that is gone.
--
-- Within a call the first write of a standing is where it goes, the second takes it from
-- where it was. A script that dies between them leaves it in both, with the same score: of
-- these the hidden one counts, here and in apply.lua, and the other goes.

local call = redis.call

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
  -- What is through stays so, and an erased member isn't merely hidden.
  if was ~= done and was ~= 'erased' and (was ~= 'erasing' or done == 'erased') then write = mark end
elseif what == 'unban' then
  if gone then return {'erased'} end
  if is ~= '' then write = mark end
elseif what == 'end' and is == mark then
  write = done
end
if write == '' then
  -- A script that dies between two writes has changed the version first: a rebuild that has taken the
  -- bans before sees that they are others.
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

-- When a key expires, to the ms; nil if it doesn't. Redis before 7.0 only tells how long it has
-- left, and its clock goes on while a script runs: both are of one ms if that is so before and after.
local function expiry(key)
  local after, before, left = now(), nil, nil
  repeat
    before, left, after = after, call('PTTL', key), now()
  until before == after
  return left > 0 and before + left or nil
end

-- Where a member's standings on a board belong: shown, hidden or erased.
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

-- Begins to move something in a window, and returns its listing; nil where it isn't listed, or has
-- lost a set.
local function begin(name, shown, hidden)
  local l = readListing(call('HGET', KEYS[5], name))
  if not l then return nil end
  if not whole(l.sets, present(shown, hidden)) then
    if l.sets ~= 'lost' then call('HSET', KEYS[5], name, listingText(l, 'lost')) end
    return nil
  end
  -- What may come or go is a set that nobody is in, or one.
  local least = call('ZCARD', shown)
  least = math.min(least, call('ZCARD', hidden))
  if least < 2 then call('HSET', KEYS[5], name, listingText(l, 'moving')) end
  return l
end

local function finish(l, name, shown, hidden)
  local is = listingText(l, present(shown, hidden))
  local said = call('HGET', KEYS[5], name)
  if is ~= said then call('HSET', KEYS[5], name, is) end
end

-- Moves a standing. A set that this begins lives as long as the one it comes from.
local function move(from, to, member, score)
  local begins = call('EXISTS', to) == 0
  local expires = begins and expiry(from)
  call('ZADD', to, score, member)
  if expires then expire(to, expires) end
  if from ~= to then call('ZREM', from, member) end
end

local members = tonumber(ARGV[7])
for i = 8, 7 + members do -- who is erased on all boards isn't called anything any more
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
      -- A window that is listed has a key: the empty id is nobody's.
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
