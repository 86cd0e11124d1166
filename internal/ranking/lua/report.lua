-- report.lua writes the lines of workers with the time of this moment, or removes lines.
--
-- KEYS  1 workers
-- ARGV  for each line: the field (<topic>/<partition>), the line (a JSON object with a
--       field at least) or '' to remove what is stored, and for that the stored line:
--       another one stays
--
-- Returns {now ms, for each line the one that was stored before, or ''}.
--
-- Readers age lines by the clock of this server: by the clocks of two machines that differ,
-- a live worker would look gone, or a dead one alive.

local call = redis.call
local time = call('TIME')
local reply = {string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))}
for i = 1, #ARGV, 3 do
  local field, line = ARGV[i], ARGV[i + 1]
  local was = call('HGET', KEYS[1], field) or ''
  if line ~= '' then
    call('HSET', KEYS[1], field, '{"written":' .. reply[1] .. ',' .. string.sub(line, 2))
  elseif was == ARGV[i + 2] then
    call('HDEL', KEYS[1], field)
  end
  reply[#reply + 1] = was
end
return reply
