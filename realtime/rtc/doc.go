// Package rtc carries a call to a browser over WebRTC: its sound as RTP packets, its events on a data channel. To the
// call it is a leg like any other, which converts sound to events and back. Pure parts (player, stream, reorder buffer,
// formats) decide what the browser hears, and what it and the model are told about that.
//
// Only this package uses pion. It must not know what a call does, nor whose call it is.
package rtc
