-- listing.lua reads and writes entries of the listing. Other scripts include it; it isn't a script by itself.
--
-- An entry is JSON with sorted keys: end, expires, final (the revision of a final window), rule (of its board, if it
-- isn't the default rule), sets, start. Times are Unix ms. Redis has no key for an empty sorted set, so sets tells
-- which of a window's two keys must exist. Without sets, the sorted set must exist; it is also called shown.
--   both     the sorted set and the hidden set
--   hidden   the hidden set only: all of the window's members are banned
--   moving   at least one of the two: ban.lua is moving standings between them, or died while doing so
--   none     neither: the window was sealed without a member on this shard
--   lost     a script found that Redis has lost one of the two; later writes may hide that

local function readListing(text) -- nil if the text isn't a valid entry
  local ok, l = pcall(cjson.decode, text)
  if ok and type(l) == 'table' and type(l.expires) == 'number' then return l end
end

local function listingText(l, sets) -- sets, if given, becomes the entry's sets
  if sets then l.sets = sets ~= 'shown' and sets or nil end
  return string.format('{"end":%.0f,"expires":%.0f%s%s%s,"start":%.0f}', l['end'], l.expires,
    l.final and string.format(',"final":%d', l.final) or '', l.rule and ',"rule":"' .. l.rule .. '"' or '',
    l.sets and ',"sets":"' .. l.sets .. '"' or '', l.start)
end

local function present(shown, hidden) -- which of the two keys exist; nil for neither
  local beside = redis.call('EXISTS', hidden) == 1
  if redis.call('EXISTS', shown) == 1 then return beside and 'both' or 'shown' end
  return beside and 'hidden' or nil
end

local function whole(sets, present) -- whether the sets that exist satisfy the entry's sets
  if sets == 'none' then return not present end
  if sets == 'lost' or not present then return false end
  return (sets or 'shown') == present or present == 'both' or sets == 'moving'
end
