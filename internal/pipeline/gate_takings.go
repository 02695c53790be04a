package pipeline

import (
	"slices"

	"github.com/holdfast-pay/holdfast/ledger"
)

// takings are what entries take from guarded accounts; takings[i] belongs to
// entries[owners[i]]. returns says whether one of them may bring something back.
func (g *Gate) takings(entries []ledger.Entry) (takings []Taking, owners []int, returns bool) {
	for i, e := range entries {
		wants, back := g.wants(e)
		returns = returns || back
		if len(wants) > 0 {
			// A refusal that has to be remembered is for the ledger to write down.
			takings = append(takings, Taking{Op: e.ID, Wants: wants, Firm: !e.Remember && len(entries) == 1})
			owners = append(owners, i)
		}
	}
	return takings, owners, returns
}

// wants sums what e takes of each key, in the order of first use. An entry that may also bring something
// back, or that has more than is sane, is not counted: none of its repeats is
// either.
func (g *Gate) wants(e ledger.Entry) (wants []Want, returns bool) {
	if len(e.Ops) > ledger.MaxOps {
		return nil, false
	}
	for _, op := range e.Ops {
		switch op.Kind {
		case ledger.KindMove, ledger.KindReserve:
			returns = returns || (op.Kind == ledger.KindMove && g.guards(op.To))
			if g.guards(op.From) {
				wants = addWant(wants, ledger.Key{Account: op.From, Asset: op.Asset}, op.Amount)
			}
		case ledger.KindVoid, ledger.KindExpire:
			returns = true
		case ledger.KindCommit:
			returns = returns || (op.Amount > 0 && !op.Keep)
		}
	}
	insane := func(w Want) bool { return w.Amount < 1 || w.Amount > maxGateAmount }
	if returns || len(wants) > maxGateWants || slices.ContainsFunc(wants, insane) {
		return nil, returns
	}
	return wants, false
}

func (g *Gate) guards(a ledger.Account) bool {
	return !a.External() && slices.Contains(g.options.Accounts, a)
}

func addWant(wants []Want, key ledger.Key, amount int64) []Want {
	n := slices.IndexFunc(wants, func(w Want) bool { return w.Key == key })
	if n < 0 {
		return append(wants, Want{key, amount})
	}
	wants[n].Amount += amount
	return wants
}
