-- names.lua reads and writes members' names. Other scripts include greater.lua and this file; it isn't a script by
-- itself. names has for each member: the time of the event with the name (ms), when the entry expires (ms), and the
-- name, separated by blanks. An entry expires with the member's last window.

local function readName(text) -- {time, expiry, name}, or nil
  local time, at, name = string.match(text or '', '^(%d+) (%d+) (.*)$')
  return time and {tonumber(time), tonumber(at), name}
end

local function nameText(is) return string.format('%.0f %.0f ', is[1], is[2]) .. is[3] end -- %s would end at a NUL

-- Merges two names. The name of the later event applies, and for equal times the greater one by bytes. The entry
-- expires at the later of the two expiries. An empty name is no name: an event without a name only extends the entry,
-- if it opens a window that expires later.
local function laterName(is, time, at, name)
  if not is then return name ~= '' and {time, at, name} or nil end
  at = math.max(is[2], at)
  if name ~= '' and (time > is[1] or time == is[1] and greater(name, is[3])) then return {time, at, name} end
  return {is[1], at, is[3]}
end
