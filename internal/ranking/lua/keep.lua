-- keep.lua has keys of a copy live as long as those of live boards.
--
-- KEYS  1… the keys
-- ARGV  1… for each until when it lives, ms, or '' for ever
--
-- Returns {kept}. Keys that are gone stay so.

local call = redis.call

for i = 1, #KEYS do
  if ARGV[i] == '' then
    call('PERSIST', KEYS[i])
  else
    call('PEXPIREAT', KEYS[i], ARGV[i])
  end
end
return {'kept'}
