-- state.lua reads all that a start and a status need, as of one moment.
--
-- KEYS  1 ledger   2 schema   3 origin   4 windows   5 workers   6 hold   7 rules
--
-- Returns {schema or '', now ms, ledger fields, origin fields, number of
-- windows, workers fields, 1 if held, fields of the rules}; fields are name, value, name, value, …

local call = redis.call
local time = call('TIME')
return {
  call('GET', KEYS[2]) or '',
  string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000)),
  call('HGETALL', KEYS[1]),
  call('HGETALL', KEYS[3]),
  call('HLEN', KEYS[4]),
  call('HGETALL', KEYS[5]),
  call('EXISTS', KEYS[6]),
  call('HGETALL', KEYS[7]),
}
