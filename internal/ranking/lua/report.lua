-- report.lua writes a worker's line, with the time of this moment.
--
-- KEYS  1 workers
-- ARGV  1 field: <topic>/<partition>   2 the line, a JSON object with a field at least
--
-- Returns {the line that it replaces, or ''}.
--
-- Lines are aged by whoever reads them, by the clock of this server: by their writers' own
-- clocks a worker would look gone, or a dead one alive, where two machines' differ.

local call = redis.call
local time = call('TIME')
local was = call('HGET', KEYS[1], ARGV[1]) or ''
local now = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
call('HSET', KEYS[1], ARGV[1], '{"written":' .. now .. ',' .. string.sub(ARGV[2], 2))
return {was}
