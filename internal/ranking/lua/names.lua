-- names.lua is what a piece's members are called. It is no script: apply.lua is built with it, by a
-- line that includes it.
--
--   stays(id, at)  notes that a member has a window until then
--   nameMembers(ids, members, times, texts) works out what members are called who have a window
--   writeNames() writes that
--
-- A piece without a name has a name stay longer, where it begins a window that does.

local staying = {} -- until when the members of a group have a window
local called, values = {}, {} -- what members are called by now; what is to be written

local function stays(id, at)
  if at > (staying[id] or 0) then staying[id] = at end
end

local function nameMembers(ids, members, times, texts)
  for from = 1, members, SLICE do
    local to = math.min(from + SLICE - 1, members)
    local found = call('HMGET', namesKey, unpack(ARGV, ids + from, ids + to))
    for i = from, to do
      local id, text = ARGV[ids + i], found[i - from + 1]
      if staying[id] then
        local is = laterName(called[id] or readName(text), times[i], staying[id], ARGV[texts + i])
        called[id] = is
        local now = is and nameText(is)
        if is and now ~= text then
          values[#values + 1] = id
          values[#values + 1] = now
        end
      end
    end
  end
  staying = {}
end

local function writeNames()
  for from = 1, #values, 2 * SLICE do
    call('HSET', namesKey, unpack(values, from, math.min(from + 2 * SLICE - 1, #values)))
  end
end
