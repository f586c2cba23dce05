//go:build race

package work

// How much of the model is visited where each step is slow.
const (
	exploredDepth = 5
	walks         = 300
)
