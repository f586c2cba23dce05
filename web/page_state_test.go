package web

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"switchboard/handoff"
)

// A moduleRow is an expression over a module m of the page, and what it gives as JSON.
type moduleRow struct{ name, module, expression, want string }

// TestPageModules runs the page's pure modules on tables, in the browser that they are for. The page is an app that can
// be installed: its manifest and what it names are there, of the kinds they say.
func TestPageModules(t *testing.T) {
	t.Parallel()
	_, base := serve(t, newWorld(), nil)
	p := openTab(t, startChromium(t, true), 800, 600)
	p.open(base)
	app := eval[[]string](p, `(async () => {
	  const link = document.querySelector("link[rel=manifest]").href;
	  const answer = await fetch(link);
	  const manifest = await answer.json();
	  const icons = await Promise.all(manifest.icons.map(async (i) => {
	    const picture = await createImageBitmap(await (await fetch(new URL(i.src, link))).blob()).catch(() => null);
	    return [i.type, i.purpose, i.type === "image/png" && picture.width + "x" + picture.height === i.sizes].join();
	  }));
	  return [answer.headers.get("content-type"), manifest.display, manifest.start_url, ...icons];
	})()`)
	want := []string{"application/manifest+json", "standalone", "/", "image/png,,true", "image/png,,true", "image/png,maskable,true", "image/svg+xml,,false"}
	if !slices.Equal(app, want) {
		t.Errorf("the app: %q", app)
	}
	for _, row := range slices.Concat(stateRows, wordRows) {
		t.Run(row.name, func(t *testing.T) {
			p.T = t
			const help = `const run = (...events) => { let s = m.talkStart; for (const [type, e] of events) s = m.reduceTalk(s, { type: "voice", event: { type, ...e } }); return s.entries.map((e) => [e.who, e.text, e.state].join(":")); };
			const feed = (...events) => events.reduce((s, event) => m.reduceWork(s, { type: "event", event }), m.workStart);`
			got := eval[json.RawMessage](p, `import("/page/`+row.module+`.js").then((m) => { `+help+` return `+row.expression+`; })`)
			var a, b any
			if err := errors.Join(json.Unmarshal(got, &a), json.Unmarshal([]byte(row.want), &b)); err != nil {
				t.Fatal(err)
			}
			if x, y := canonical(t, a), canonical(t, b); x != y {
				t.Errorf("got %s, want %s", x, y)
			}
		})
	}
}

func canonical(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var stateRows = []moduleRow{
	{"parser", "events", `(() => { const out = []; const take = m.parser((e) => out.push(e)); for (const c of [": hi\n\nid: a-1\nda", "ta: {\"x\"", ":1}\n\n", "event: reset\r\ndata: {}\r\n\r\n", "id: a-2\n\n", "data: 1\ndata: 2\n\n"]) take(c); return out; })()`,
		`[{"id":"a-1","data":"{\"x\":1}"},{"event":"reset","data":"{}"},{"data":"1\n2"}]`},
	{"talk: transcription before the item", "state-talk", `run(["conversation.item.input_audio_transcription.completed", {item_id:"u", transcript:" hi "}], ["conversation.item.added", {item:{id:"u",type:"message",role:"user",content:[{type:"input_audio"}]}}])`, `["you:hi:done"]`},
	{"talk: nothing was said", "state-talk", `run(["conversation.item.added", {item:{id:"u",type:"message",role:"user",content:[{type:"input_audio"}]}}], ["conversation.item.input_audio_transcription.completed", {item_id:"u", transcript:" "}])`, `[]`},
	{"talk: not understood", "state-talk", `run(["conversation.item.added", {item:{id:"u",type:"message",role:"user",content:[{type:"input_audio"}]}}], ["conversation.item.input_audio_transcription.failed", {item_id:"u"}])`, `[]`},
	{"talk: placed after its neighbour", "state-talk", `run(["response.output_text.delta",{item_id:"a",delta:"x"}], ["response.output_text.delta",{item_id:"b",delta:"y"}], ["conversation.item.added", {previous_item_id:"a",item:{id:"u",type:"message",role:"user",content:[{type:"input_text",text:"t"}]}}])`, `["voice:x:saying","you:t:done","voice:y:saying"]`},
	{"talk: the whole replaces its pieces", "state-talk", `run(["response.output_audio_transcript.delta",{item_id:"a",delta:"Hel"}], ["response.output_audio_transcript.done",{item_id:"a",transcript:"Hello."}])`, `["voice:Hello.:done"]`},
	{"talk: cut off", "state-talk", `run(["response.output_audio_transcript.delta",{item_id:"a",response_id:"r",delta:"Hel"}], ["response.done",{response:{id:"r",status:"cancelled"}}], ["response.output_audio_transcript.done",{item_id:"a",transcript:"Hello."}])`, `["voice:Hello.:cut"]`},
	{"talk: an answer without words leaves no line", "state-talk", `run(["conversation.item.added",{item:{id:"a",type:"message",role:"assistant",content:[]}}], ["response.done",{response:{id:"r",status:"completed",output:[{id:"a"}]}}])`, `[]`},
	{"talk: tools and system items are not shown", "state-talk", `run(["conversation.item.added",{item:{id:"f",type:"function_call"}}], ["conversation.item.added",{item:{id:"s",type:"message",role:"system",content:[{type:"input_text",text:"x"}]}}])`, `[]`},
	{"talk: unknown events", "state-talk", `run(["rate_limits.updated",{}], ["",{}], ["toString",{}])`, `[]`},
	{"talk: typed while the voice greets", "state-talk", `(() => { let s = m.reduceTalk(m.talkStart,{type:"typed",id:"u",text:"t"}); for (const event of [{type:"conversation.item.added",item:{id:"a",type:"message",role:"assistant",content:[{transcript:"While you were away."}]}},{type:"conversation.item.added",previous_item_id:"a",item:{id:"u",type:"message",role:"user",content:[{type:"input_text",text:"t"}]}},{type:"conversation.item.added",previous_item_id:"u",item:{id:"b",type:"message",role:"assistant",content:[{transcript:"r"}]}}]) s = m.reduceTalk(s,{type:"voice",event}); return s.entries.map((e) => e.id); })()`, `["a","u","b"]`},
	{"talk: what was not heard of an interrupted answer", "state-talk", `(() => { let s = m.talkStart; for (const event of [{type:"response.output_audio_transcript.done",item_id:"a",transcript:"One two three four five six seven eight nine ten eleven twelve."},{type:"conversation.item.truncated",item_id:"a",audio_end_ms:1000}]) s = m.reduceTalk(s,{type:"voice",event}); const [e] = s.entries; return [e.state, e.text.slice(0, e.heard), e.text.length > e.heard]; })()`, `["cut","One two three",true]`},
	{"talk: kept over a reload", "state-talk", `(() => { let s = m.talkStart; for (const event of [{type:"response.output_audio_transcript.done",item_id:"a",transcript:"Hello."},{type:"response.output_audio_transcript.delta",item_id:"b",delta:"Half"}]) s = m.reduceTalk(s,{type:"voice",event}); s = m.reduceTalk(m.talkStart,{type:"kept",entries:JSON.parse(JSON.stringify(m.toKeep(s)))}); return [s.entries.map((e) => e.text + e.state), m.reduceTalk(m.talkStart,{type:"kept",entries:[{id:1},null,"x",{id:"a",who:"evil",text:"x"}]}).entries]; })()`, `[["Hello.done","Halfcut"],[]]`},
	{"talk: the end of a call", "state-talk", `(() => { let s = m.talkStart; for (const e of [{type:"response.created"},{type:"response.output_text.delta",item_id:"a",delta:"x"}]) s = m.reduceTalk(s,{type:"voice",event:e}); s = m.reduceTalk(s,{type:"call-ended"}); return [s.responding, s.entries[0].state]; })()`, `[false,"cut"]`},
	{"work: a record keeps its items", "state-work", `feed({kind:"handoff",record:{id:"h",items:[{id:"i",kind:"command",text:"ls"}]}},{kind:"handoff",record:{id:"h",state:"started"}}).records.h.items.length`, `1`},
	{"work: a delta of a command is output", "state-work", `feed({kind:"handoff",record:{id:"h",items:[{id:"i",kind:"command",text:"ls"}]}},{kind:"delta",handoff:"h",item_id:"i",delta:"a"},{kind:"delta",handoff:"h",item_id:"i",delta:"b"}).records.h.items[0]`, `{"id":"i","kind":"command","text":"ls","output":"ab"}`},
	{"work: a delta of a message is text", "state-work", `feed({kind:"handoff",record:{id:"h",items:[{id:"i",kind:"message",text:"a"}]}},{kind:"delta",handoff:"h",item_id:"i",delta:"b"}).records.h.items[0].text`, `"ab"`},
	{"work: output is bounded, its end kept", "state-work", `(({length, at}, s) => [s.length, s.endsWith("!")])([], feed({kind:"handoff",record:{id:"h",items:[{id:"i",kind:"command",output:"x".repeat(65536)}]}},{kind:"delta",handoff:"h",item_id:"i",delta:"!"}).records.h.items[0].output)`, `[65536,true]`},
	{"work: a stopped command keeps its output", "state-work", `feed({kind:"handoff",record:{id:"h"}},{kind:"item",handoff:"h",item:{id:"c",kind:"command",text:"ls",state:"running"}},{kind:"delta",handoff:"h",item_id:"c",delta:"a.txt"},{kind:"item",handoff:"h",item:{id:"m",kind:"message",text:"I",state:"running"}},{kind:"dropped",handoff:"h",item_id:"c"},{kind:"dropped",handoff:"h",item_id:"m"}).records.h.items`, `[{"id":"c","kind":"command","text":"ls","state":"stopped","output":"a.txt"}]`},
	{"work: items are bounded", "state-work", `feed({kind:"handoff",record:{id:"h"}}, ...Array.from({length:250},(_, i)=>({kind:"item",handoff:"h",item:{id:"i"+i}}))).records.h.items.length`, `200`},
	{"work: events of work nobody knows", "state-work", `feed({kind:"delta",handoff:"x",item_id:"i",delta:"a"},{kind:"item",handoff:"x",item:{id:"i"}},{kind:"closed",closed:"q"},{kind:"later"}).records`, `{}`},
	{"work: a snapshot keeps an answer on its way", "state-work", `(() => { let s = feed({kind:"question",question:{id:"q",asked:"1"}}); s = m.reduceWork(s,{type:"deciding",id:"q",decision:"accept"}); return m.reduceWork(s,{type:"snapshot",records:[],questions:[{id:"q"}],stickies:[]}).questions.q.sending; })()`, `"accept"`},
	{"work: a snapshot keeps what was shown, to be read anew", "state-work", `(() => { let s = feed({kind:"handoff",record:{id:"h"}},{kind:"item",handoff:"h",item:{id:"i",kind:"command"}}); const now = m.unread(s, s.records.h); s = m.reduceWork(s,{type:"snapshot",records:[{id:"h",item_count:1},{id:"new",item_count:3},{id:"empty"}],questions:[],stickies:[]}); return [now, s.records.h.items.length, ...["h","new","empty"].map((id) => m.unread(s, s.records[id]))]; })()`, `[false,1,true,true,false]`},
	{"work: what was read is whole, and where it stands is newer", "state-work", `(() => { let s = m.reduceWork(m.workStart,{type:"snapshot",records:[{id:"h",state:"started",item_count:2,clipped:true,prompt:"p…"}],questions:[],stickies:[]}); const asks = m.unread(s, s.records.h); s = m.reduceWork(s,{type:"event",event:{kind:"handoff",record:{id:"h",state:"completed",prompt:"prompt",text:"all",item_count:2}}}); s = m.reduceWork(s,{type:"whole",record:{id:"h",state:"started",prompt:"prompt",items:[{id:"a",kind:"command"},{id:"b",kind:"message",text:"all"}]}}); const r = s.records.h; return [asks, r.state, r.prompt, r.text, r.item_count, m.unread(s, r)]; })()`, `[true,"completed","prompt","all",1,false]`},
	{"work: the newest is known before the rest is read", "state-work", `(() => { const r = (id, prompt) => ({ id, prompt, state: "started" }); let s = feed({kind:"handoff",record:r("old","before")},{kind:"handoff",record:r("gone","x")}); s = m.reduceWork(s,{type:"snapshot",records:[r("new","n")],more:3,questions:[],stickies:[]}); const first = [s.known, s.whole, Object.keys(s.records).length]; s = m.reduceWork(s,{type:"event",event:{kind:"handoff",record:r("late","told")}}); s = m.reduceWork(s,{type:"older",records:[r("late","read"),r("old","after")]}); s = m.reduceWork(s,{type:"all",ids:new Set(["new","late","old"])}); return [first, s.whole, Object.values(s.records).map((x) => x.id + ":" + x.prompt).sort()]; })()`, `[[true,false,3],true,["late:told","new:n","old:after"]]`},
	{"work: what waits has its turn", "state-work", `(() => { const r = (id, created_at, place) => ({ id, created_at, place, server: "a", thread_id: "t", waits: "ours", state: "accepted" }); const work = { ...m.workStart, records: { a: r("a", "1"), b: r("b", "2", 2), c: r("c", "3", 1), d: r("d", "4"), e: { ...r("e", "0"), thread_id: "u" } } }; return [m.queueOf(work, work.records.a).map((x) => x.id), [...m.turnsOf(work)].sort().map(([id, t]) => id + t.at + "/" + t.of)]; })()`, `[["c","b","a","d"],["a3/4","b2/4","c1/4","d4/4","e1/1"]]`},
	{"work: words that were added are found by the work that took them", "state-work", `(() => { const r = (id, created_at, more) => ({ id, created_at, server: "a", thread_id: "t", prompt: id, state: "delivered", outcome: "result", ended_at: created_at, ...more }); const of = m.attached({ ...m.workStart, records: { a: r("a", "1"), b: r("b", "5"), w: r("w", "9", { why: "added", into: "a" }) } }); return [of.get("a")?.added.map((x) => x.id), of.get("b") ?? null]; })()`, `[["w"],null]`},
	{"work: what an agent asked for stands below its work", "state-work", `m.listed({ ...m.workStart, records: Object.fromEntries([["a", "", "1"], ["b", "a", "2"], ["c", "b", "4"], ["d", "", "3"], ["e", "gone", "5"]].map(([id, parent, created_at]) => [id, { id, parent, created_at, server: id, prompt: id, state: "started" }])) }).open.map((r) => r.id)`, `["e","d","a","b","c"]`},
	{"work: what an agent asked for stands below its work, finished or not", "state-work", `(() => { const l = m.listed({ ...m.workStart, records: Object.fromEntries([["a", "", "1", 0], ["b", "a", "2", "5"], ["c", "", "3", "6"], ["d", "c", "4", "7"], ["e", "d", "5", "8"], ["f", "c", "6", 0]].map(([id, parent, created_at, ended_at]) => [id, { id, parent, created_at, server: id, prompt: id, ...(ended_at ? { state: "delivered", outcome: "result", ended_at } : { state: "started" }) }])) }); return [l.open.map((r) => r.id), l.groups.map((g) => g.items.map((r) => r.id)), [...l.under]]; })()`, `[["a","b","c","f","d","e"],[],["f","d","e","b"]]`},
	{"work: it is found by who asked", "state-work", `m.listed({ ...m.workStart, records: { a: { id: "a", client: "claude-code", prompt: "x", state: "started" }, b: { id: "b", prompt: "y", state: "started" } } }, "claude").open.map((r) => r.id)`, `["a"]`},
	{"facts: what was being said is no answer", "state-facts", `(() => { let f = m.factsStart; const e = (type, at) => { f = m.reduceFacts(f, { type: "voice", event: { type }, at }); }; e("response.created", 10); f = m.reduceFacts(f, { type: "typed", at: 100 }); e("response.output_text.delta", 110); const before = f.answered; e("response.created", 500); e("response.output_text.delta", 900); e("response.output_text.delta", 1900); return [before, f.answered]; })()`, `[0,800]`},
	{"facts: what a call costs", "state-facts", `(() => { const usage = { total_tokens: 30000, input_tokens: 20000, input_token_details: { text_tokens: 12000, audio_tokens: 8000, cached_tokens: 11000, cached_tokens_details: { text_tokens: 8000, audio_tokens: 3000 } }, output_token_details: { text_tokens: 2000, audio_tokens: 8000 } }; const after = (...all) => all.reduce((f, u) => m.reduceFacts(f, { type: "voice", event: { type: "response.done", response: { usage: u } } }), m.factsStart); const prices = { text_in: 4, text_cached: 0.4, text_out: 24, audio_in: 32, audio_cached: 0.4, audio_out: 64, image_in: 5, image_cached: 0.5 }; return [m.costWords(m.factsStart, { prices }), m.costWords(after(usage), { prices }), m.costWords(after(usage, usage), { prices }), m.costWords(after({ ...usage, input_token_details: { text_tokens: 20 }, output_token_details: {} }), { prices }), m.costWords(after(usage), {}), m.costWords(after(usage, { total_tokens: 5 }), { prices }), m.costWords(after(), { simulated: true }), m.costWords(after(usage), { simulated: true, prices }), m.costWords(after({ ...usage, input_token_details: { image_tokens: 100000 }, output_token_details: {} }), { prices })]; })()`,
		`["","about $0.74","about $1.48","less than a cent","30,000 tokens","30,005 tokens","no cost","about $0.74","about $0.50"]`},
	{"needs: failures of one cause are one line, and no need", "state-needs", `(() => { const r = (id, more) => ({ id, server: "mini", prompt: id, created_at: "2026-01-01T20:00:00Z", state: "completed", outcome: "failed", ended_at: "2026-01-01T20:00:00Z", ...more }); const why = { error: { code: "refused", message: "mini refused that.", why: "its agent has no mode that asks", detail: "approval: x" } }; const of = (records, more) => m.needs({ servers: [], dismissed: {}, ...more, work: { records: Object.fromEntries(records.map((x) => [x.id, x])), questions: { q: { id: "q", asked: "1" } }, cleared: "" } }, Date.parse("2026-01-02")); const rows = (n) => n.troubles.map((t) => [t.records.length, t.server, t.cause].join()).concat(n.count); const many = Array.from({ length: 180 }, (_, i) => r("p" + i, why)); return [rows(of(many)), rows(of([...many, r("other", { server: "bigpc", ...why }), r("a", { error: { code: "refused", message: "mini refused that.", detail: "there is no directory /x\nmore" } })])), rows(of([r("b", { error: { code: "agent_failed", message: "The work on mini failed.", detail: "exit 7 after 12 s" } }), r("c", { error: { code: "agent_failed", message: "The work on mini failed.", detail: "exit 7 after 9 s" } }), r("d", { error: { code: "agent_failed", message: "The work on mini failed.", detail: "out of memory" } }), r("e", { outcome: "unknown" })])), rows(of(["unknown_server", "ambiguous_server", "unknown_session", "ambiguous_session"].map((code) => r(code, { error: { code, message: "?" } })))), rows(of([many[0], many[1]], { dismissed: { "failure:p0": true } })), m.keysOf(of([many[0], many[1]]).troubles[0])]; })()`,
		`[["180,mini,its agent has no mode that asks",1],["180,mini,its agent has no mode that asks","1,bigpc,its agent has no mode that asks","1,mini,there is no directory /x",1],["1,mini,It is not known whether this ran.","1,mini,The work on mini failed.","2,mini,The work on mini failed.",1],[1],["1,mini,its agent has no mode that asks",1],["failure:p1","failure:p0"]]`},
	{"needs: what is newer takes a failure away", "state-needs", `(() => { const r = (id, at, outcome, over) => ({ id, server: "a", thread_id: "t", prompt: id, created_at: at, state: "delivered", outcome, ended_at: at, ...over }); const of = (...records) => m.needs({ servers: [], dismissed: {}, work: { records: Object.fromEntries(records.map((x) => [x.id, x])), questions: {} } }, Date.parse("2026-01-02")).troubles.flatMap((t) => t.records).length; return [of(r("x", "2026-01-01T20:00:00Z", "failed")), of(r("x", "2026-01-01T20:00:00Z", "failed"), r("y", "2026-01-01T21:00:00Z", "result")), of(r("x", "2026-01-01T20:00:00Z", "failed"), r("y", "2026-01-01T21:00:00Z", "", { state: "started" })), of(r("x", "2026-01-01T20:00:00Z", "failed"), r("y", "2026-01-01T21:00:00Z", "failed")), of(r("x", "2025-12-30T20:00:00Z", "unknown"))]; })()`, `[1,0,0,2,0]`},
	{"greeting: only where nothing is to be told", "greeting", `(() => { const of = (records, questions, language) => m.greeting({ records, questions }, language)?.response ?? null; return [of({}, {}, "").instructions, /in German in one/.test(of({}, {}, "de").instructions), of({}, {}, "").tool_choice, of({ h: { id: "h", state: "started" } }, {}, "") !== null, of({ h: { id: "h", state: "delivered" } }, {}, "") !== null, of({ h: { id: "h", state: "completed" } }, {}, ""), of({}, { q: { id: "q", asked: "1" } }, "")]; })()`,
		`["Greet the caller in one short sentence and ask what they want done. Call no tool.",true,"none",true,true,null,null]`},
	{"state: a sentence that was said before a reload stays ticked off", "state", `["Fix it.", "Nothing"].map((text) => m.ticks(m.reduce({ ...m.start, voice: { chips: [{ text: "Fix it" }] } }, { type: "kept", entries: [{ id: "x", who: "you", text, state: "done" }] }))({ text: "Fix it" }))`, `[true,false]`},
	{"state: a sentence to try is ticked off however it is written", "state", `["fix it", "Fix  it.", "FIX IT!", "Fix them", ""].map((text) => m.reduce({ ...m.start, voice: { chips: [{ text: "Fix it" }] } }, { type: "typed", id: "x", text }).usedChips.length)`, `[1,1,1,0,0]`},
	{"state: the same message twice is one", "state", `m.reduce(m.reduce(m.start,{type:"toast",toast:{id:1,text:"a"}}),{type:"toast",toast:{id:2,text:"a"}}).toasts`, `[{"id":2,"text":"a"}]`},
	{"state: a message replaces the one before, and one that stays is there after it", "state", `[[{ text: "a" }, { text: "b" }], [{ text: "a", stays: true }, { text: "b" }, { text: "c" }], [{ text: "a", stays: true }, { text: "b", stays: true }]].map((all) => all.reduce((s, toast, id) => m.reduce(s, { type: "toast", toast: { id, ...toast } }), m.start).toasts.map((t) => t.text).join(""))`, `["b","ac","ab"]`},
	{"state: an unknown action changes nothing that shows", "state", `JSON.stringify(m.reduce(m.start,{type:"?"})) === JSON.stringify(m.start)`, `true`},
	{"state: the end of a call keeps why the microphone is off", "state", `(({call}) => [call.mic, call.id, call.held])(m.reduce({...m.start, call:{...m.callStart, phase:"live", id:"c", held:true, mic:"refused"}}, {type:"call",patch:{phase:"idle"}}))`, `["refused","",false]`},
}

var wordRows = []moduleRow{
	{"words: who asked", "words", `[m.askedBy({ client: "codex-mcp-client" }), m.askedBy({ client: "claude-code" }), m.askedBy({})]`, `["asked by codex","asked by claude-code",""]`},
	{"words: names", "words", `[m.names([]), m.names(["a"]), m.names(["a","b","a"]), m.names(["a","b","c"])]`, `["","a","a and b","a, b and c"]`},
	{"words: ago", "words", `[m.ago(0,5e3), m.ago(0,6e4), m.ago(0,36e5), m.ago(0,2*864e5), m.ago(9e5,0)]`, `["just now","1 minute ago","1 hour ago","2 days ago","just now"]`},
	{"words: how long work took and waited are told apart", "words", `((at) => [{ ended_at: at(400), started_at: at(300) }, { ended_at: at(60), started_at: at(1) }, { started_at: at(90) }, { waits: "ours" }, { ended_at: at(60) }, { paused: true, ended_at: at(60) }].map((r) => m.timesWords({ created_at: at(0), ...r }, 460e3)))((s) => new Date(s * 1000).toISOString())`,
		`["1 minute ago, took 1 min 40 s, waited 5 min 0 s","6 minutes ago, took 59 s","began 6 minutes ago, waited 1 min 30 s","asked 7 minutes ago","6 minutes ago, took 1 min 0 s",""]`},
	{"words: which piece of work", "words", `[m.whichWords({ prompt: " Run the tests\nall of them", server: "bigpc" }), m.whichWords({ prompt: "x".repeat(200), server: "a" }).length]`, `["Run the tests on bigpc",85]`},
	{"words: a machine that refuses everything is amber", "words", `m.healthWords({ health: "up", problem: "x" })`, `{"text":"Refuses work","tone":"warn"}`},
	{"work: what was being read before a snapshot is read again", "state-work", `(() => { const old = { id: "old", item_count: 3 }, fresh = { id: "h", item_count: 3 }; let w = m.reduceWork(m.workStart, { type: "snapshot", records: [fresh, old], questions: [], stickies: [] }); for (const id of ["old", "h"]) w = m.reduceWork(w, { type: "reading", id, state: "reading" }); w = m.reduceWork(w, { type: "snapshot", records: [fresh], more: 1, questions: [], stickies: [] }); return [w.read, m.unread(w, old), m.unread(w, fresh)]; })()`, `[{},true,true]`},
	{"confirm: one question at a time", "confirm", `(() => { const answers = [m.confirmed({ title: "Delete?", text: "All of it.", yes: "Delete" }), m.confirmed({ title: "Ring", text: "Now.", yes: "Answer" })]; const asks = document.querySelector("#confirm-title").textContent; document.querySelector("#confirm-yes").click(); return Promise.all(answers).then((a) => [asks, ...a]); })()`, `["Delete?",true,false]`},
	{"api: work under a key of its own", "api", `(async () => { const real = window.fetch, keys = []; window.fetch = async (path, { headers }) => (keys.push(headers["Idempotency-Key"]), new Response("{}")); await m.give({ prompt: "x" }, "item_1"); await m.give({ prompt: "x" }, "item_1"); window.fetch = real; return keys; })()`, `["item_1","item_1"]`},
	{"acts: what is typed stays when its work ends or begins, and a double-click is one press", "view-acts", `(async () => {
		const given = [], turn = { at: 0, of: 0 }, r = { id: "x", server: "a", prompt: "the who", thread_id: "t", state: "started" };
		const acts = { more: async (id, way, text) => { given.push(way + " " + text); if (given.length > 2) field.value = "meanwhile"; return true; }, words: async () => "the whole", again: () => given.push("again") };
		const foot = m.cardActs("x", acts), [field, form] = ["textarea", "form"].map((e) => foot.el.querySelector(e));
		const button = (text) => [...foot.el.querySelectorAll("button")].find((b) => b.textContent === text), next = () => new Promise((then) => setTimeout(then));
		const shown = () => form.hidden ? "" : form.querySelector("label").textContent + ": " + field.value;
		document.body.append(foot.el);
		const out = [];
		const at = async (record, act) => { foot.update({ ...r, ...record }, { turn }); act?.(); await next(); out.push(shown()); };
		await at({}, () => { button("Add to it").click(); });
		await at({ state: "delivered" });
		await at({ waits: "ours", clipped: true }, () => button("Reword").click());
		await at({});
		await at({ waits: "ours" }, () => button("Reword").click());
		field.value += " of it";
		const enter = () => field.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", cancelable: true }));
		await at({}, enter);
		await at({}, () => button("Send").click());
		await at({ waits: "ours" }, () => button("Reword").click());
		field.value = "dropped for it";
		await at({ state: "delivered", outcome: "cancelled" }, enter);
		await at({}, () => { button("Add to it").click(); field.value = "and the docs"; });
		await at({ state: "delivered" }, () => form.requestSubmit());
		for (const detail of [1, 2]) button("Do it again").dispatchEvent(new MouseEvent("click", { detail }));
		foot.el.remove();
		return [out, given];
	})()`, `[["Add to the running work: ","","Do this instead, in the same session: the whole","","Do this instead, in the same session: the whole","It has begun already. Press Send to do this next: the whole of it","","Do this instead, in the same session: the whole","","Add to the running work: and the docs","Do this next: meanwhile"],["next the whole of it","next dropped for it","next and the docs","again"]]`},
	{"outbox: who is away", "outbox", `[[0,"offline"],[503,"shutdown"],[503,"store_down"],[503,"overloaded"],[502,"unknown_start"],[502,"internal"],[undefined],[503,"unreachable"],[502,"token_refused"],[502,"not_signed_in"],[500,"internal"],[429,"rate_limit_exceeded"]].map(([status, code]) => m.away({ status, code }))`, `[true,true,true,true,true,true,true,false,false,false,false,false]`},
	{"outbox: what is refused holds up nothing, what cannot be taken now is tried again", "outbox", `(async () => {
		const log = [], note = (what) => (...a) => log.push([what, ...a.map((x) => x.id ?? x)].flat().join(" ")), ends = Promise.withResolvers();
		const answers = { a: [{ status: 503, code: "unreachable" }], b: [{ status: 503, code: "store_down" }] };
		const send = async ({ id }) => { log.push("send " + id); const problem = answers[id]?.shift(); if (problem) throw Object.assign(problem, { id: problem.code }); };
		const box = m.outbox({ send, sent: (id) => { note("sent")(id); if (id === "c") ends.resolve(); }, held: note("held"), refused: note("refused") });
		for (const id of ["a", "b", "c"]) box.say({ id });
		await ends.promise;
		return log;
	})()`, `["send a","refused a unreachable","send b","held b c","send b","sent b","send c","sent c"]`},
	{"outbox: what is given up, and what is on its way", "outbox", `(async () => {
		const log = [], note = (what) => (...a) => log.push([what, ...a].flat().join(" ")), answer = Promise.withResolvers();
		const box = m.outbox({ send: () => answer.promise, sent: note("sent"), unsure: note("unsure"), held: note("held"), refused: note("refused") });
		for (const id of ["a", "b"]) box.say({ id });
		box.say({ id: "c" });
		log.push(...["a", "c"].map(box.takeBack), box.unsent.map((w) => w.id).join());
		box.giveUp();
		answer.resolve();
		await new Promise((next) => setTimeout(next));
		return [...log, box.unsent.length];
	})()`, `[false,true,"b","unsure a",0]`},
	{"straight: where words go", "straight", `["bigpc", "new bigpc", "tree bigpc/api", "in bigpc t-1", "bigpc/api"].map(m.placeOf)`, `[{"server":"bigpc"},{"server":"bigpc","thread_id":"new"},{"server":"bigpc/api","thread_id":"new","worktree":true},{"server":"bigpc","thread_id":"t-1"},{"server":"bigpc/api"}]`},
	{"words: took", "words", `[m.took(0,4e3), m.took(0,65e3), m.took(0,3720e3)]`, `["4 s","1 min 5 s","1 h 2 min"]`},
	{"words: microphones", "words", `["NotAllowedError","NotFoundError","NotReadableError","X"].map((name) => m.micWords({name}, true)).concat(m.micWords(null, false))`, `["this page may not use it. Allow it in the address bar.","none was found.","another program uses it.","it could not be started.","this address is not secure; use https or localhost."]`},
	{"words: a decision", "words", `[m.decidedWords({decision:"accept",by:"page",server:"a",risk:"low"}, "s"), m.decidedWords({decision:"words",by:"page",server:"a",risk:"high"})]`, `["Allowed on the page on a in s, low risk.","Answered on the page on a."]`},
	{"words: every outcome", "words", `["result","failed","interrupted","cancelled","unknown"].map((outcome) => m.workWords({state:"delivered",outcome}).text)`, `["Done","Failed","Stopped","Stopped","Unclear"]`},
	{"words: what its agent's crash ended", "words", `["interrupted","unknown"].map((outcome) => m.workWords({state:"delivered",outcome,crashed:true}).text)`, `["Crashed","Crashed"]`},
	{"words: every state", "words", `["accepted","dispatching","started"].map((state) => m.workWords({state}).text).concat(m.workWords({state:"started"}, true).text, m.workWords({state:"started"}, true, true).text)`, `["Working","Working","Working","Needs you","Stopping…"]`},
	{"words: the call", "words", `[["idle"],["asking"],["connecting"],["reconnecting"],["live"],["live",{mic:"on"}],["live",{mic:"on",muted:true}],["live",{mic:"refused",micReason:"none was found."}]].map(([phase, call]) => m.callWords({mode:"open",voice:{},talk:{},work:{records:{},questions:{}},call:{phase,mic:"off",...call}}).text)`,
		`["Not in a call","Waiting for the microphone","Connecting…","Reconnecting…","In a call by text","Listening","Muted","In a call by text"]`},
	{"words: the call goes on over another connection", "words", `[["live",{renewed:true}],["reconnecting",{renewed:true}],["live",{}]].map(([phase, call]) => m.callWords({mode:"open",voice:{},talk:{},work:{records:{},questions:{}},call:{phase,mic:"on",...call}})).map(({ text, detail }) => [text, detail])`,
		`[["Listening","Reconnected."],["Reconnecting…","The sound was lost for a moment."],["Listening","Just talk."]]`},
	{"network: the device slept", "network", `[m.slept(0, 5e3), m.slept(0, 6e4), m.slept(0, 18e4)]`, `[false,false,true]`},
	{"words: the call, busy", "words", `[{hearing:true},{speaking:true,responding:true},{responding:true},{}].map((talk) => m.callWords({mode:"open",voice:{},talk,work:{records:{h:{id:"h",server:"bigpc",state:"started",created_at:"1"}},questions:{}},call:{phase:"live",mic:"on"}}).text)`, `["Listening","Speaking","Thinking…","bigpc is working"]`},
	{"words: the call, asked", "words", `m.callWords({mode:"open",voice:{},talk:{},work:{records:{h:{id:"h",server:"bigpc",state:"started",created_at:"1"}},questions:{q:{id:"q",handoff:"h",server:"bigpc",asked:"1"}}},call:{phase:"live",mic:"on"}})`, `{"text":"bigpc waits for you","detail":"You can go on talking.","tone":"ask"}`},
	{"words: nobody speaks when Switchboard is gone", "words", `(({text, detail}) => [text, detail])(m.callWords({mode:"open",feed:"lost",voice:{},talk:{speaking:true},work:{records:{},questions:{}},call:{phase:"live",mic:"on"}}))`, `["Reconnecting…","Switchboard is not answering."]`},
	{"words: how to answer", "words", `[[{voice:true}],[{voice:true},true],[{voice:true,words:true}],[{voice:true,words:true},true],[{decisions:["decline"],tap:"` + handoff.WhyNoApprove + `"}]].map((a) => m.voiceWords(...a))`, `["…or say yes or no in a call.","…or say yes or no.","…or say it in a call.","…or say it.","This login may not allow it."]`},
	{"words: nobody knows what goes on when Switchboard is gone", "words", `["lost","live"].map((feed) => m.callWords({mode:"open",feed,voice:{},talk:{},work:{records:{h:{id:"h",server:"bigpc",state:"started",created_at:"1"}},questions:{}},call:{phase:"idle",mic:"off"}}).detail)`, `["","bigpc goes on working."]`},
	{"words: the simulated voice says that it knows no speech", "words", `m.callWords({mode:"open",voice:{simulated:true},talk:{},work:{records:{},questions:{}},call:{phase:"live",mic:"on"}}).detail.includes("typed sentences only")`, `true`},
	{"words: a machine", "words", `[[{health:"up"}],[{health:"up",working:["x"]}],[{health:"up"},false,true],[{health:"up"},true,true],[{health:"connecting"}],[{health:"down"},true],[{health:"up"},true,true,"lost"],[{health:"down"},false,false,"lost"],[{health:"up",problem:"x"}]].map((a) => m.healthWords(...a).text)`, `["Ready","Working","Working","Needs you","Connecting…","Offline","Unknown","Unknown","Refuses work"]`},
	{"words: a sentence", "words", `[m.sentence("nothing is there"), m.sentence("Gone."), m.sentence("")]`, `["Nothing is there.","Gone.",""]`},
	{"words: what cannot be seen", "words", `[m.visible("plain, ünï 中文\ttab\nline"), m.visible("a\u202eb\u0007c\u00a0d\u{e0041}")]`, `["plain, ünï 中文\ttab\nline","a⟨U+202E⟩b⟨U+0007⟩c⟨U+00A0⟩d⟨U+E0041⟩"]`},
}
