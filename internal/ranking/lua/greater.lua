-- greater.lua compares ids by bytes, as Redis does: Lua's own comparison goes by the server's locale. It is no
-- script: others include it.
local function greater(a, b)
  local i = 1
  while i <= #a and string.byte(a, i) == string.byte(b, i) do i = i + 1 end
  return (string.byte(a, i) or -1) > (string.byte(b, i) or -1)
end
