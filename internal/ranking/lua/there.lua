-- there.lua checks whether windows have the keys that they must have.
--
-- KEYS  1 windows   2… of each its sorted set, and its hidden set
-- ARGV  1… their names in the listing
--
-- Returns {word, …}:
--   whole   the window is listed, and has all keys that it must have (listing.lua)
--   lost    the window is listed, and a key is missing
--   over    as lost, but the window's retention is over
--   stray   the window isn't listed, and has a key
--   none    the window isn't listed, and has no key

-- include listing.lua

local call, words = redis.call, {}
local time = call('TIME')
local now = tonumber(time[1]) * 1000 + tonumber(time[2]) / 1000

for i, name in ipairs(ARGV) do
  local listing, is = call('HGET', KEYS[1], name), present(KEYS[2 * i], KEYS[2 * i + 1])
  local l = listing and readListing(listing) or {}
  if not listing then
    words[i] = is and 'stray' or 'none'
  elseif whole(l.sets, is) then
    words[i] = 'whole'
  else
    words[i] = l.expires and now < l.expires and 'lost' or 'over'
  end
end
return words
