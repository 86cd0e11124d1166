-- report.lua writes workers' status lines with Redis's time, or removes lines.
--
-- KEYS  1 workers
-- ARGV  for each line: the field (<topic>/<partition>), the line (a JSON object with at least one field), or '' to
--       remove the stored line, and in that case the stored line: if another one is stored, it stays
--
-- Returns {now ms, for each line the line that was stored before, or ''}.
--
-- Readers compute the age of a line by this server's clock. By the differing clocks of two machines, a live worker
-- could look dead, or a dead one alive.

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
