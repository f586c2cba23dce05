// Package codec turns the sound of telephones into the sound of voice models and back: G.711 µ-law, G.722, Opus, and
// conversion between sample rates. Everything here is pure: a piece of sound goes in, a piece comes out, and
// pieces of any length give the same sound as the whole.
//
// It must not know packets, sockets, sessions or time. Samples are 16-bit, one channel.
package codec
