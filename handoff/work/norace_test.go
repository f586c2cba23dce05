//go:build !race

package work

// How much of the model is visited.
const (
	exploredDepth = 7
	walks         = 1500
)
