-- recovery.lua notes what would bring the standings back if Redis were lost now, as somebody has
-- just found it.
--
-- KEYS  1 the note
-- ARGV  1 what would: a word
--
-- Returns {since when everybody who looked has found that, in ms}.
--
-- The key holds the word, since when, and when somebody looked last, in ms. A clock that went back
-- leaves no time to come. What isn't a note is written anew: nothing depends on it but what people
-- are told.

local call, tonumber = redis.call, tonumber

local time = call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)

local by, since = string.match(call('GET', KEYS[1]) or '', '^(%a+) (%d+) %d+$')
since = by == ARGV[1] and math.min(tonumber(since), now) or now
call('SET', KEYS[1], string.format('%s %.0f %.0f', ARGV[1], since, now))
return {string.format('%.0f', since)}
