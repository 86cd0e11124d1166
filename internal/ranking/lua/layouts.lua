-- layouts.lua adds points to scores, and merges tuples into scores by a board's rule, for both layouts of package
-- codec. Other scripts include it; it isn't a script by itself.
--
-- scores(w, old, points, times, from, to, ids, refuse) returns arguments of ZADD, {score, id, …}, or nil and the
-- member whose score the layout doesn't write.
--   w        the window: first and last ms, and of its layout wide, k, tick ms, max points; with a board's rule, also
--            rule and merge, which is merger(rule)
--   old      the current scores of the members from…to, false for none
--   points   the points to add, by member      times   the times ms, by member      ids   the index before the first id
--   refuse   called for a member who would leave the range: (reason, id), with a rule also field and digit of merge
--
-- Numbers are integers below 2^53, so they are exact. x % 1 is the distance to the next lower integer, also below
-- zero, and is much faster than math.floor. A score's text is parsed by adding 0: miniredis runs gopher-lua, whose
-- tonumber can't parse integers of more than 64 bits, nor 1e+22, and whose math.huge is the largest double.

-- merger(rule) returns the function merge(digits, i, packed, had, ticks). merge returns the new packed value and
-- ticks of member i, or nil if the rule doesn't write packed. If fields leave their range, it also returns the first
-- one's number from 1 and the digit that it would have, less the bias. It unpacks the tuple, since a packed sum
-- doesn't tell the field.
--   digits    by field, by member: with sum, the digit's change, else the digit
--   rule      score: sum, best or last; by field weight, the value of 1 in packed; top, the greatest digit (the least
--             is 0); and zero, the digit that a sum starts from; bias, the difference between digits and values

local frexp, ldexp = math.frexp, math.ldexp
local P52, P53, LEAST, INFINITE = 2 ^ 52, 2 ^ 53, 2 ^ -1022, 1 / 0

local function merger(rule)
  local weight, top, zero, bias, fields = rule.weight, rule.top, rule.zero, rule.bias, #rule.top
  local sum, best = rule.score == 'sum', rule.score == 'best'
  return function(digits, i, packed, had, ticks)
    local rest, made, beyond, would = packed, 0, nil, nil
    for f = 1, fields do
      local digit = digits[f][i]
      local before = zero[f]
      if packed then
        local low = rest % weight[f]
        before, rest = (rest - low) / weight[f], low
        if before > top[f] then return nil end
      end
      digit = digit + (sum and before or bias)
      if (digit < 0 or digit > top[f]) and not beyond then beyond, would = f, digit - bias end
      made = made + digit * weight[f]
    end
    if packed then
      if sum then
        if had < ticks then ticks = had end
      elseif best then
        if packed > made or packed == made and had > ticks then made, ticks = packed, had end
      elseif had < ticks or had == ticks and packed > made then
        made, ticks = packed, had
      end
    end
    return made, ticks, beyond, would
  end
end

local function scores(w, old, points, times, from, to, ids, refuse)
  local first, last, tick, wide, merge = w.first, w.last, w.tick, w.wide, w.merge
  local scale, high, bias = 2 ^ w.k, 2 ^ (52 - w.k), merge and w.rule.bias or w.max
  local most = merge and INFINITE or 2 * bias
  local out, n = {}, 1
  for i = from, to do
    local at, id, score = times[i], ARGV[ids + i], old[n]
    if at < first then at = first end
    local ticks, packed, had = (last - at) / tick, nil, nil
    ticks = ticks - ticks % 1
    if score then -- packed: the points plus a bias, so never below 0
      score = score + 0
      if wide then -- points and ticks are the bits of a double
        if score < LEAST or score == INFINITE then return nil, id end
        local fraction, exponent = frexp(score)
        local low = fraction * P53 - P52 -- 52 bits: the low bits of packed, then k bits of ticks
        had = low % scale
        packed = (exponent + 1021) * high + (low - had) / scale
      else -- points + ticks / 2^k
        if score * scale % 1 ~= 0 then return nil, id end
        local part = score % 1
        had, packed = part * scale, score - part + bias
      end
      if packed < 0 or packed > most then return nil, id end
    end
    if merge then
      local field, digit
      packed, ticks, field, digit = merge(points, i, packed, had, ticks)
      if not packed then return nil, id end
      if field then refuse('overflow', id, field, digit) end
    else
      packed = points[i] + (packed or bias)
      if had and had < ticks then ticks = had end
      if packed < 0 or packed > most then refuse('overflow', id) end
    end
    if wide then
      local low = packed % high
      score = ldexp(P52 + low * scale + ticks, (packed - low) / high - 1074)
    else
      score = packed - bias + ticks / scale
    end
    out[2 * n - 1], out[2 * n] = score, id
    n = n + 1
  end
  return out
end
