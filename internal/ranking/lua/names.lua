-- names.lua is what members are called. It is no script: others include greater.lua and it. names has for a member:
-- time of the event that said it ms, when it goes ms, the name, a blank between each. It goes once the last window
-- of the member has gone.

local function readName(text) -- {time, when it goes, name}, or nil
  local time, at, name = string.match(text or '', '^(%d+) (%d+) (.*)$')
  return time and {tonumber(time), tonumber(at), name}
end

local function nameText(is) return string.format('%.0f %.0f ', is[1], is[2]) .. is[3] end -- at a NUL %s would end

-- Of two names the one of the later event counts, of one time the greater bytes, and it stays as long as either.
-- An empty one is none: so a piece without a name has a name stay longer, where it begins a window that does.
local function laterName(is, time, at, name)
  if not is then return name ~= '' and {time, at, name} or nil end
  at = math.max(is[2], at)
  if name ~= '' and (time > is[1] or time == is[1] and greater(name, is[3])) then return {time, at, name} end
  return {is[1], at, is[3]}
end
