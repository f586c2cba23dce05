package mask

// A view is what differs between what the client set and what the model has.
type view struct {
	tools         string   // the client's, a raw array; "" for none given
	sent          string   // the same as the model has it
	ours          []string // names of our tools that stand beside them, as the model has them
	forced        bool     // the client forces a tool choice: ours are left out
	instructed    bool     // the client gave instructions
	appended      bool     // ours stand after them
	theirs        string   // the client's then
	instructing   bool     // ours stand in their place
	transcription string   // raw, as the client sees it; "" for absent
	transcribed   bool     // the client asked for transcription
	silenced      bool     // the client asked that there be none
	transcribing  bool     // ours stands in its place
}

// A change is what one update makes of whatever view is in force. What is nil or false it leaves as it is.
type change struct {
	tools         *string  // the client's list
	forced        *bool    // by the client's tool choice
	sent          *string  // the list that went to the model, without ours
	ours          []string // that went with it
	instructed    bool     // the client gave instructions
	appended      bool     // with our words after them
	theirs        string   // the client's then
	instructing   bool     // we did
	reasoning     bool     // it sets how hard the model thinks
	transcription *string  // the client's
	transcribed   bool     // it is on
	silenced      bool     // it is off
	transcribing  *bool    // ours is on
}

// transcribes reports whether it turns our transcription on, and adds whether it brings anything of ours.
func (c change) transcribes() bool { return c.transcribing != nil && *c.transcribing }
func (c change) adds() bool        { return c.transcribes() || len(c.ours) > 0 || c.appended }

func (c change) apply(v view) view {
	if c.tools != nil {
		v.tools = *c.tools
	}
	if c.forced != nil {
		v.forced = *c.forced
	}
	if c.sent != nil {
		v.sent, v.ours = *c.sent, c.ours
	}
	if c.instructed {
		v.instructed, v.instructing, v.appended, v.theirs = true, false, c.appended, c.theirs
	}
	v.instructing = v.instructing || c.instructing
	if c.transcription != nil {
		v.transcription, v.transcribed, v.silenced = *c.transcription, c.transcribed, c.silenced
	}
	if c.transcribing != nil {
		v.transcribing = *c.transcribing
	}
	return v
}
