-- lock.lua takes a lock that expires, or renews or releases locks.
--
-- KEYS  1… the locks; to take the first one, the caller must already hold the others
-- ARGV  1 take, renew or release   2 ms that they live from now on   3… content of each while the caller holds it
--
-- Returns one of
--   {done}         also if the caller already held the lock to be taken
--   {lost, key}    the caller doesn't hold this lock: none was taken or renewed; to release, the others were released
--   {busy, content of the first lock, ms until it expires}

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
