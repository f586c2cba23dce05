package models

import "testing"

// TestMoney: amounts are exact down to a token of the cheapest kind, and are read in cents.
func TestMoney(t *testing.T) {
	for _, c := range []struct {
		dollars float64
		want    Money
		said    string
	}{
		{0, 0, "$0.00"},
		{0.06 / 1e6, 60, "less than a cent"},
		{0.004, 4e6, "less than a cent"},
		{0.005, 5e6, "$0.01"},
		{1.48, 1_480_000_000, "$1.48"},
		{1e300, 9e18, "$9000000000.00"},
		{-1, -1e9, "$-1.00"},
	} {
		got := Dollars(c.dollars)
		if got != c.want || got.String() != c.said {
			t.Errorf("%v: %d, %q", c.dollars, got, got)
		}
	}
	if got := (3 * Dollar / 2).Dollars(); got != 1.5 {
		t.Errorf("back in dollars: %v", got)
	}
}
