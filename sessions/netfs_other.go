//go:build !linux

package sessions

// kindOfNetwork returns "": on this system the kind of a file system is not known.
func kindOfNetwork(string) string { return "" }
