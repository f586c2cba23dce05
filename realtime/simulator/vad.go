package simulator

import (
	"math"
	"time"
)

// Times of the detector.
const (
	vadFrame  = 10 * time.Millisecond  // has at most one change
	vadSpeech = 200 * time.Millisecond // so much more sound than silence is speech; a beep or a cough is shorter
	vadBurst  = 80 * time.Millisecond  // so much in the silence after speech continues the speech
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
	loud     time.Duration // sound less the silence in it, at most vadSpeech
	quiet    time.Duration // silence in a row, short bursts allowed
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
		d.loud = min(d.loud+vadFrame, vadSpeech)
	} else {
		d.loud = max(d.loud-vadFrame, 0)
	}
	if d.quiet += vadFrame; loud && d.loud >= vadBurst {
		d.quiet = 0
	}
	switch {
	case !d.speaking && d.loud == vadSpeech:
		d.speaking = true
		return vadStarted
	case d.speaking && d.quiet >= silence:
		*d = detector{}
		return vadStopped
	}
	return vadNothing
}
