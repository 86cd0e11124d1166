package model

import "fmt"

// space defines a search: the first state, the states that can follow a state, and the invariants.
type space[S comparable] struct {
	begin S
	// next emits every state that can follow s. If telling is set, each comes with a description of the step.
	next func(s S, telling bool, emit func(S, string))
	// wrong describes the violation in a state, or returns "".
	wrong func(S) string
	// done reports whether a state is an end. An end must be reachable from every state.
	done func(S) bool
	// actor, if set, returns the process that takes the step being emitted, from 1 on, or 0 if the step
	// is a fault. Then the search also requires two things: from every state, an end is reachable
	// without faults; and every run without faults reaches an end, provided that a process that can
	// always take a step takes one (weak fairness). A step that changes nothing does not count.
	actor func() int8
}

// narrator formats descriptions of steps. A search leaves telling off, as it visits millions of states.
type narrator struct{ telling bool }

func (n *narrator) say(format string, args ...any) string {
	if !n.telling {
		return ""
	}
	return fmt.Sprintf(format, args...)
}

// found is the result of a search that found no violation.
type found struct{ states, transitions, ends int }

func (f found) String() string {
	return fmt.Sprintf("%d states, %d transitions, %d ends", f.states, f.transitions, f.ends)
}

// violation is a forbidden state, with one of the shortest paths to it.
type violation struct {
	what  string
	story []string
	after int // number of states seen until then
}

// search visits every reachable state, breadth first, so that the story of a violation is one of the
// shortest. It compares whole states, so no hash collision can hide a state.
func search[S comparable](sp space[S]) (found, *violation) {
	states, parents := []S{sp.begin}, []int32{0}
	index := map[S]int32{sp.begin: 0}
	var from, to []int32
	var by []int8
	transitions := 0
	story := func(i int32) []string {
		var ways []int32
		for ; i != 0; i = parents[i] {
			ways = append(ways, i)
		}
		steps := make([]string, 0, len(ways))
		for k := len(ways) - 1; k >= 0; k-- {
			steps = append(steps, step(sp, states[parents[ways[k]]], states[ways[k]]))
		}
		return steps
	}
	for i := 0; i < len(states); i++ {
		if what := sp.wrong(states[i]); what != "" {
			return found{}, &violation{what, story(int32(i)), len(states)}
		}
		sp.next(states[i], false, func(s S, _ string) {
			j, known := index[s]
			if !known {
				j = int32(len(states))
				index[s] = j
				states, parents = append(states, s), append(parents, int32(i))
			}
			transitions++
			if sp.actor == nil {
				from, to = append(from, int32(i)), append(to, j)
			} else if a := sp.actor(); a != 0 && int32(i) != j {
				from, to, by = append(from, int32(i)), append(to, j), append(by, a)
			}
		})
	}
	f := found{states: len(states), transitions: transitions}
	index = nil
	lost, ends := dead(states, from, to, sp.done)
	if lost >= 0 {
		return found{}, &violation{"nothing that follows leads to the end", story(lost), len(states)}
	}
	if sp.actor != nil {
		if i := endless(states, from, to, by, sp.done); i >= 0 {
			return found{}, &violation{"from here on a fair run never reaches the end", story(i), len(states)}
		}
	}
	f.ends = ends
	return f, nil
}

// step describes the step between two states.
func step[S comparable](sp space[S], before, after S) (what string) {
	sp.next(before, true, func(s S, w string) {
		if s == after && what == "" {
			what = w
		}
	})
	return what
}

// dead returns the first state from which no end can be reached, -1 if there is no such state, and the
// number of ends. It follows the transitions backwards from the ends.
func dead[S comparable](states []S, from, to []int32, done func(S) bool) (first int32, ends int) {
	begin := make([]int32, len(states)+1)
	for _, j := range to {
		begin[j+1]++
	}
	for i := range states {
		begin[i+1] += begin[i]
	}
	before, fill := make([]int32, len(to)), append([]int32(nil), begin...)
	for k, j := range to {
		before[fill[j]] = from[k]
		fill[j]++
	}
	reaches := make([]bool, len(states))
	var todo []int32
	for i, s := range states {
		if done(s) {
			reaches[i] = true
			todo = append(todo, int32(i))
		}
	}
	ends = len(todo)
	for len(todo) > 0 {
		j := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, i := range before[begin[j]:begin[j+1]] {
			if !reaches[i] {
				reaches[i] = true
				todo = append(todo, i)
			}
		}
	}
	for i, ok := range reaches {
		if !ok {
			return int32(i), ends
		}
	}
	return -1, ends
}
