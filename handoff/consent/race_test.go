//go:build race

package consent

// everyNth thins the replies of properties where each read is slow.
const everyNth = 7
