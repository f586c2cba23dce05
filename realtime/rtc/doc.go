// Package rtc carries a call to a browser over WebRTC: its sound as packets, its events on a data channel. To
// the call it is a leg like any other, one that hears and speaks in events. What the browser hears, and what it
// and the model are told of that, is decided by pure parts: player, stream, reorder buffer and formats.
//
// pion is used here alone. It must not know what a call does, nor whose it is.
package rtc
