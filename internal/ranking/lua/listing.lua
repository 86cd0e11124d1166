-- listing.lua reads and writes entries of the listing. It is no script: others include it.
--
-- An entry is JSON with sorted keys: end, expires, final (the revision of a final window), rule (of its board, if
-- that isn't the default rule), sets, start; times are Unix ms. An empty sorted set has no key in Redis, so sets says
-- which of a window's two keys there have to be. Without it that is its sorted set, which is also called shown.
--   both     that and its hidden set        hidden   its hidden set alone: all of its members are banned
--   moving   at least one of the two: ban.lua moves standings between them, or died there
--   none     neither: the window was sealed while it had no member on this shard
--   lost     one was found lost, and later writes may hide that

local function readListing(text) -- nil for what is no entry
  local ok, l = pcall(cjson.decode, text)
  if ok and type(l) == 'table' and type(l.expires) == 'number' then return l end
end

local function listingText(l, sets) -- with sets it also changes them
  if sets then l.sets = sets ~= 'shown' and sets or nil end
  return string.format('{"end":%.0f,"expires":%.0f%s%s%s,"start":%.0f}', l['end'], l.expires,
    l.final and string.format(',"final":%d', l.final) or '', l.rule and ',"rule":"' .. l.rule .. '"' or '',
    l.sets and ',"sets":"' .. l.sets .. '"' or '', l.start)
end

local function present(shown, hidden) -- which of two keys there are; nil for neither
  local beside = redis.call('EXISTS', hidden) == 1
  if redis.call('EXISTS', shown) == 1 then return beside and 'both' or 'shown' end
  return beside and 'hidden' or nil
end

local function whole(sets, present) -- whether what is present is what sets requires
  if sets == 'none' then return not present end
  if sets == 'lost' or not present then return false end
  return (sets or 'shown') == present or present == 'both' or sets == 'moving'
end
