-- tuples.lua merges tuples into scores, by a board's rule and by each of the two layouts of
-- package codec. It is no script: others are built with it, by a line that includes it.
--
-- tuples is a function (w, old, digits, times, from, to, ids, refuse):
--   w        the window: first and last ms, and of its layout k, tick ms, wide or not, and
--            rule, a table:
--              score    sum, best or last
--              weight   by field, what one more of its digit adds to a packed tuple
--              top      by field, its greatest digit; the least is 0
--              zero     by field, the digit that a sum begins with
--              bias     what lies between a digit and its value where fields go below 0
--   old      the scores of the members from…to as Redis has them, false for none
--   digits   by field, by member: of a sum how much the digit changes, else what it is
--   times    by member, when, ms
--   ids      the argument before the first member's id
--   refuse   is called for who would leave the range of a field: (reason, id, the first such
--            field's number from 1, what its digit would be, less the bias)
-- It returns what ZADD takes: {score, id, …}, or nil and whose score none of the layout's is.
--
-- A packed sum can't tell which of its fields left its range, so a tuple is taken apart,
-- changed and checked field by field, and packed again.
--
-- Numbers are whole and below 2^53, so exact: a % b of such is, and so is (a - a % b) / b.
-- A score is read as layouts.lua reads it.

local frexp, ldexp = math.frexp, math.ldexp
local P52, P53, INFINITE = 2 ^ 52, 2 ^ 53, 1 / 0

-- What a score is made of: packed, biased so that it is never below 0, and ticks. Or nil.
local function takenApart(w, bias, score)
  score = score + 0
  local scale = 2 ^ w.k
  if w.wide then
    if score < 2 ^ -1022 or score == INFINITE then return nil end
    local fraction, exponent = frexp(score)
    local high = 2 ^ (52 - w.k)
    local low = fraction * P53 - P52 -- of 52 bits: of packed, then k of ticks
    local ticks = low % scale
    return (exponent + 1021) * high + (low - ticks) / scale, ticks
  end
  if score * scale % 1 ~= 0 then return nil end
  local part = score % 1
  return score - part + bias, part * scale
end

local function putTogether(w, bias, packed, ticks)
  if not w.wide then return packed - bias + ticks / 2 ^ w.k end
  local high = 2 ^ (52 - w.k)
  local low = packed % high
  return ldexp(P52 + low * 2 ^ w.k + ticks, (packed - low) / high - 1074)
end

local function tuples(w, old, digits, times, from, to, ids, refuse)
  local rule = w.rule
  local weight, top, zero, bias, fields = rule.weight, rule.top, rule.zero, rule.bias, #rule.top
  local sum, best = rule.score == 'sum', rule.score == 'best'
  local out, n = {}, 1
  for i = from, to do
    local at, id = times[i], ARGV[ids + i]
    if at < w.first then at = w.first end
    local ticks = (w.last - at) / w.tick
    ticks = ticks - ticks % 1
    local packed, had
    if old[n] then
      packed, had = takenApart(w, bias, old[n])
      if not packed or packed < 0 then return nil, id end
    end
    local rest, made, beyond, would = packed, 0, nil, nil
    for f = 1, fields do
      local digit = digits[f][i]
      local before = zero[f]
      if packed then
        local low = rest % weight[f]
        before, rest = (rest - low) / weight[f], low
        if before > top[f] then return nil, id end
      end
      digit = digit + (sum and before or bias)
      if (digit < 0 or digit > top[f]) and not beyond then beyond, would = f, digit - bias end
      made = made + digit * weight[f]
    end
    if beyond then refuse('overflow', id, beyond, would) end
    if packed then
      if sum then
        if had < ticks then ticks = had end
      elseif best then
        if packed > made or packed == made and had > ticks then made, ticks = packed, had end
      elseif had < ticks or had == ticks and packed > made then
        made, ticks = packed, had
      end
    end
    out[2 * n - 1] = putTogether(w, bias, made, ticks)
    out[2 * n] = id
    n = n + 1
  end
  return out
end
