-- apply.lua adds one piece of a batch to the standings and moves the ledger, or writes nothing and returns the
-- reason. Without a next position it only checks the piece, which then may be any part of the batch.
--
-- KEYS  1 ledger   2 schema   3 hold   4 windows   5 dropped   6 banned   7 borders
--       8… of each window its sorted set, and its hidden set; then rules and names, if ARGV 7 names them
-- ARGV  1 field of the ledger   2 expected   3 next, '' to check   4 schema
--       5 ms that a shadow's keys live, '' for live boards
--       6 maximum number of listed windows; after the reply boards, also a blank, and for each window 1 if its board
--         has a listed window, else 0
--       7 words, separated by a blank: rules if the call stores the rules by which the partition is counted from this
--         piece on, names if members have names
--       8 number of final windows that the piece leaves out; then their names in the listing; with rules: their
--         fingerprint, and their text
--       for each window: start ms, end ms, retention ms, readable or wide, k, tick ms, max points or the rule of its
--         board as JSON (layouts.lua), the names of its start and end in borders, separated by a comma, or ''
--       for each group, to the end: number of windows, their numbers (from 1), number of members, their points (with a
--         rule, a list for each field) and times ms (JSON lists), their ids; with names, the times of those ms (a JSON
--         list), and the names, '' for none
--
-- Returns one of
--   {applied}, or {fits} for a check; {held}
--   {moved, what the ledger holds, or ''}; {schema, found schema or ''}
--   {sealed, window, …}        the piece has changes for these windows, which are final
--   {unsealed, window, …}      the piece leaves out these windows, which aren't final
--   {bounds, window, listing}  the listing has another start or end; '': it isn't listed, and its borders are
--                              settled elsewhere or not at all
--   {rule, window, listing}    the listing has another rule
--   {lost, window}             the window is listed, and a key that it must have doesn't exist (listing.lua)
--   {unlisted, window}         the window isn't listed, and its key exists
--   {boards}                   the piece would open a window in the last tenth of the maximum: the caller reads which
--                              boards have a window, and calls again
--   {foreign, window, member}  the layout doesn't write this score
--   {refused, reason, member, where, …}: each member once, for the first reason found. window_limit: it would open a
--     window beyond the maximum. overflow: a standing would leave the range of points (where is ''), or of a field (the
--     window, the field's number and the digit that it would have; only the window if the change alone is out of range)
--
-- The script reads and checks everything before the first write. The first write marks the ledger as torn, the last
-- one moves it: a script that dies between them leaves the mark, and nothing is added twice. Scores are passed to
-- redis.call as numbers, which Redis writes exactly; offsets stay text. Numbers are integers below 2^53.

local call, unpack, tonumber = redis.call, unpack, tonumber
local DAY = 86400000  -- a key expires this long after its window's retention, ms
local SLICE = 1000    -- members per command; unpack returns at most 8,000 values
local ledger, listings, dropped = KEYS[1], KEYS[4], KEYS[5]
local field, expected = ARGV[1], ARGV[2]

local found = call('HGET', ledger, field)
if found ~= expected then return {'moved', found or ''} end
local schema = call('GET', KEYS[2])
if schema ~= ARGV[4] then return {'schema', schema or ''} end
local banned = call('EXISTS', KEYS[3], KEYS[6]) > 0 -- both rarely exist, so one command checks for both
if banned and call('EXISTS', KEYS[3]) == 1 then return {'held'} end

local time = call('TIME')
local now = tonumber(time[1]) * 1000 + tonumber(time[2]) / 1000
local lease = ARGV[5] ~= '' and string.format('%.0f', now + tonumber(ARGV[5])) -- of a shadow's keys
local tag = #ledger - #'ledger' + 1 -- position in a key where the window's name begins

-- include listing.lua
-- include layouts.lua

-- Keys and arguments that only some pieces have.
local keys, arg, rulesKey, namesKey, fingerprint, text = #KEYS, 9, nil, nil, nil, nil
if ARGV[8] ~= '0' then
  local unsealed = {'unsealed'}
  for _ = 1, tonumber(ARGV[8]) do
    local l = readListing(call('HGET', listings, ARGV[arg]))
    if not (l and l.final) then unsealed[#unsealed + 1] = ARGV[arg] end
    arg = arg + 1
  end
  if #unsealed > 1 then return unsealed end
end
if ARGV[7] ~= '' then
  if ARGV[7] ~= 'rules' then namesKey, keys = KEYS[keys], keys - 1 end
  if ARGV[7] ~= 'names' then rulesKey, keys, fingerprint, text, arg = KEYS[keys], keys - 1, ARGV[arg], ARGV[arg + 1], arg + 2 end
end

-- These functions are created only for the pieces that need them: every call runs the whole script, and creating them
-- takes as long as some members.
local standing, split
local function knowBans()
-- include banned.lua
  return standing, split
end
local laterName, readName, nameText
local function knowNames()
-- include greater.lua
-- include names.lua
  return laterName, readName, nameText
end

-- The windows. The script neither reads nor writes a window whose retention is over, or one that was dropped with its
-- board. A consumer far behind may find a window over that was never listed; if the retention is raised later, the
-- rest of its events must not open it. So over:<period> in dropped has the start of the last such window of each
-- period, and the script doesn't open an unlisted window that starts no later. A shadow doesn't need that: it uses
-- one retention. If Redis's clock was ahead for a while, events were left out of windows that haven't ended. Those
-- windows still open, and Retire reports the missing events.
local NONE, windows, opens = {}, {}, {} -- opens: windows that would be opened
local sealed -- the reply, if some windows are final
local left, leave = {}, {} -- by period: start of the last window left out, as stored and to be stored
local function leftOut(period)
  if not left[period] then left[period] = tonumber(call('HGET', dropped, 'over:' .. period) or '') or -math.huge end
  return left[period]
end
for i = 1, (keys - 7) / 2 do
  local first, last, name = ARGV[arg], ARGV[arg + 1], string.sub(KEYS[6 + 2 * i], tag)
  local w = {
    key = KEYS[6 + 2 * i], hidden = KEYS[7 + 2 * i], name = name, first = tonumber(first), last = tonumber(last) - 1,
    wide = ARGV[arg + 3] == 'wide', k = tonumber(ARGV[arg + 4]), tick = tonumber(ARGV[arg + 5]), max = tonumber(ARGV[arg + 6]),
  }
  local rule -- as in the listing
  if not w.max then
    w.rule = cjson.decode(ARGV[arg + 6])
    w.merge, rule = merger(w.rule), w.rule.text
  end
  local listing = call('HGET', listings, name)
  local l = listing and readListing(listing) or {expires = listing and math.huge or tonumber(last) + tonumber(ARGV[arg + 2])}
  w.live = now < l.expires
  if listing then
    if w.live and (l.start ~= w.first or l['end'] ~= w.last + 1) then return {'bounds', name, listing} end
    if w.live and l.rule ~= rule then return {'rule', name, listing} end
    if w.live and l.final then
      sealed = sealed or {'sealed'}
      sealed[#sealed + 1] = name
    end
    w.sets = l.sets
  else
    local period = string.match(name, '^[^:]*:([^:]*)') or ''
    if not w.live and not lease and w.first > leftOut(period) then left[period], leave[period] = w.first, first end
    if w.live and (call('HGET', dropped, name) or now > w.last and w.first <= leftOut(period)) then w.live = false end
    if w.live and ARGV[arg + 7] ~= '' then
      local start, stop = string.match(ARGV[arg + 7], '^(.-),(.*)$')
      start, stop = call('HGET', KEYS[7], start), call('HGET', KEYS[7], stop)
      if string.match(start or '', '^%S+') ~= first or string.match(stop or '', '^%S+') ~= last then return {'bounds', name, ''} end
    end
    l.start, l['end'], l.rule, w.new = w.first, w.last + 1, rule, true
    if w.live then opens[#opens + 1] = i end
  end
  w.listing = l
  if w.live then
    w.begins = call('EXISTS', w.key) == 0
    if w.sets and not whole(w.sets, present(w.key, w.hidden)) or listing and w.begins and not w.sets then return {'lost', name} end
    if not listing and (not w.begins or call('EXISTS', w.hidden) == 1) then return {'unlisted', name} end
  end
  windows[i] = w
  arg = arg + 8
end
if sealed then return sealed end

-- The last tenth of the maximum number of windows is reserved for boards that have a window, so that new boards can't
-- block other boards' next week. Most of those have a listed window in this call, such as their year. For the others
-- the caller reads the listing page by page: reading all of it here would block Redis.
if #opens > 0 then
  local most, told = string.match(ARGV[6], '^(%d+) ?(%d*)$')
  most = tonumber(most)
  local listed, has = call('HLEN', listings), nil
  for _, i in ipairs(opens) do
    local w = windows[i]
    w.beyond = listed >= most
    if not w.beyond and listed >= most - math.floor(most / 10) then
      for _, other in ipairs(has and NONE or windows) do
        has = has or {}
        if not other.new then has[string.match(other.name, '^[^:]*')] = true end
      end
      local opened = has[string.match(w.name, '^[^:]*')]
      if not opened and told == '' then return {'boards'} end
      w.beyond = not opened and string.sub(told, i, i) ~= '1'
    end
    if not w.beyond then listed = listed + 1 end
  end
end

if banned then standing, split = knowBans() end
if namesKey then laterName, readName, nameText = knowNames() end
local staying, called, values = {}, {}, {} -- called: members' names; values: to write

local refused, known, current, erased = {'refused'}, {}, nil, NONE -- the window being computed; the erased members
local function refuse(reason, id, field, digit)
  if known[id] or erased[id] then return end
  known[id] = true
  local where, n = field and current.name or '', #refused
  if field and math.abs(digit) < 2 ^ 52 then where = string.format('%s %d %.0f', where, field, digit) end
  refused[n + 1], refused[n + 2], refused[n + 3] = reason, id, where
end

-- Read everything and compute every new score. If a member of the piece is banned, the piece may change which of its
-- two sets a window has, so the window's listing records the sets, and a lost one is noticed.
local writes = {}
while arg <= #ARGV do
  local count = tonumber(ARGV[arg])
  local numbers = arg -- index before the first window's number
  arg = arg + count + 1
  local members = tonumber(ARGV[arg])
  assert(count >= 0 and members >= 0) -- smaller numbers would make the loop endless
  local points, times = cjson.decode(ARGV[arg + 1]), cjson.decode(ARGV[arg + 2])
  local ids = arg + 2 -- index before the first id
  arg = ids + members + 1
  for n = 1, count do
    local w = windows[tonumber(ARGV[numbers + n])]
    current = w
    for from = 1, w.live and members or 0, SLICE do
      local to = math.min(from + SLICE - 1, members)
      local who = banned and standing(string.match(w.name, '^[^:]*'), from, to, ids)
      erased = who and {} or NONE
      for i, is in pairs(who or NONE) do erased[ARGV[ids + from + i - 1]] = is == 'erased' end
      if w.beyond then
        for i = from, to do refuse('window_limit', ARGV[ids + i]) end
      else
        local old, shown, unseen = call('ZMSCORE', w.key, unpack(ARGV, ids + from, ids + to)), nil, nil
        if who then
          shown, old = old, {unpack(old, 1, to - from + 1)}
          unseen = call('ZMSCORE', w.hidden, unpack(ARGV, ids + from, ids + to))
          for i, is in pairs(who) do old[i] = is ~= 'erased' and (unseen[i] or shown[i]) end
        end
        local out, whose = scores(w, old, points, times, from, to, ids, refuse)
        if not out then return {'foreign', w.name, whose} end
        if not who then
          writes[#writes + 1] = {w, out}
          w.written = true
        elseif #refused == 1 then
          local show, hide, gone, back = split(out, who, shown, unseen)
          writes[#writes + 1] = {w, show, hide, gone, back}
          w.written = w.written or #show + #hide > 0
          w.sets = w.sets or 'shown'
          w.hides = w.hides or #hide > 0
        end
        for i = from, namesKey and to or 0 do
          local id = ARGV[ids + i]
          if not erased[id] then staying[id] = math.max(staying[id] or 0, w.listing.expires) end
        end
      end
    end
  end
  if namesKey then
    local said = cjson.decode(ARGV[arg])
    for from = 1, members, SLICE do
      local to = math.min(from + SLICE - 1, members)
      local found = call('HMGET', namesKey, unpack(ARGV, ids + from, ids + to))
      for i = from, to do
        local id, text = ARGV[ids + i], found[i - from + 1]
        if staying[id] then
          called[id] = laterName(called[id] or readName(text), said[i], staying[id], ARGV[arg + i])
          local now = called[id] and nameText(called[id])
          if now and now ~= text then values[#values + 1], values[#values + 2] = id, now end
        end
      end
    end
    arg, staying = arg + members + 1, {}
  end
end
if #refused > 1 then return refused end
if ARGV[3] == '' then return {'fits'} end

-- Write. New windows are listed first: if the script dies, a rebuild must know all keys, because an unlisted one
-- would be in its way.
call('HSET', ledger, field, 'torn:' .. expected)
if rulesKey then call('HSET', rulesKey, fingerprint, text, field, fingerprint) end
for period, start in pairs(leave) do call('HSET', dropped, 'over:' .. period, start) end
for _, w in ipairs(windows) do
  if w.new and w.written then call('HSET', listings, w.name, listingText(w.listing)) end
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
for from = 1, #values, 2 * SLICE do
  call('HSET', namesKey, unpack(values, from, math.min(from + 2 * SLICE - 1, #values)))
end
for _, w in ipairs(windows) do
  if w.written and (w.begins or w.sets) then
    local expires = lease or string.format('%.0f', w.listing.expires + DAY)
    if w.begins then call('PEXPIREAT', w.key, expires) end
    if w.hides then call('PEXPIREAT', w.hidden, expires) end
    local is = w.sets and present(w.key, w.hidden)
    if is ~= w.sets then call('HSET', listings, w.name, listingText(w.listing, is)) end
  end
end
-- A shadow's keys must expire together, or the ledger first. If Redis's clock went back since the last renewal, the
-- new keys would otherwise expire before the ledger.
if lease then
  for _, key in ipairs({listings, namesKey}) do
    local left = call('PTTL', key)
    if left == -1 then call('PEXPIREAT', key, lease) end
  end
  local left = call('PTTL', ledger)
  if left > tonumber(ARGV[5]) then call('PEXPIREAT', ledger, lease) end
end
call('HSET', ledger, field, ARGV[3])
return {'applied'}
