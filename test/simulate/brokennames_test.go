package simulate

// Broken variants of storing members' names.

var brokenNames = []broken{
	{
		name: "last name that came", what: "a name depends on the order in which events come",
		script: []patch{{"names.lua", "if name ~= '' and (time > is[1] or time == is[1] and greater(name, is[3])) then", "if name ~= '' then"}},
		wrong:  "what members are called differs from the oracle's",
		seed:   repeatsFrom + 59,
	},
	{
		name: "last name in a batch", what: "a name depends on the order of events in a batch",
		source: []patch{{
			foldDir + "names.go", "	case n.len > 0 && (e.Time < n.time ||", "	case n.len > 0 && !broken(\"last name in a batch\") && (e.Time < n.time ||",
		}},
		wrong: "what members are called differs from the oracle's",
		seed:  repeatsFrom + 62,
	},
	{
		name: "name without its time", what: "an older event takes the name back after a newer one that said the same",
		script: []patch{{"names.lua", "if not is then return", "if is and is[3] == name then return {is[1], math.max(is[2], at), name} end\n  if not is then return"}},
		wrong:  "what members are called differs from the oracle's",
		seed:   repeatsFrom + 20,
	},
}
