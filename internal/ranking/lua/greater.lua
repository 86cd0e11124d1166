-- greater.lua compares ids by bytes, like Redis. Lua's own comparison uses the server's locale. Other scripts include
-- it; it isn't a script by itself.
local function greater(a, b)
  local i = 1
  while i <= #a and string.byte(a, i) == string.byte(b, i) do i = i + 1 end
  return (string.byte(a, i) or -1) > (string.byte(b, i) or -1)
end
