package memory

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestWhatIsGrantedNeverExceedsTheBudget(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := New(1000, 250)
		accounts := make([]*Account, 5)
		held := make([]int64, 5)
		for i := range accounts {
			accounts[i] = b.Account()
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			i := rapid.IntRange(0, 4).Draw(t, "account")
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				n := rapid.Int64Range(1, 400).Draw(t, "take")
				if accounts[i].Take(n) {
					held[i] += n
				}
			case 1:
				if held[i] > 0 {
					n := rapid.Int64Range(1, held[i]).Draw(t, "release")
					accounts[i].Release(n)
					held[i] -= n
				}
			case 2:
				accounts[i].EndTurn()
			case 3:
				if held[i] == 0 && b.Used()-accounts[i].credit <= 750 {
					if err := accounts[i].Wait(t.Context(), nil); err != nil {
						t.Fatalf("a waiter with room for its reserve: %v", err)
					}
				}
			}
			var sum int64
			for j, a := range accounts {
				if a.Held() != held[j] {
					t.Fatalf("account %d holds %d, should be %d", j, a.Held(), held[j])
				}
				sum += a.held + a.credit
			}
			if sum != b.Used() || sum > 1000 {
				t.Fatalf("accounts add up to %d, used is %d of 1000", sum, b.Used())
			}
		}
	})
}

func TestAWaiterIsServedBeforeAnyoneElseGetsMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(100, 60)
		greedy, patient := b.Account(), b.Account()
		if !greedy.Take(80) {
			t.Fatal("80 of 100 bytes were refused")
		}
		served := make(chan error)
		go func() { served <- patient.Wait(t.Context(), nil) }()
		synctest.Wait()
		if greedy.Take(1) {
			t.Fatal("more was granted while somebody waits")
		}
		greedy.Release(39)
		synctest.Wait()
		select {
		case err := <-served:
			t.Fatal("served with 41 of 100 bytes in use and a reserve of 60:", err)
		default:
		}
		greedy.Release(1)
		if err := <-served; err != nil {
			t.Fatal(err)
		}
		if !patient.Take(60) || patient.Take(1) {
			t.Fatal("a reserve is 60 bytes, no less and no more")
		}
	})
}

func TestAReserveComesBackToItsOwnerUntilItsTurnEnds(t *testing.T) {
	b := New(100, 100)
	a, other := b.Account(), b.Account()
	if err := a.Wait(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if !a.Take(100) {
			t.Fatal("the reserve was given away")
		}
		a.Release(100)
		if other.Take(1) {
			t.Fatal("another got a part of a reserve in use")
		}
	}
	a.Take(30)
	a.EndTurn()
	if !other.Take(70) || other.Take(1) {
		t.Fatal("what was left of the reserve is free once its turn has ended")
	}
	a.Release(30)
	if got := b.Used(); got != 70 {
		t.Fatalf("used is %d, should be 70", got)
	}
}

func TestACancelledWaiterLetsTheNextOneThrough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(100, 60)
		holder, first, second := b.Account(), b.Account(), b.Account()
		holder.Take(50)
		ctx, cancel := context.WithCancel(t.Context())
		gone, served := make(chan error), make(chan error)
		go func() { gone <- first.Wait(ctx, nil) }()
		synctest.Wait()
		go func() { served <- second.Wait(t.Context(), nil) }()
		synctest.Wait()
		cancel()
		if err := <-gone; err == nil {
			t.Fatal("a cancelled wait reported success")
		}
		holder.Release(50)
		if err := <-served; err != nil {
			t.Fatal(err)
		}
		if got := b.Used(); got != 60 {
			t.Fatalf("used is %d, should be the one reserve of 60", got)
		}
	})
}

func TestAWaiterSeesHowLongNobodyWasServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(100, 60)
		holder, first, second := b.Account(), b.Account(), b.Account()
		holder.Take(100)
		var seen []Queue
		served := make(chan error, 2)
		go func() { served <- first.Wait(t.Context(), nil) }()
		synctest.Wait()
		go func() { served <- second.Wait(t.Context(), func(q Queue) { seen = append(seen, q) }) }()
		time.Sleep(12 * time.Second)
		holder.Release(60) // the first is served, and keeps its memory
		if err := <-served; err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		want := []Queue{
			{Waited: 5 * time.Second, Still: 5 * time.Second, Waiting: 2, Used: 100},
			{Waited: 10 * time.Second, Still: 10 * time.Second, Waiting: 2, Used: 100},
			{Waited: 15 * time.Second, Still: 3 * time.Second, Waiting: 1, Used: 100},
		}
		if !slices.Equal(seen, want) {
			t.Fatalf("%+v, want %+v", seen, want)
		}
		first.EndTurn()
		if err := <-served; err != nil {
			t.Fatal(err)
		}
	})
}
