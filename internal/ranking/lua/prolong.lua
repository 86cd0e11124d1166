-- prolong.lua lets locks of a reshard live on, all or none.
--
-- KEYS  1… the locks
-- ARGV  1 ms that they are to live   2… what each holds while it is ours
--
-- Returns {prolonged}, or {lost, key} where one isn't ours any more.

local call = redis.call

for i = 1, #KEYS do
  if call('GET', KEYS[i]) ~= ARGV[i + 1] then return {'lost', KEYS[i]} end
end
for i = 1, #KEYS do call('SET', KEYS[i], ARGV[i + 1], 'PX', ARGV[1]) end
return {'prolonged'}
