-- banned.lua puts the changes of banned members where they belong. It is no script: apply.lua is
-- built with it, by a line that includes it. What banned holds is listed in ban.lua, and why no
-- standing is lost or counted twice.
--
--   standing(board, from, to, ids) returns who of the members from…to is banned on
--     a board: by number, from 1, hidden, showing or erased; nil for nobody
--   split(out, who, shown, unseen) deals out what ZADD takes, of members whose scores in the two
--     sets were these: {score, id, …} to show, the same to hide, {id, …} to take out of what is
--     shown, the same out of the hidden set

local FEW = 500 -- bans that are read at once; of more only those of the piece's members

local PLACE = {hiding = 'hidden', hidden = 'hidden', showing = 'showing', erasing = 'erased', erased = 'erased'}
local RANK = {showing = 1, hidden = 2, erased = 3}

local bans, few = {}, nil -- by board, '' for all of them: by member; whether all are read

local function state(a, b) -- of two that a member has the one that holds
  if not a or b and RANK[b] > RANK[a] then return b end
  return a
end

local function readBans()
  few = call('HLEN', KEYS[6]) <= FEW
  if not few then return end
  local all = call('HGETALL', KEYS[6])
  for i = 1, #all, 2 do
    local board, member = string.match(all[i], '^([^:]*):(.*)$')
    if board then
      bans[board] = bans[board] or {}
      bans[board][member] = PLACE[string.match(all[i + 1], '^%a+')]
    end
  end
end

-- Asks for those of some members, once for all windows of a board.
local function askBans(board, from, to, ids)
  bans[board] = bans[board] or {asked = {}}
  local of = bans[board]
  if of.asked[ids + from] then return end
  of.asked[ids + from] = true
  local fields = {}
  for i = from, to do fields[#fields + 1] = board .. ':' .. ARGV[ids + i] end
  local found = call('HMGET', KEYS[6], unpack(fields))
  for i = from, to do
    if found[i - from + 1] then of[':' .. ARGV[ids + i]] = PLACE[string.match(found[i - from + 1], '^%a+')] end
  end
end

local function standing(board, from, to, ids)
  if few == nil then readBans() end
  local prefix = few and '' or ':' -- asked is no member
  if not few then
    askBans('', from, to, ids)
    askBans(board, from, to, ids)
  end
  local all, own, who = bans[''], bans[board], nil
  if not all and not own then return nil end
  for i = from, to do
    local id = prefix .. ARGV[ids + i]
    local is = state(all and all[id], own and own[id])
    if is then
      who = who or {}
      who[i - from + 1] = is
    end
  end
  return who
end

local function split(out, who, shown, unseen)
  local show, hide, out1, out2 = {}, {}, {}, {}
  for n = 1, #shown do
    local score, id, is = out[2 * n - 1], out[2 * n], who[n]
    local to = show
    if is == 'hidden' then
      to = hide
      if shown[n] then out1[#out1 + 1] = id end
    elseif is == 'showing' and unseen[n] then
      out2[#out2 + 1] = id
    end
    if is ~= 'erased' then
      to[#to + 1] = score
      to[#to + 1] = id
    end
  end
  return show, hide, out1, out2
end
