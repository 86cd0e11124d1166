// Package model is the ledger's protocol, small enough to look at everything that can
// happen. It shares no code with the consumer: what it proves is the idea, which the
// consumer's own tests then hold the code to.
//
// One partition with a few events of a few members. Two consumers that may both
// believe that they own it, at any time: that covers a zombie, a takeover, a pause.
// Their batches and pieces end anywhere. A call to Redis is carried out at once, late,
// or never, and its answer may be lost. Consumers crash; Redis goes back to any earlier
// state, is wiped, or dies in the middle of a script; a rebuild comes as close to the
// live ledger as it may, under a hold whose lease can lapse at any moment, and swaps, or
// dies in the middle of that. Over a torn ledger it names the window that it keeps, whose
// scores promise nothing from then on.
//
// What holds in every state: the scores are what the ledger denotes; a bad event that
// the ledger has passed is among the dead letters. And from every state the end, where
// all is counted, can be reached.
//
// A variant breaks one rule of the protocol. Each has to be caught: a rule whose loss
// nobody notices is no rule, or this is no model of it.
package model
