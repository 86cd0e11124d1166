-- lock.lua takes a lock that ends by itself, lets locks live on, or lets go of them.
--
-- KEYS  1… the locks; to take one, only the first is taken, and the others have to be ours already
-- ARGV  1 take, renew or release   2 ms that they live from now on   3… what each holds while it is ours
--
-- Returns one of
--   {done}         also if a lock to be taken was ours already
--   {lost, key}    a lock isn't ours any more: none was taken or renewed, and the others were released
--   {busy, what the first holds, ms that it still lives}

local call = redis.call

local what, lost = ARGV[1], nil
for i = what == 'take' and 2 or 1, #KEYS do
  if call('GET', KEYS[i]) ~= ARGV[i + 2] then
    lost = KEYS[i]
  elseif what == 'release' then
    call('UNLINK', KEYS[i])
  end
end
if lost then return {'lost', lost} end
if what == 'take' then
  local holds = call('GET', KEYS[1])
  if holds and holds ~= ARGV[3] then return {'busy', holds, call('PTTL', KEYS[1])} end
end
for i = 1, what == 'take' and 1 or what == 'renew' and #KEYS or 0 do call('SET', KEYS[i], ARGV[i + 2], 'PX', ARGV[2]) end
return {'done'}
