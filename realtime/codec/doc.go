// Package codec has the audio codecs between browsers and voice models: G.722, Opus (decoding), and conversion between
// sample rates. Everything here is pure: a piece of sound goes in, a piece comes out, and pieces of any length give the
// same sound as the whole.
//
// It must not know packets, sockets, sessions or time. Samples are 16-bit, one channel.
package codec
