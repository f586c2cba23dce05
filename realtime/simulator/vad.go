package simulator

import (
	"math"
	"time"
)

// Times of the detector.
const (
	vadFrame  = 10 * time.Millisecond  // has at most one change
	vadSpeech = 200 * time.Millisecond // sound as long as this is speech; a beep or a cough is shorter
	vadGap    = 100 * time.Millisecond // silence as long as this resets the count of sound
	vadBurst  = 80 * time.Millisecond  // sound as long as this in the silence after speech continues the speech
)

// quietRMS is the loudness of speech at threshold 1, as root mean square of 16 bit samples. The default
// threshold of 0.5 is -36 dBFS: above a quiet room, below quiet speech.
const quietRMS = 1000

// A vadChange is what a frame of sound changed.
type vadChange int

const (
	vadNothing vadChange = iota
	vadStarted
	vadStopped
)

// A detector distinguishes speech from silence by energy. Its clock is the length of the sound. The zero value is
// ready; its settings are given with each call because session.update may change them.
type detector struct {
	speaking bool
	loud     time.Duration // sound in a row, short gaps allowed
	quiet    time.Duration // silence in a row, short bursts allowed while speaking
	sum      float64       // of squares, of the frame that is not full
	count    int
}

// vadSettings are the settings of the detector, from turn_detection.
type vadSettings struct {
	level   float64       // RMS
	silence time.Duration // ends speech
}

// samples handles sound until the first change, and returns how many samples it took.
func (d *detector) samples(in []int16, rate int, set vadSettings) (int, vadChange) {
	frame := rate / int(time.Second/vadFrame)
	for i, v := range in {
		d.sum += float64(v) * float64(v)
		if d.count++; d.count < frame {
			continue
		}
		rms := math.Sqrt(d.sum / float64(d.count))
		d.sum, d.count = 0, 0
		if change := d.frame(rms >= set.level, set.silence); change != vadNothing {
			return i + 1, change
		}
	}
	return len(in), vadNothing
}

// frame handles one frame, which is loud or quiet.
func (d *detector) frame(loud bool, silence time.Duration) vadChange {
	if loud {
		d.loud += vadFrame
	} else {
		d.quiet += vadFrame
	}
	if !d.speaking {
		return d.waiting(loud)
	}
	switch {
	case loud && d.loud >= vadBurst:
		d.quiet = 0
	case loud:
		d.quiet += vadFrame // a burst is part of the silence
	case d.quiet >= vadGap:
		d.loud = 0
	}
	if d.quiet >= silence {
		*d = detector{}
		return vadStopped
	}
	return vadNothing
}

func (d *detector) waiting(loud bool) vadChange {
	if !loud {
		if d.quiet >= vadGap {
			d.loud = 0
		}
		return vadNothing
	}
	d.quiet = 0
	if d.loud < vadSpeech {
		return vadNothing
	}
	d.speaking = true
	return vadStarted
}
