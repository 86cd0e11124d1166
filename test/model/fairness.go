package model

// endless returns a state of a cycle without an end in which a fair run can stay forever, or -1. That
// is a cycle in which every process takes a step, or is unable to take one in some state. If a cycle
// meets these conditions, so does every larger cycle, so checking the strongly connected components is
// exact. from must be in ascending order.
func endless[S comparable](states []S, from, to []int32, by []int8, done func(S) bool) int32 {
	begin := make([]int32, len(states)+1)
	for _, i := range from {
		begin[i+1]++
	}
	for i := range states {
		begin[i+1] += begin[i]
	}
	component := components(states, begin, to, done)
	// One bit per process: it takes a step within the component, or cannot take any step in one of its states.
	fair, cycles := make([]uint8, len(states)), make([]bool, len(states))
	var all uint8
	for _, a := range by {
		all |= 1 << a
	}
	for i := range states {
		c := component[i]
		if c < 0 {
			continue
		}
		enabled := uint8(0)
		for k := begin[i]; k < begin[i+1]; k++ {
			enabled |= 1 << by[k]
			if component[to[k]] == c {
				fair[c], cycles[c] = fair[c]|1<<by[k], true
			}
		}
		fair[c] |= all &^ enabled
	}
	for i := range states {
		if c := component[i]; c >= 0 && cycles[c] && fair[c] == all {
			return int32(i)
		}
	}
	return -1
}

// components numbers the strongly connected components of the states that are not ends, by Tarjan's
// algorithm. An end has -1.
func components[S comparable](states []S, begin, to []int32, done func(S) bool) []int32 {
	component, low, order := make([]int32, len(states)), make([]int32, len(states)), int32(0)
	for i := range states {
		component[i] = -1
	}
	var stack []int32
	count := int32(0)
	var visit func(i int32)
	visit = func(i int32) {
		order++
		mine := order
		low[i] = mine
		stack = append(stack, i)
		for _, j := range to[begin[i]:begin[i+1]] {
			if low[j] == 0 && !done(states[j]) {
				visit(j)
			}
			if low[j] != 0 && component[j] < 0 {
				low[i] = min(low[i], low[j])
			}
		}
		if low[i] < mine {
			return
		}
		for {
			j := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			component[j] = count
			if j == i {
				break
			}
		}
		count++
	}
	for i := range states {
		if low[i] == 0 && !done(states[i]) {
			visit(int32(i))
		}
	}
	return component
}
