-- forget.lua removes the texts of rules that are no longer needed: no sweep uses them, and no partition of the ledger
-- is counted by them.
--
-- KEYS  1 rules   2 ledger
-- ARGV  1 the fingerprint of a text to keep, '' for none
--
-- Returns {forgotten, number of fields removed}.
--
-- A text is written with the first piece that uses it, in the same call as the position with its fingerprint
-- (apply.lua). So no call in flight needs a text that isn't needed here.

local call = redis.call

local needed = {[ARGV[1]] = true}
local positions, counted = call('HGETALL', KEYS[2]), {}
for i = 1, #positions, 2 do
  counted[positions[i]] = true
  local by = string.match(positions[i + 1], '#(%x+)$')
  if by then needed[by] = true end
end
local fields, gone = call('HGETALL', KEYS[1]), {}
for i = 1, #fields, 2 do
  local name = fields[i]
  if counted[name] then
    needed[fields[i + 1]] = true
  elseif string.find(name, '/', 1, true) then
    gone[#gone + 1] = name
  end
end
for i = 1, #fields, 2 do
  local name = fields[i]
  if not needed[name] and not string.find(name, '/', 1, true) then gone[#gone + 1] = name end
end
for _, name in ipairs(gone) do call('HDEL', KEYS[1], name) end
return {'forgotten', #gone}
