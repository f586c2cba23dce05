package realtime

import (
	"encoding/binary"
	"math/rand/v2"
)

// RFC 6455, section 5.2: the first byte of an unfragmented frame of each kind, the mask bit, and the lengths that
// announce an extended length.
const (
	wholeText  = 0x81
	wholePing  = 0x89
	wholePong  = 0x8a
	maskedBit  = 0x80
	length16   = 126
	length64   = 127
	longestOwn = length16 - 1
)

// appendFrame appends an event, or the data of a ping or pong (at most 125 bytes), as one WebSocket frame. A client's
// frame is masked with a random key. The library would need a buffer, two allocations and a write for each frame.
func appendFrame(to []byte, kind byte, event []byte, client bool) []byte {
	var masked byte
	if client {
		masked = maskedBit
	}
	switch n := len(event); {
	case n <= longestOwn:
		to = append(to, kind, masked|byte(n))
	case n <= 0xffff:
		to = binary.BigEndian.AppendUint16(append(to, kind, masked|length16), uint16(n))
	default:
		to = binary.BigEndian.AppendUint64(append(to, kind, masked|length64), uint64(n))
	}
	if !client {
		return append(to, event...)
	}
	key := rand.Uint32()
	to = binary.LittleEndian.AppendUint32(to, key)
	at := len(to)
	to = append(to, event...)
	maskBytes(to[at:], key)
	return to
}

// maskBytes masks b in place with a key of four bytes, of which the lowest is the first.
func maskBytes(b []byte, key uint32) {
	twice := uint64(key)<<32 | uint64(key)
	for ; len(b) >= 32; b = b[32:] { // takes half the time of eight bytes at a time
		binary.LittleEndian.PutUint64(b, binary.LittleEndian.Uint64(b)^twice)
		binary.LittleEndian.PutUint64(b[8:], binary.LittleEndian.Uint64(b[8:])^twice)
		binary.LittleEndian.PutUint64(b[16:], binary.LittleEndian.Uint64(b[16:])^twice)
		binary.LittleEndian.PutUint64(b[24:], binary.LittleEndian.Uint64(b[24:])^twice)
	}
	for ; len(b) >= 8; b = b[8:] {
		binary.LittleEndian.PutUint64(b, binary.LittleEndian.Uint64(b)^twice)
	}
	for i := range b {
		b[i] ^= byte(twice >> (8 * i))
	}
}
