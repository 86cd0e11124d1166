-- retire.lua removes entries of a hash that are over: listings of windows, and names of members.
--
-- KEYS  1 the hash   2 another hash whose fields of the same names are removed first, or the first again
--       3… keys of the entries
-- ARGV  1 number of keys of an entry; then for each entry its field, its value as it was read, and until when it was in
--         use, Unix ms
--
-- Returns {number of entries removed}.
--
-- An entry is removed two days after that time, if its value is unchanged. The keys of a window expire one day after
-- it. If one still exists (its expiry was removed by hand), the window stays listed: a key without a listing halts
-- workers.

local call, tonumber = redis.call, tonumber
local TWO_DAYS = 2 * 86400000

local now, removed, keys = tonumber(call('TIME')[1]) * 1000, 0, tonumber(ARGV[1])
for i = 2, #ARGV, 3 do
  local field, first = ARGV[i], 3 + (i - 2) / 3 * keys
  if now >= tonumber(ARGV[i + 2]) + TWO_DAYS
      and call('HGET', KEYS[1], field) == ARGV[i + 1]
      and (keys == 0 or call('EXISTS', unpack(KEYS, first, first + keys - 1)) == 0) then
    if KEYS[2] ~= KEYS[1] then call('HDEL', KEYS[2], field) end
    removed = removed + call('HDEL', KEYS[1], field)
  end
end
return {removed}
