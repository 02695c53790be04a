// Package holdfast is a checkout and payout core: it holds stock with a
// deadline, takes money through payment gateways, and hands over the goods or
// the money back, never both and never neither.
package holdfast
