package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/standings/standings/client"
)

// weekly is the board that the examples read.
var weekly = client.Ref{Board: "global", Period: "weekly"}

// connect returns the examples' client. TestMain serves the API.
func connect() *client.Client {
	c, err := client.New(client.Config{BaseURL: baseURL, Token: os.Getenv("STANDINGS_TOKEN")})
	if err != nil {
		log.Fatal(err)
	}
	return c
}

func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	c, err := client.New(client.Config{BaseURL: baseURL, Token: os.Getenv("STANDINGS_TOKEN")})
	if err != nil {
		log.Fatal(err)
	}
	page, err := c.Standings(ctx, client.Ref{Board: "global", Period: "weekly"}, client.Query{Limit: 3})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s, %d members, %s\n", page.Window.Window, page.Window.Members, page.Status.State)
	for _, s := range page.Standings {
		fmt.Println(s.Rank, s.Member, s.Points)
	}
	// Output:
	// 2026-W48, 15 members, current
	// 1 Kalobi 4210
	// 2 u42 4210
	// 3 Nori 3999
}

func ExampleClient_Standings() {
	// A board that has fields; equal members share a rank.
	page, err := connect().Standings(context.Background(), client.Ref{Board: "arena", Period: "weekly"}, client.Query{Ranks: client.Competition})
	if err != nil {
		log.Fatal(err)
	}
	for _, s := range page.Standings {
		fmt.Print(s.Rank, " ", s.Member)
		for _, field := range page.Window.Fields {
			fmt.Print(" ", field, " ", s.Fields[field])
		}
		fmt.Println(" at", s.ReachedAt.Format(time.DateTime))
	}
	// Output:
	// 1 u42 stage 42 revives 3 at 2026-11-23 09:00:00
	// 2 Nori stage 42 revives 5 at 2026-11-23 05:00:00
	// 3 Bo stage 17 revives 0 at 2026-11-23 02:00:00
}

func ExampleClient_All() {
	// All reads page by page, until there are no more rows or the loop ends.
	for s, err := range connect().All(context.Background(), weekly, client.Query{Limit: 2, Ranks: client.Dense}) {
		if err != nil {
			log.Fatal(err)
		}
		if s.Points < 2750 {
			break
		}
		fmt.Println(s.Rank, s.Member, s.Points)
	}
	// Output:
	// 1 Kalobi 4210
	// 1 u42 4210
	// 2 Nori 3999
	// 3 Anka 3120
	// 4 Bo 2750
	// 4 Chidi 2750
	// 4 Dara 2750
}

func ExampleClient_Around() {
	around, err := connect().Around(context.Background(), weekly, "Emi", client.AroundQuery{N: 1})
	if err != nil {
		log.Fatal(err)
	}
	for _, s := range around.Standings {
		fmt.Println(s.Rank, s.Member, s.Points)
	}
	// Output:
	// 7 Dara 2750
	// 8 Emi 1980
	// 9 Finn 1500
}

func ExampleClient_Member() {
	m, err := connect().Member(context.Background(), weekly, "Emi", client.Ordinal)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("rank %d, better than %.2f %%, %d points behind %s\n", m.Standing.Rank, *m.Percentile, *m.Above.PointsToNextRank, m.Above.Member)
	m, err = connect().Member(context.Background(), weekly, "nobody", client.Ordinal)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(m.Standing.Rank == 0)
	// Output:
	// rank 8, better than 46.66 %, 771 points behind Dara
	// true
}

func ExampleClient_Lookup() {
	// A list of friends.
	found, err := connect().Lookup(context.Background(), weekly, client.Ordinal, "Emi", "Kofi", "u42", "somebody")
	if err != nil {
		log.Fatal(err)
	}
	for _, s := range found.Standings {
		fmt.Println(s.Place, s.Member, s.Points, "rank", s.Rank)
	}
	fmt.Println("not there:", found.Absent)
	// Output:
	// 1 u42 4210 rank 2
	// 2 Emi 1980 rank 8
	// 3 Kofi 75 rank 14
	// not there: [somebody]
}

func ExampleClient_Rank() {
	would, err := connect().Rank(context.Background(), weekly, 2000, 1)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("2000 points would be rank %d: %d members have more\n", would.Rank, would.MembersAbove)
	for _, s := range would.Standings {
		fmt.Println(s.Rank, s.Member, s.Points)
	}
	// Output:
	// 2000 points would be rank 8: 7 members have more
	// 7 Dara 2750
	// 8 Emi 1980
}

func ExampleClient_Best() {
	best, err := connect().Best(context.Background(), weekly, 20)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("the best 20 %% begin at %d points, rank %d\n", best.Standing.Points, best.Rank)
	// Output: the best 20 % begin at 3999 points, rank 3
}

func ExampleClient_MemberOfBoards() {
	m, err := connect().MemberOfBoards(context.Background(), "u42", client.BoardsQuery{})
	if err != nil {
		log.Fatal(err)
	}
	for _, one := range m.Standings {
		fmt.Println(one.Window.Board, one.Window.Window, "rank", one.Standing.Rank, "of", one.Window.Members)
	}
	// Output:
	// global 2026-W48 rank 2 of 15
	// arena 2026-W48 rank 1 of 3
}

func ExampleClient_Boards() {
	c := connect()
	for b, err := range c.Boards(context.Background()) {
		if err != nil {
			log.Fatal(err)
		}
		for _, p := range b.Periods {
			fmt.Println(b.Board, b.Score, p.Period, p.First, p.Last)
		}
	}
	windows, err := c.Windows(context.Background(), "global", "weekly", 10)
	if err != nil {
		log.Fatal(err)
	}
	for _, w := range windows.Windows {
		fmt.Println(w.Window, w.Start.Format(time.DateOnly), *w.Members)
	}
	// Output:
	// arena best weekly 2026-W48 2026-W48
	// global sum weekly 2026-W47 2026-W48
	// 2026-W48 2026-11-23 15
	// 2026-W47 2026-11-16 2
}

func ExampleClient_WaitingFor() {
	// After a producer has written this record, the client's reads wait until it counts.
	c := connect().WaitingFor(2*time.Second, client.Record{Topic: "points", Partition: 0, Offset: 48210})
	m, err := c.Member(context.Background(), weekly, "Emi", client.Ordinal)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(*m.Status.Reached, m.Standing.Points)
	// Output: true 1980
}

func ExampleClient_Watch() {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	for live, err := range connect().Watch(ctx, weekly, client.WatchQuery{Limit: 2}) {
		if err != nil {
			log.Println(err) // Watch continues, unless this was its last error
			continue
		}
		for _, s := range live.Standings {
			fmt.Println(s.Rank, s.Member, s.Points)
		}
		break // enough for this example: nothing changes
	}
	// Output:
	// 1 Kalobi 4210
	// 2 u42 4210
}

func ExampleProblem() {
	_, err := connect().Standings(context.Background(), client.Ref{Board: "global", Period: "fortnightly"}, client.Query{})
	var problem *client.Problem
	if errors.As(err, &problem) && problem.Word() == "not-found" {
		fmt.Println(problem.Status, problem.Parameter, problem.There)
	}
	// Output: 404 period [weekly]
}
