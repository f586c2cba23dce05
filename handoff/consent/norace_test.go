//go:build !race

package consent

const everyNth = 1
