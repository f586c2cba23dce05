package simulator

import (
	"encoding/json"
	"fmt"
	"time"
)

// createItem puts a client's item into the conversation and acknowledges it.
func (s *session) createItem(frame []byte) *fault {
	in, f := decode[struct {
		Item     json.RawMessage `json:"item"`
		Previous *string         `json:"previous_item_id"`
	}](frame, "")
	if f != nil {
		return f
	}
	if len(in.Item) == 0 || string(in.Item) == "null" {
		return missing("item")
	}
	it, f := newItem(in.Item)
	if f != nil {
		return f
	}
	at, f := s.position(in.Previous)
	if f != nil {
		return f
	}
	if f := s.fits(it); f != nil {
		return f
	}
	s.add(at, it)
	return nil
}

// position returns the index for a new item: the end, the front ("root") or after the named item.
func (s *session) position(previous *string) (int, *fault) {
	if previous == nil {
		return len(s.items.items), nil
	}
	if *previous == "root" {
		return 0, nil
	}
	i, it := s.items.find(*previous)
	if it == nil {
		return 0, refusal("invalid_value", "previous_item_id",
			"Previous item with id '%.40s' does not exist.", *previous)
	}
	return i + 1, nil
}

// fits checks that an item may be added to the conversation, and gives it an id if the client did not.
func (s *session) fits(it *item) *fault {
	if it.id == "" {
		it.id = s.ids.next("item")
	} else if _, old := s.items.find(it.id); old != nil {
		return refusal("invalid_value", "item.id", "Item with id '%s' already exists.", it.id)
	}
	switch {
	case it.kind == "function_call" && it.callID == "":
		it.callID = s.ids.next("call")
	case it.kind == "function_call_output" && s.items.call(it.callID) == nil:
		return refusal("invalid_tool_call_id", "item.call_id",
			"Tool call ID '%.40s' not found in conversation.", it.callID)
	}
	return nil
}

// add inserts a complete item and announces it.
func (s *session) add(at int, it *item) {
	previous := s.items.before(at)
	s.items.insert(at, it)
	s.emit("conversation.item.added", fields{"previous_item_id": previous, "item": it.wire()})
	s.emit("conversation.item.done", fields{"previous_item_id": previous, "item": it.wire()})
}

type itemName struct {
	ItemID string `json:"item_id"`
}

func (s *session) namedItem(kind string, frame []byte) *fault {
	in, f := decode[itemName](frame, "")
	if f != nil {
		return f
	}
	verb := "retrieve"
	if kind == "conversation.item.delete" {
		verb = "delete"
	}
	i, it := s.items.find(in.ItemID)
	if it == nil {
		return noItem(verb, in.ItemID)
	}
	if verb == "retrieve" {
		s.emit("conversation.item.retrieved", fields{"item": it.wire()})
		return nil
	}
	s.items.items = append(s.items.items[:i:i], s.items.items[i+1:]...)
	s.emit("conversation.item.deleted", fields{"item_id": it.id})
	return nil
}

// noItem returns the error of a verb that names an unknown item. Each verb has a code of its own.
func noItem(verb, id string) *fault {
	if id == "" {
		return missing("item_id")
	}
	return &fault{
		code: "item_" + verb + "_invalid_item_id", param: "item_id",
		message: fmt.Sprintf("Error with item_id in %s: the item with id '%.40s' does not exist.", verb, id),
	}
}

// truncateItem shortens the assistant's sound to what the caller heard, and drops its transcript.
func (s *session) truncateItem(frame []byte) *fault {
	in, f := decode[struct {
		ItemID  string `json:"item_id"`
		Content int    `json:"content_index"`
		EndMS   int64  `json:"audio_end_ms"`
	}](frame, "")
	if f != nil {
		return f
	}
	_, it := s.items.find(in.ItemID)
	if it == nil {
		return noItem("truncate", in.ItemID)
	}
	if it.role != "assistant" || in.Content != 0 || len(it.parts) == 0 || it.parts[0].Type != "output_audio" {
		return refusal("invalid_value", "item_id", "Only audio of the assistant can be truncated, at content index 0.")
	}
	if in.EndMS < 0 || in.EndMS > it.sent.Milliseconds() {
		return refusal("invalid_value", "audio_end_ms", "Audio content of %dms is already shorter than %dms",
			it.sent.Milliseconds(), in.EndMS)
	}
	it.sent = time.Duration(in.EndMS) * time.Millisecond
	it.parts[0].Transcript = ""
	s.emit("conversation.item.truncated", fields{"item_id": it.id, "content_index": 0, "audio_end_ms": in.EndMS})
	return nil
}
