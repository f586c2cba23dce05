package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"switchboard/handoff"
)

// muchWork is as much work as is at hand, each piece as large as it can be, newest first.
func muchWork() []handoff.Record {
	long := strings.Repeat("ü", 32<<10)
	items := make([]handoff.RecordItem, 200)
	for i := range items {
		items[i] = handoff.RecordItem{
			ID: fmt.Sprint("i", i), Kind: handoff.ItemCommand, Text: long, Output: long, State: "done",
		}
	}
	records := make([]handoff.Record, 100)
	for i := range records {
		records[i] = handoff.Record{
			ID: fmt.Sprint(
				"h",
				99-i,
			), Server: "bigpc", Prompt: long, Text: long, Spoken: long, Items: items, Undelivered: []string{long},
			State: handoff.StatusDelivered, Outcome: handoff.OutcomeFailed, CreatedAt: time.Unix(int64(99-i), 0),
			Error: &handoff.RecordError{Code: handoff.CodeUnreachable, Message: "bigpc is not answering.", Detail: long},
		}
	}
	return records
}

// readList reads one page of work.
func readList(t *testing.T, s *Server, query string) (page workPage, size int) {
	t.Helper()
	rec := ask(s, "GET", "/fleet/handoffs"+query, "", nil)
	if rec.Code != http.StatusOK {
		t.Fatalf("%s: %d %s", query, rec.Code, rec.Body)
	}
	size = rec.Body.Len()
	must(t, json.Unmarshal(rec.Body.Bytes(), &page))
	return page, size
}

// TestWorkThatIsNotKnownYet: a list that may lack work from before a restart says so.
func TestWorkThatIsNotKnownYet(t *testing.T) {
	w := newWorld()
	s := newServer(t, w, nil)
	for _, unread := range []error{handoff.Fault(handoff.CodeStoreDown, "", ""), nil} {
		w.change(func(w *world) { w.unread = unread })
		if page, _ := readList(t, s, ""); page.Incomplete != (unread != nil) {
			t.Errorf("%v: %+v", unread, page)
		}
	}
}

// TestWorkIsPagedAndShort: a list of work has pages and is short, however much work there is: 100 pieces of 200 items
// of 128 KiB.
func TestWorkIsPagedAndShort(t *testing.T) {
	w := newWorld()
	w.records = muchWork()
	s := newServer(t, w, nil)
	page, size := readList(t, s, "?limit=100")
	if len(page.Items) != 100 || page.More != 0 || size > 100*(2*maxListPrompt+3*maxListText+1<<10) {
		t.Errorf("all: %d pieces, %d more, %d bytes", len(page.Items), page.More, size)
	}
	t.Logf("100 pieces of work: %d bytes", size)
	if first := page.Items[0]; len(first.Items) != 0 || first.ItemCount != 200 || !first.Clipped ||
		first.Error.Message != "bigpc is not answering." {
		t.Errorf("the first: %d items, of %d, clipped %t", len(first.Items), first.ItemCount, first.Clipped)
	}
	var ids []string
	query := "?limit=30"
	for more := 1; more > 0; query = "?limit=30&before=" + ids[len(ids)-1] {
		page, _ := readList(t, s, query)
		for _, item := range page.Items {
			ids = append(ids, item.ID)
		}
		if more = page.More; more != 100-len(ids) {
			t.Errorf("after %d there are %d more", len(ids), more)
		}
	}
	for i, id := range ids {
		if id != fmt.Sprint("h", 99-i) {
			t.Fatalf("%d is %s", i, id)
		}
	}
	if page, _ := readList(t, s, "?before=h0"); len(page.Items) != 0 || page.More != 0 {
		t.Errorf("before the oldest: %+v", page)
	}
	if page, _ := readList(t, s, ""); len(page.Items) != defaultPage {
		t.Errorf("unasked: %d", len(page.Items))
	}
	w.change(func(w *world) { w.records = nil })
	if page, size := readList(t, s, ""); page.Items == nil || size != len(`{"items":[]}`) {
		t.Errorf("none: %+v", page)
	}
}

// TestOnePieceIsBounded: one piece of work is bounded, too: its latest items are whole, the others are cut.
func TestOnePieceIsBounded(t *testing.T) {
	w := newWorld()
	w.records = muchWork()[:1]
	s := newServer(t, w, nil)
	rec := ask(s, "GET", "/fleet/handoffs/h99", "", nil)
	var got handoff.Record
	must(t, json.Unmarshal(rec.Body.Bytes(), &got))
	full := w.records[0]
	if got.Prompt != full.Prompt || got.Text != full.Text || got.Error.Detail != full.Error.Detail {
		t.Error("its texts are not whole")
	}
	if n := len(got.Items); n != 200 || got.Items[0].ID != "i0" || got.Items[199].Output != full.Items[199].Output {
		t.Errorf("%d items, from %s", n, got.Items[0].ID)
	}
	if first := got.Items[0]; len(first.Text) > maxCutItem || len(first.Output) > maxCutItem+len(itemCutMark) ||
		!strings.HasPrefix(first.Output, itemCutMark) {
		t.Errorf("the first item has %d and %d bytes", len(first.Text), len(first.Output))
	}
	if size := rec.Body.Len(); size > maxItems+200*(2*maxCutItem+200)+4*(64<<10)+1<<10 {
		t.Errorf("%d bytes", size)
	}
	t.Logf("one piece of work: %d bytes", rec.Body.Len())
}

// TestFeedLeavesItemsOut: records in the feed have no items, which have events of their own.
func TestFeedLeavesItemsOut(t *testing.T) {
	rec := muchWork()[0]
	rec.Text = "All good."
	rec.Items = []handoff.RecordItem{
		{ID: "i1", Kind: handoff.ItemCommand, Text: "ls"}, {ID: "i2", Kind: handoff.ItemMessage, Text: "All good.\n"},
	}
	text, err := json.Marshal(wireEvent(handoff.PageEvent{Kind: handoff.PageHandoff, Handoff: rec.ID, Record: &rec}))
	must(t, err)
	var got struct {
		Kind, Handoff string
		Record        brief
	}
	must(t, json.Unmarshal(text, &got))
	if got.Kind != "handoff" || got.Handoff != rec.ID || got.Record.Items != nil || got.Record.ItemCount != 1 ||
		got.Record.Clipped ||
		got.Record.Prompt != rec.Prompt {
		t.Errorf("got %s", handoff.Clip(string(text), 300))
	}
}
