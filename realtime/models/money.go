package models

import (
	"fmt"
	"math"
)

// Money is an amount in billionths of a US dollar. A token costs as little as 60 of them, so sums are exact.
type Money int64

// Dollar is one US dollar.
const Dollar Money = 1e9

// Dollars returns an amount that is written in dollars, at most 9 billion of them.
func Dollars(d float64) Money {
	return Money(math.Round(min(max(d, -9e9), 9e9) * float64(Dollar)))
}

// Dollars returns the amount in dollars.
func (m Money) Dollars() float64 { return float64(m) / float64(Dollar) }

// String returns it as people read it: "$1.48". What is less than half a cent is "less than a cent".
func (m Money) String() string {
	if m > 0 && m < Dollar/200 {
		return "less than a cent"
	}
	return fmt.Sprintf("$%.2f", m.Dollars())
}
