-- banned.lua moves the changes of banned members to the right set. Other scripts include it; it isn't a script by
-- itself. ban.lua describes the content of banned, and why no standing is lost or counted twice.

local FEW = 500 -- up to so many bans are all read; of more, only those of the piece's members
local PLACE = {hiding = 'hidden', hidden = 'hidden', showing = 'showing', erasing = 'erased', erased = 'erased'}
local RANK = {showing = 1, hidden = 2, erased = 3} -- if a member has two bans, the greater one applies
local bans, few, asked = {}, nil, {} -- bans by board ('' for all boards) and member

local function note(field, text)
  local board, member = string.match(field, '^([^:]*):(.*)$')
  if not board then return end
  bans[board] = bans[board] or {}
  bans[board][member] = PLACE[string.match(text, '^%a+')]
end

-- Reads all bans if they are few, else the bans of some members, once for all windows of a board.
local function readBans(board, from, to, ids)
  if few == nil then
    few = call('HLEN', KEYS[6]) <= FEW
    local all = few and call('HGETALL', KEYS[6]) or {}
    for i = 1, #all, 2 do note(all[i], all[i + 1]) end
  end
  local place, fields = board .. ':' .. ids + from, {}
  if few or asked[place] then return end
  asked[place] = true
  for i = from, to do fields[#fields + 1] = board .. ':' .. ARGV[ids + i] end
  for i, text in ipairs(call('HMGET', KEYS[6], unpack(fields))) do
    if text then note(fields[i], text) end
  end
end

-- Returns which of the members from…to are banned on a board: by number, from 1, hidden, showing or erased; or nil.
local function standing(board, from, to, ids)
  readBans('', from, to, ids)
  readBans(board, from, to, ids)
  local all, own, who = bans[''] or {}, bans[board] or {}, {}
  for i = from, to do
    local is, other = all[ARGV[ids + i]], own[ARGV[ids + i]]
    if other and (not is or RANK[other] > RANK[is]) then is = other end
    who[i - from + 1] = is
  end
  return next(who) and who
end

-- Divides the arguments of ZADD, given the members' old scores in the two sets. Returns {score, id, …} to show, the
-- same to hide, {id, …} to remove from the sorted set, and {id, …} to remove from the hidden set.
local function split(out, who, shown, unseen)
  local show, hide, gone, back = {}, {}, {}, {}
  for n = 1, #shown do
    local id, is = out[2 * n], who[n]
    local to = is == 'hidden' and hide or show
    if is == 'hidden' and shown[n] then gone[#gone + 1] = id end
    if is == 'showing' and unseen[n] then back[#back + 1] = id end
    if is ~= 'erased' then to[#to + 1], to[#to + 2] = out[2 * n - 1], id end
  end
  return show, hide, gone, back
end
