-- mergenames.lua adds names that a rebuild found to those there are.
--
-- KEYS  1 names   2 banned
-- ARGV  members, each followed by its name as names has it
--
-- Returns {merged}. To send it again changes nothing. Who was erased since isn't named again.

-- include greater.lua
-- include name.lua

local call = redis.call

for i = 1, #ARGV, 2 do
  local id, text = ARGV[i], call('HGET', KEYS[1], ARGV[i])
  local erased = string.match(call('HGET', KEYS[2], ':' .. id) or '', '^eras')
  local found = readName(ARGV[i + 1])
  if found and not erased then
    local now = nameText(laterName(readName(text), unpack(found)))
    if now ~= text then call('HSET', KEYS[1], id, now) end
  end
end
return {'merged'}
