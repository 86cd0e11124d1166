-- state.lua reads keys as of one moment.
--
-- KEYS  1… the keys
-- ARGV  1… what to read of each: text, hash (its fields), size (the number of its fields) or there (whether it exists)
--
-- Returns {now ms, value, …}: a text or '', {name, value, …}, a number, or 1 or 0.

local call = redis.call
local time = call('TIME')
local all = {string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))}
for i, key in ipairs(KEYS) do
  if ARGV[i] == 'text' then
    all[i + 1] = call('GET', key) or ''
  elseif ARGV[i] == 'hash' then
    all[i + 1] = call('HGETALL', key)
  elseif ARGV[i] == 'size' then
    all[i + 1] = call('HLEN', key)
  else
    all[i + 1] = call('EXISTS', key)
  end
end
return all
