-- both.lua reads what is beside the live scores, and the same of a shadow, as of one moment.
-- Of the windows it only says how many are listed: they may be ten thousands.
--
-- KEYS  1 ledger   2 schema   3 origin   4 windows   5…8 the same of the shadow
--
-- Returns {now ms, live, shadow}, each of the two {schema or '', ledger fields, origin
-- fields, number of windows}; fields are name, value, name, value, …

local call = redis.call

local function side(i)
  return {
    call('GET', KEYS[i + 1]) or '',
    call('HGETALL', KEYS[i]), call('HGETALL', KEYS[i + 2]),
    call('HLEN', KEYS[i + 3]),
  }
end

local time = call('TIME')
return {string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000)), side(1), side(5)}
