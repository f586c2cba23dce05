package rtc

import (
	"bytes"
	"testing"
	"time"
)

func TestStreamPaces(t *testing.T) {
	base := time.Unix(1000, 0)
	for _, tc := range []struct {
		name string
		at   []int // ms of each look
		want []int // frames due at each
	}{
		{"on time", []int{0, 20, 40, 60}, []int{1, 1, 1, 1}},
		{"a little early and late", []int{0, 19, 41, 59, 60}, []int{1, 0, 2, 0, 1}},
		{"held up", []int{0, 20, 90, 100}, []int{1, 1, 3, 1}},
		{"held up for long", []int{0, 10_000, 10_020, 10_040}, []int{1, maxBurst, 1, 1}},
	} {
		var s stream
		for i, ms := range tc.at {
			n := s.due(base.Add(time.Duration(ms) * time.Millisecond))
			if n != tc.want[i] {
				t.Errorf("%s: %d frames at %d ms, want %d", tc.name, n, ms, tc.want[i])
			}
			for range n {
				s.take()
			}
		}
	}
}

func TestStreamNumbers(t *testing.T) {
	base := time.Unix(1000, 0)
	s := stream{sequence: 0xffff}
	var got []stamp
	for _, ms := range []int{0, 20, 40} {
		s.due(base.Add(time.Duration(ms) * time.Millisecond))
		got = append(got, s.take())
	}
	s.rest()
	s.due(base.Add(1050 * time.Millisecond))
	got = append(got, s.take())
	s.rest() // at once again: the clock never goes back
	s.due(base.Add(1051 * time.Millisecond))
	got = append(got, s.take())
	want := []stamp{{0xffff, 0, true}, {0, 160, false}, {1, 320, false}, {2, 52 * 160, true}, {3, 53 * 160, true}}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("packet %d: %+v, want %+v", i, got[i], want[i])
		}
	}
}

func TestHearing(t *testing.T) {
	frame := func(v byte) []byte { return bytes.Repeat([]byte{v}, frameBytes) }
	quiet := func(n int) []byte { return bytes.Repeat([]byte{silentByte}, n) }
	// fading is what stands for lost frames behind one of a value.
	fading := func(v byte, frames int) []byte {
		var h reorderBuffer
		h.newest = frame(v)
		h.fill(frames*frameBytes, true)
		return h.audio
	}
	type packet struct {
		sequence  uint16
		timestamp uint32
		value     byte
	}
	for _, tc := range []struct {
		name    string
		packets []packet
		want    [][]byte
		late    int
		lost    int
	}{
		{"in order", []packet{{1, 0, 1}, {2, 160, 2}}, [][]byte{frame(1), frame(2)}, 0, 0},
		{"over the wrap", []packet{{0xffff, 0xffffff60, 1}, {0, 0, 2}}, [][]byte{frame(1), frame(2)}, 0, 0},
		{"one lost", []packet{{1, 0, 1}, {3, 320, 3}}, [][]byte{frame(1), fading(1, 1), frame(3)}, 0, 1},
		{"one overtaken", []packet{{1, 0, 1}, {3, 320, 3}, {2, 160, 2}, {4, 480, 4}},
			[][]byte{frame(1), frame(2), frame(3), frame(4)}, 0, 0},
		{"one overtaken by two", []packet{{1, 0, 1}, {3, 320, 3}, {4, 480, 4}, {2, 160, 2}},
			[][]byte{frame(1), frame(2), frame(3), frame(4)}, 0, 0},
		{"three turned round", []packet{{1, 0, 1}, {4, 480, 4}, {3, 320, 3}, {2, 160, 2}},
			[][]byte{frame(1), frame(2), frame(3), frame(4)}, 0, 0},
		{"overtaken over the wrap", []packet{{0xfffe, 0, 1}, {0, 320, 3}, {0xffff, 160, 2}},
			[][]byte{frame(1), frame(2), frame(3)}, 0, 0},
		{"five lost", []packet{{1, 0, 1}, {7, 960, 7}, {8, 1120, 8}, {9, 1280, 9}},
			[][]byte{frame(1), fading(1, 5), frame(7), frame(8), frame(9)}, 0, 5},
		{"one late", []packet{{1, 0, 1}, {3, 320, 3}, {4, 480, 4}, {5, 640, 5}, {2, 160, 2}},
			[][]byte{frame(1), fading(1, 1), frame(3), frame(4), frame(5)}, 1, 1},
		{"one waits twice", []packet{{1, 0, 1}, {3, 320, 3}, {3, 320, 3}, {2, 160, 2}},
			[][]byte{frame(1), frame(2), frame(3)}, 1, 0},
		{"one twice", []packet{{1, 0, 1}, {1, 0, 1}, {2, 160, 2}}, [][]byte{frame(1), frame(2)}, 1, 0},
		{"silence that is not sent", []packet{{1, 0, 1}, {2, 20 * frameBytes, 2}, {3, 40 * frameBytes, 3}},
			[][]byte{frame(1), quiet(19 * frameBytes), frame(2), quiet(19 * frameBytes), frame(3)}, 0, 0},
		{"a pause", []packet{{1, 0, 1}, {2, 800_000, 2}}, [][]byte{frame(1), quiet(maxGap), frame(2)}, 0, 0},
		{"counted anew", []packet{{5000, 9000, 1}, {1, 0, 2}, {2, 160, 3}}, [][]byte{frame(1), frame(2), frame(3)}, 0, 0},
	} {
		var h reorderBuffer
		for _, p := range tc.packets {
			h.add(heard{p.sequence, p.timestamp, frame(p.value), false})
		}
		want := bytes.Join(tc.want, nil)
		h.flush()
		if got := h.take(1); !bytes.Equal(got, want) || h.late != tc.late || h.lost != tc.lost {
			t.Errorf("%s: %d bytes, want %d; %d late, %d lost", tc.name, len(got), len(want), h.late, h.lost)
		}
		if h.take(1) != nil {
			t.Errorf("%s: sound is left", tc.name)
		}
	}
}

// TestWaitingTime: packets that come too late make the buffer wait for as long the next time, within bounds; packets
// that come twice do not, and while all come in order it waits less and less.
func TestWaitingTime(t *testing.T) {
	const ms = bytesPerMS
	h := &reorderBuffer{}
	add := func(n int) { h.add(heard{uint16(n), uint32(n * frameTicks), make([]byte, frameBytes), false}) }
	next := 0
	inOrder := func(n int) {
		for range n {
			add(next)
			next++
		}
	}
	// overtaken lets a packet come behind so many others.
	overtaken := func(by int) {
		missed := next
		next++
		inOrder(by)
		add(missed)
	}
	for _, row := range []struct {
		name       string
		do         func()
		wait       int // ms
		late, lost int // since the row before
	}{
		{"at first", func() { inOrder(10) }, 60, 0, 0},
		{"just in time", func() { overtaken(2) }, 60, 0, 0},
		{"too late", func() { overtaken(4) }, 100, 1, 1},
		{"as late again", func() { overtaken(4) }, 100, 0, 0},
		{"twice", func() { add(next - 1); add(next - 1) }, 100, 2, 0},
		{"far too late", func() { overtaken(30) }, 200, 1, 1},
		{"lost, and never seen", func() { next++; inOrder(20) }, 200, 0, 1},
		{"calm for a second", func() { inOrder(calmAfter) }, 195, 0, 0},
		{"calm for a minute", func() { inOrder(60 * calmAfter) }, 20, 0, 0},
		{"lost, with no time to lose", func() { next++; inOrder(1) }, 20, 0, 1},
		{"late", func() { overtaken(2) }, 60, 1, 1},
	} {
		late, lost := h.late, h.lost
		row.do()
		if got := h.wait.now() / ms; got != row.wait || h.late-late != row.late || h.lost-lost != row.lost {
			t.Errorf("%s: it waits %d ms, want %d; %d late, want %d; %d lost, want %d", row.name, got, row.wait, h.late-late,
				row.late, h.lost-lost, row.lost)
		}
	}
	if len(h.wait.givenUp) > maxLate {
		t.Errorf("%d packets are remembered", len(h.wait.givenUp))
	}
}
