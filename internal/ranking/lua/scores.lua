-- scores.lua reads members of a sorted set with their scores.
--
-- KEYS  1 the sorted set
-- ARGV  1 where a scan goes on, or '' for the members given   2 about how many   or 2… the
--       members, at most 7,000
--
-- Returns {where the scan goes on (0 at its end), {member, score or '', …}}.
--
-- A scan gives every member that is there from its begin to its end, some of them twice;
-- its order is none.

local call = redis.call

if ARGV[1] ~= '' then return call('ZSCAN', KEYS[1], ARGV[1], 'COUNT', ARGV[2]) end

local scores, out = call('ZMSCORE', KEYS[1], unpack(ARGV, 2)), {}
for i = 2, #ARGV do
  out[#out + 1] = ARGV[i]
  out[#out + 1] = scores[i - 1] or ''
end
return {'0', out}
