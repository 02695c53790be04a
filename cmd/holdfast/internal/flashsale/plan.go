package flashsale

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// habit is how a buyer behaves.
type habit int

const (
	normal       habit = iota // orders, starts to pay, pays
	doubleClick               // the same, with the button pressed several times at once
	retry                     // the same, but gives up waiting at first, and asks again
	decline                   // the first card is declined, the second one is not
	holdOnly                  // orders and is never seen again
	startOnly                 // starts to pay and is never seen again
	payLate                   // pays when the time is over
	cancelEarly               // orders and cancels
	cancelPaying              // starts to pay and cancels
)

// shares of the crowd, in percent.
var shares = []struct {
	habit   habit
	percent int
}{
	{normal, 52}, {doubleClick, 12}, {retry, 8}, {decline, 6}, {holdOnly, 6},
	{startOnly, 5}, {payLate, 5}, {cancelEarly, 3}, {cancelPaying, 3},
}

// willing buyers pay if they are let, and come back as long as there is a piece.
func (h habit) willing() bool { return h <= decline }

// doorsFor is the time within which all buyers have arrived.
const doorsFor = 2 * time.Second

// Buyer is one of the crowd, and is made from the seed alone.
type Buyer struct {
	ID     string
	SKU    string
	habit  habit
	arrive time.Duration // after the doors open
	rng    *rand.Rand
}

// Willing says whether the buyer pays as long as there is a piece to be had.
func (b Buyer) Willing() bool { return b.habit.willing() }

// Crowd makes n buyers, each of whom wants one piece of one of the SKUs.
func Crowd(seed uint64, n int, skus []string) []Buyer {
	luck := rand.New(rand.NewPCG(seed, 0))
	crowd := make([]Buyer, n)
	for i := range crowd {
		crowd[i] = Buyer{
			ID: fmt.Sprintf("buyer-%05d", i+1), SKU: skus[luck.IntN(len(skus))], habit: draw(luck.IntN(100)),
			arrive: time.Duration(luck.Int64N(int64(doorsFor))), rng: rand.New(rand.NewPCG(seed, uint64(i)+1)),
		}
	}
	return crowd
}

func draw(percent int) habit {
	for _, s := range shares {
		if percent < s.percent {
			return s.habit
		}
		percent -= s.percent
	}
	return normal
}
