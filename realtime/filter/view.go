package filter

// A view holds the fields of a session in which the client's settings and the model's differ.
type view struct {
	tools              string   // the client's, a raw array; "": it set none
	sentTools          string   // the client's as the model has them
	ours               []string // names of our tools beside them, as the model has them
	forced             bool     // the client forces a tool choice, so ours are left out
	hasInstructions    bool     // the client set instructions
	hasAddition        bool     // our addition is after them
	clientInstructions string   // the client's, if hasAddition
	ourInstructions    bool     // ours are in force, as the client set none
	transcription      string   // as the client sees it, raw JSON; "": absent
	transcriptionOn    bool     // the client turned transcription on
	transcriptionOff   bool     // the client turned transcription off
	ourTranscription   bool     // our transcription is in force
}

// A change is how one update changes a view. Fields that are nil or false leave the view's as they are.
type change struct {
	tools              *string  // the client's list
	forced             *bool    // whether the client's tool choice forces a call
	sentTools          *string  // the client's list as sent to the model
	ours               []string // names of our tools sent with it
	hasInstructions    bool     // the client set instructions
	hasAddition        bool     // our addition is after them
	clientInstructions string   // the client's, if hasAddition
	ourInstructions    bool     // ours were set
	reasoning          bool     // the reasoning effort was set
	transcription      *string  // the client's, raw JSON
	transcriptionOn    bool     // the client turned it on
	transcriptionOff   bool     // the client turned it off
	ourTranscription   *bool    // whether ours is on
}

// transcribes reports whether the change turns our transcription on, and adds whether it adds anything of ours.
func (c change) transcribes() bool { return c.ourTranscription != nil && *c.ourTranscription }
func (c change) adds() bool        { return c.transcribes() || len(c.ours) > 0 || c.hasAddition }

func (c change) apply(v view) view {
	if c.tools != nil {
		v.tools = *c.tools
	}
	if c.forced != nil {
		v.forced = *c.forced
	}
	if c.sentTools != nil {
		v.sentTools, v.ours = *c.sentTools, c.ours
	}
	if c.hasInstructions {
		v.hasInstructions, v.ourInstructions = true, false
		v.hasAddition, v.clientInstructions = c.hasAddition, c.clientInstructions
	}
	v.ourInstructions = v.ourInstructions || c.ourInstructions
	if c.transcription != nil {
		v.transcription, v.transcriptionOn, v.transcriptionOff = *c.transcription, c.transcriptionOn, c.transcriptionOff
	}
	if c.ourTranscription != nil {
		v.ourTranscription = *c.ourTranscription
	}
	return v
}
