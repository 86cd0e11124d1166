-- apply.lua adds one piece of a batch to the standings and moves the ledger, or
-- writes nothing and says why. Without a next position it only checks the piece, which
-- then may be any of the batch: the answer is the same, and nothing is written.
--
-- KEYS  1 ledger   2 schema   3 hold   4 windows   5 dropped   6 banned
--       7 borders   8… of each window its sorted set, and its hidden set, then rules and names if ARGV[7] names them
-- ARGV  1 field of the ledger   2 expected   3 next, '' to check   4 schema
--       5 ms that a key lives which a rebuild's shadow gets, '' for live boards
--       6 windows that may be listed; after the answer boards also a blank, and for each window 1 if its
--         board has a window that is listed, else 0
--       7 what else there is: rules, where it is noted by which rules the partition is counted from
--         this piece on, names, where members have them, both, or ''
--       number of windows that the piece leaves out since they are final, and their names in the listing
--       of rules: their fingerprint, and their text
--       for each window, in the order of KEYS:
--         start ms, end ms, retention ms, layout (readable or wide), k, tick ms, and max points, or,
--         of a board that isn't by the default rule, its rule as JSON (tuples.lua), and the names of
--         its start and its end in borders, separated by a comma, or '' if it has none there
--       for each group, to the end:
--         number of windows, their numbers (from 1), number of members,
--         their points and their times ms (two JSON lists), their ids
--         by another rule, which all windows of a group then share, the points are
--         a list for each of its fields
--         then, where members have names, the times of those ms (a JSON list), and the names,
--         '' for none (names.lua)
--
-- Returns one of
--   {applied}                     or, of a check, {fits}
--   {moved, what the ledger holds, or ''}
--   {schema, what it is, or ''}
--   {held}
--   {sealed, window, …}           these are final, and the piece has changes for them
--   {unsealed, window, …}         these aren't, and the piece leaves them out
--   {bounds, window, listing}     listed with another start or end; or not listed (''), and its
--                                 borders are settled otherwise, or not at all (settle.lua)
--   {rule, window, listing}       listed with another rule of its board
--   {lost, window}                listed, and a key that it has to have isn't there (sets.lua)
--   {unlisted, window}            not listed, and its key exists
--   {boards}                      it would open a window in the last tenth of those that may be listed: the
--                                 caller has to read which boards have a window, and call again
--   {foreign, window, member}     a score that this layout doesn't write
--   {refused, reason, member, where, …}
--                                 each once, for the first reason that was found
--     overflow                    a standing would leave the range of points, or of a field:
--                                 by a rule, where is the window, the field's number from 1
--                                 and what its digit would be, or the window alone if the
--                                 change by itself is beyond what is counted; else ''
--     window_limit                it would open a window beyond those that may be listed, or, of a board
--                                 that has none, in the last tenth of them
--
-- Everything is read and checked before the first write. The first write marks
-- the ledger as torn, the last one moves it: a script that dies between them
-- leaves the mark, and nobody adds anything twice. Scores go to redis.call as
-- numbers, which Redis writes exactly; offsets stay text.
--
-- Who is banned is asked once a piece, with the hold, and only then who of its members. Their
-- changes go to the hidden set beside each window's (banned.lua), or, of whoever is erased, nowhere.
-- A window is begun by them, too. Which of its two sets it then has is noted in its listing, so that
-- each of them can be missed.
--
-- In a shadow all keys live as long as a lease that is renewed for all at once: a
-- rebuild that dies leaves nothing behind.
--
-- Numbers are whole and below 2^53, so exact.

local call, unpack, tonumber = redis.call, unpack, tonumber

local DAY = 86400000  -- a key expires this long after its window's retention, ms
local SLICE = 1000    -- members a command; unpack carries at most 8,000 values

local ledger, listings, dropped = KEYS[1], KEYS[4], KEYS[5]
local field, expected = ARGV[1], ARGV[2]

local found = call('HGET', ledger, field)
if found ~= expected then return {'moved', found or ''} end
local schema = call('GET', KEYS[2])
if schema ~= ARGV[4] then return {'schema', schema or ''} end
local banned = call('EXISTS', KEYS[3], KEYS[6]) > 0 -- almost never either: one command for both
if banned and call('EXISTS', KEYS[3]) == 1 then return {'held'} end

local time = call('TIME')
local now = tonumber(time[1]) * 1000 + tonumber(time[2]) / 1000
local lease = ARGV[5] ~= '' and string.format('%.0f', now + tonumber(ARGV[5]))

local tag = #ledger - #'ledger' + 1 -- where a window's name in the listing begins in its key

-- What only some pieces have.
local keys, arg, rulesKey, namesKey, fingerprint, text = #KEYS, 9, nil, nil, nil, nil
if ARGV[8] ~= '0' then
  local unsealed = {'unsealed'}
  for _ = 1, tonumber(ARGV[8]) do
    local listing = call('HGET', listings, ARGV[arg])
    if not (listing and string.find(listing, ' =%d+ ')) then unsealed[#unsealed + 1] = ARGV[arg] end
    arg = arg + 1
  end
  if #unsealed > 1 then return unsealed end
end
if ARGV[7] ~= '' then
  if ARGV[7] ~= 'rules' then namesKey, keys = KEYS[keys], keys - 1 end
  if ARGV[7] ~= 'names' then rulesKey, keys, fingerprint, text, arg = KEYS[keys], keys - 1, ARGV[arg], ARGV[arg + 1], arg + 2 end
end

-- What only some pieces need is made for those alone: a script begins anew with every call, and to
-- make its functions takes as long as some members.
local setsOf, present, whole, withSets
local function knowSets()
-- include sets.lua
  return setsOf, present, whole, withSets
end
local tuples
local function knowRules()
-- include tuples.lua
  return tuples
end
local standing, split
local function knowBans()
-- include banned.lua
  return standing, split
end
local values, stays, nameMembers, writeNames
local function knowNames()
-- include greater.lua
-- include name.lua
-- include names.lua
  return values, stays, nameMembers, writeNames
end

-- The windows. One whose retention is over is neither read nor written, nor is one that
-- was dropped with its board: of the rest of its events nobody could say that it is whole.
--
-- The same holds where a consumer far behind comes to a window that is over and was never
-- listed, its retention is raised, and then more of its events come. So the start of the
-- last such window of each period is kept, in dropped as over:<period>, and what isn't
-- listed and starts no later doesn't begin any more. A shadow is read by one retention.
--
-- But a clock that was far ahead for a while leaves out what isn't over by any retention,
-- and its start stays in mind. So a window that hasn't ended begins all the same: of a
-- period's windows the one that ends later starts later, so what was kept is of one that
-- hasn't ended either. Retire forgets it, and says that events are missing.
local windows, opens = {}, {} -- opens: those that would be listed
local sealed -- the answer, where some are final
local left, leave = {}, {} -- by period: the start of the last that was left out; to be kept
local function leftOut(period)
  if not left[period] then left[period] = tonumber(call('HGET', dropped, 'over:' .. period) or '') or -math.huge end
  return left[period]
end
for i = 1, (keys - 7) / 2 do
  local key, first, last = KEYS[6 + 2 * i], ARGV[arg], ARGV[arg + 1]
  local name = string.sub(key, tag)
  local w = {
    key = key, hidden = KEYS[7 + 2 * i], name = name, first = tonumber(first), last = tonumber(last) - 1,
    wide = ARGV[arg + 3] == 'wide', k = tonumber(ARGV[arg + 4]),
    tick = tonumber(ARGV[arg + 5]), max = tonumber(ARGV[arg + 6]),
  }
  local rule = '' -- its text in the listing, and a blank
  if not w.max then
    w.rule, tuples = cjson.decode(ARGV[arg + 6]), tuples or knowRules()
    rule = w.rule.text .. ' '
  end
  local expires = tonumber(last) + tonumber(ARGV[arg + 2])
  local listing = call('HGET', listings, name)
  if listing then
    local from, to, by, over = string.match(listing, '^(%S+) (%S+) (.-)(%d+)$')
    expires = tonumber(over) or math.huge
    w.live = now < expires
    if w.live and (from ~= first or to ~= last) then return {'bounds', name, listing} end
    if w.live and by ~= rule then
      local final, unsealed = string.match(by, '^(.-)=%d+ (.*)$')
      if final then
        sealed = sealed or {'sealed'}
        by, sealed[#sealed + 1] = final .. unsealed, name
      end
      if by ~= rule and string.match(by, '^(.-)%+%a+ $') ~= rule then return {'rule', name, listing} end
      if not setsOf then setsOf, present, whole, withSets = knowSets() end
      w.sets = setsOf(listing)
    end
    w.listing = listing
  else
    w.live = now < expires
    local period = string.match(name, '^[^:]*:([^:]*)') or ''
    if not w.live and not lease and w.first > leftOut(period) then left[period], leave[period] = w.first, first end
    if w.live and (call('HGET', dropped, name) or now > w.last and w.first <= leftOut(period)) then w.live = false end
    if w.live and ARGV[arg + 7] ~= '' then
      local start, stop = string.match(ARGV[arg + 7], '^(.-),(.*)$')
      start, stop = call('HGET', KEYS[7], start), call('HGET', KEYS[7], stop)
      if string.match(start or '', '^%S+') ~= first or string.match(stop or '', '^%S+') ~= last then return {'bounds', name, ''} end
    end
    w.listing, w.new = string.format('%s %s %s%.0f', first, last, rule, expires), true
    if w.live then opens[#opens + 1] = i end
  end
  if w.live then
    w.over, w.expires = expires, expires + DAY
    w.begins = call('EXISTS', w.key) == 0
    if w.sets and not whole(w.sets, present(w.key, w.hidden)) or listing and w.begins and not w.sets then return {'lost', name} end
    if not listing and (not w.begins or call('EXISTS', w.hidden) == 1) then return {'unlisted', name} end
  end
  windows[i] = w
  arg = arg + 8
end
if sealed then return sealed end

-- The room for windows. Its last tenth is for boards that have a window, so that events that name new boards
-- don't keep a new week of the others from starting. Most boards that have a window have one in this call, such
-- as their year's. For the rest the caller reads the listing, page by page: to read it here would stop Redis.
if #opens > 0 then
  local most, told = string.match(ARGV[6], '^(%d+) ?(%d*)$')
  most = tonumber(most)
  local listed, has = call('HLEN', listings), nil
  for _, i in ipairs(opens) do
    local w = windows[i]
    w.beyond = listed >= most
    if not w.beyond and listed >= most - math.floor(most / 10) then
      if not has then
        has = {}
        for _, other in ipairs(windows) do
          if not other.new then has[string.match(other.name, '^[^:]*')] = true end
        end
      end
      if not has[string.match(w.name, '^[^:]*')] then
        if told == '' then return {'boards'} end
        w.beyond = string.sub(told, i, i) ~= '1'
      end
    end
    if not w.beyond then listed = listed + 1 end
  end
end

-- include layouts.lua

if banned then
  standing, split = knowBans()
  if not setsOf then setsOf, present, whole, withSets = knowSets() end
end
if namesKey then values, stays, nameMembers, writeNames = knowNames() end

local refused, known = {'refused'}, {}
local current -- the window that is worked out
local function refuse(reason, id, field, digit)
  if not known[id] then
    known[id] = true
    local where = field and current.name or ''
    if field and math.abs(digit) < 2 ^ 52 then where = string.format('%s %d %.0f', where, field, digit) end
    refused[#refused + 1] = reason
    refused[#refused + 1] = id
    refused[#refused + 1] = where
  end
end

-- Read everything and work out every new score.
local writes = {}
while arg <= #ARGV do
  local count = tonumber(ARGV[arg])
  local numbers = arg -- the window's number before the first
  arg = arg + count + 1
  local members = tonumber(ARGV[arg])
  assert(count >= 0 and members >= 0) -- less would never come to an end
  local points, times = cjson.decode(ARGV[arg + 1]), cjson.decode(ARGV[arg + 2])
  local ids = arg + 2 -- the id before the first
  arg = ids + members + 1
  for n = 1, count do
    local w = windows[tonumber(ARGV[numbers + n])]
    current = w
    for from = 1, w.live and members or 0, SLICE do
      local to = math.min(from + SLICE - 1, members)
      local who = banned and standing(string.match(w.name, '^[^:]*'), from, to, ids)
      local counted, erased = refuse, nil
      if who then
        erased = {}
        for i, is in pairs(who) do erased[ARGV[ids + from + i - 1]] = is == 'erased' end
        counted = function(reason, id, ...)
          if not erased[id] then refuse(reason, id, ...) end
        end
      end
      if w.beyond then
        for i = from, to do counted('window_limit', ARGV[ids + i]) end
      else
        local old, shown, unseen = call('ZMSCORE', w.key, unpack(ARGV, ids + from, ids + to)), nil, nil
        if who then
          shown, old = old, {unpack(old, 1, to - from + 1)}
          unseen = call('ZMSCORE', w.hidden, unpack(ARGV, ids + from, ids + to))
          for i, is in pairs(who) do old[i] = is ~= 'erased' and (unseen[i] or shown[i]) end
        end
        local out, whose = (w.rule and tuples or w.wide and wide or readable)(w, old, points, times, from, to, ids, counted)
        if not out then return {'foreign', w.name, whose} end
        if not who then
          writes[#writes + 1] = {w, out}
          w.written = true
        elseif #refused == 1 then
          local show, hide, gone, back = split(out, who, shown, unseen)
          writes[#writes + 1] = {w, show, hide, gone, back}
          w.written = w.written or #show + #hide > 0
          w.sets = w.sets or 'shown' -- what it has may change
          w.hides = w.hides or #hide > 0
        end
        for i = from, namesKey and to or 0 do
          if not (erased and erased[ARGV[ids + i]]) then stays(ARGV[ids + i], w.over) end
        end
      end
    end
  end
  if namesKey then
    nameMembers(ids, members, cjson.decode(ARGV[arg]), arg)
    arg = arg + members + 1
  end
end
if #refused > 1 then return refused end
if ARGV[3] == '' then return {'fits'} end

-- Write. What is listed first is known to a rebuild if this dies before it ends: a key
-- that nothing lists would be in its way, and it wouldn't know.
call('HSET', ledger, field, 'torn:' .. expected)
if rulesKey then call('HSET', rulesKey, fingerprint, text, field, fingerprint) end
for period, start in pairs(leave) do call('HSET', dropped, 'over:' .. period, start) end
for _, w in ipairs(windows) do
  if w.new and w.written then call('HSET', listings, w.name, w.listing) end
end
for _, write in ipairs(writes) do
  local w, show, hide, gone, back = unpack(write)
  if #show > 0 then call('ZADD', w.key, unpack(show)) end
  if hide then
    if #hide > 0 then call('ZADD', w.hidden, unpack(hide)) end
    if #gone > 0 then call('ZREM', w.key, unpack(gone)) end
    if #back > 0 then call('ZREM', w.hidden, unpack(back)) end
  end
end
if namesKey and #values > 0 then
  writeNames()
  if lease then call('PEXPIREAT', namesKey, lease) end
end
for _, w in ipairs(windows) do
  if w.written and (w.begins or w.sets) then
    if lease and w.new then call('PEXPIREAT', listings, lease) end
    local expires = lease or string.format('%.0f', w.expires)
    if w.begins then call('PEXPIREAT', w.key, expires) end
    if w.hides then call('PEXPIREAT', w.hidden, expires) end
    local is = w.sets and present(w.key, w.hidden)
    if is ~= w.sets then call('HSET', listings, w.name, withSets(w.listing, is)) end
  end
end
call('HSET', ledger, field, ARGV[3])
return {'applied'}
