package web

import (
	"context"
	"fmt"
	"sync"

	"github.com/holdfast-pay/holdfast"
)

// maxShelved is how many pages of the shop are kept.
const maxShelved = 64

// shelf is what is on sale and how much of it is left. When stock changes,
// everybody who watches asks at once: it is read once for all of them, since
// whatever changes it is an event.
type shelf struct {
	mu    sync.Mutex
	at    int64              // the last event when pages were read
	pages map[string]shelved // by the SKU that they come after
}

type shelved struct {
	items []holdfast.Item
	stock []holdfast.Availability // of each
	more  string                  // the SKU that the next page comes after; "" = there is none
}

func (s *shelf) page(ctx context.Context, core *holdfast.Holdfast, after string) (shelved, error) {
	head, err := core.Ledger().Head(ctx)
	if err != nil {
		return shelved{}, fmt.Errorf("web: end of the feed: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pages == nil || head.Events > s.at || len(s.pages) >= maxShelved {
		s.at, s.pages = max(s.at, head.Events), map[string]shelved{}
	}
	if p, ok := s.pages[after]; ok {
		return p, nil
	}
	p, err := readShelf(ctx, core, after)
	if err == nil {
		s.pages[after] = p
	}
	return p, err
}

func readShelf(ctx context.Context, core *holdfast.Holdfast, after string) (p shelved, err error) {
	if p.items, err = core.Items(ctx, after, shopPage+1); err != nil {
		return p, err
	}
	if len(p.items) > shopPage {
		p.items = p.items[:shopPage]
		p.more = p.items[shopPage-1].SKU
	}
	for _, item := range p.items {
		a, err := core.Availability(ctx, item.SKU)
		if err != nil {
			return p, err
		}
		p.stock = append(p.stock, a)
	}
	return p, nil
}
