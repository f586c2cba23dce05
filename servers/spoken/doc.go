// Package spoken finds out which of many names somebody said, although a recogniser writes names as it hears them:
// "guild zero two" for build-02, "sir o gate" for surrogate, "gee pee you box" for gpu-box.
//
// A text is read in a few ways ([NewQuery]), and each is aligned with the words of each name ([Query.Fit]). How alike
// two words are, is a number from 0 to 1 (likeness.go): other forms of a word, words that sound alike, and words with
// one or two other letters count; numbers are equal or unlike. What fits enough is taken, what fits nearly is asked
// about ([BestFits]).
//
// It is pure. It must not know what the names belong to, nor what happens if none fits.
package spoken
