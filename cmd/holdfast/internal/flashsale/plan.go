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
	switchWay                 // starts to pay, goes back, pays in another way if there is one
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
	{normal, 46}, {switchWay, 6}, {doubleClick, 12}, {retry, 8}, {decline, 6}, {holdOnly, 6},
	{startOnly, 5}, {payLate, 5}, {cancelEarly, 3}, {cancelPaying, 3},
}

// willing buyers pay if they are let, and come back as long as there is a piece.
func (h habit) willing() bool { return h <= decline }

// doorsFor is the time within which all buyers have arrived.
const doorsFor = 2 * time.Second

// Way is a way to pay.
type Way struct {
	Gateway, Method string
	Payer           string // who pays, where the method must know; else empty
	Phone           string // address of the phone that scans the method's codes; empty when a browser opens its pages
}

// Buyer is one of the crowd, and is made from the seed alone.
type Buyer struct {
	ID     string
	SKU    string
	way    Way
	other  Way // when the first does not please; the same when there is no other
	habit  habit
	arrive time.Duration // after the doors open
	rng    *rand.Rand
}

// Willing says whether the buyer pays as long as there is a piece to be had.
func (b Buyer) Willing() bool { return b.habit.willing() }

// Crowd makes n buyers, each of whom wants one piece of one of the SKUs.
func Crowd(seed uint64, n int, skus []string, ways []Way) []Buyer {
	luck := rand.New(rand.NewPCG(seed, 0))
	crowd := make([]Buyer, n)
	for i := range crowd {
		crowd[i] = Buyer{
			ID: fmt.Sprintf("buyer-%05d", i+1), SKU: skus[luck.IntN(len(skus))], habit: draw(luck.IntN(100)),
			arrive: time.Duration(luck.Int64N(int64(doorsFor))), rng: rand.New(rand.NewPCG(seed, uint64(i)+1)),
		}
		first := luck.IntN(len(ways))
		crowd[i].way, crowd[i].other = ways[first], ways[(first+1)%len(ways)]
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
