-- sets.lua knows which of a window's two sets there have to be. It is no script: others are built
-- with it, by a line that includes it.
--
-- An empty sorted set is none, so a key that isn't there is one that is lost, or one that nobody is
-- in. Which it is says the window's listing, by a word before its expiry; without one it is shown:
--
--   shown       its sorted set
--   +both       that and its hidden set
--   +hidden     its hidden set alone: everybody in it is banned
--   +moving     one of the two at least: ban.lua is between them, or has died there
--   +none       neither: the window was sealed while nobody on this shard was in it
--   +lost       one was found to be lost, and what has been written since may hide that
--
--   setsOf(listing) returns the word
--   present(shown, hidden) returns the word of two keys as they are, nil where neither is there
--   whole(sets, present) is whether what is there is what there has to be
--   withSets(listing, sets) returns the listing with another word

local function setsOf(listing) return string.match(listing, ' %+(%a+) %d+$') or 'shown' end

local function present(shown, hidden)
  local beside = redis.call('EXISTS', hidden) == 1
  if redis.call('EXISTS', shown) == 1 then return beside and 'both' or 'shown' end
  return beside and 'hidden' or nil
end

local function whole(sets, present)
  if sets == 'none' then return not present end
  if sets == 'lost' or not present then return false end
  return sets == present or present == 'both' or sets == 'moving'
end

local function withSets(listing, sets)
  local rest, expires = string.match(listing, '^(.* )(%d+)$')
  if not rest then return listing end -- it is none: whoever applies to it says what is wrong
  rest = string.gsub(rest, '%+%a+ $', '')
  return rest .. (sets == 'shown' and '' or '+' .. sets .. ' ') .. expires
end
