-- greater.lua compares ids by bytes, as Redis does. It is no script: others are built with it, by
-- a line that includes it.

-- Lua's own comparison goes by the server's locale.
local function greater(a, b)
  for i = 1, math.min(#a, #b) do
    local x, y = string.byte(a, i), string.byte(b, i)
    if x ~= y then return x > y end
  end
  return #a > #b
end
