// What every client is put through. A client is
//   open()        connects and configures it: instructions, and a tool of its own named weather
//   say(words)    types a sentence and has it answered
//   speak()       makes a second of sound, then is silent
//   close()       hangs up
// and notes, in the log that it was made with, what it saw:
//   heard         sentences of the voice, whole ones
//   begun         how many answers have begun to be heard
//   cut           how many were cut short
//   calls         functions that it was asked to run
//   errors        what went wrong
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

async function until(what, is, ms = 20000) {
  for (const end = Date.now() + ms; !is(); await sleep(20)) {
    if (Date.now() > end) throw new Error(`waited in vain for ${what}`);
  }
}

const newLog = () => ({ heard: [], begun: 0, cut: 0, calls: [], errors: [] });

/** Returns what worked: for each feature "yes" or what went wrong. `skip` are features that a client has not, with why. */
async function drive(client, log, skip = {}) {
  const told = {};
  const feature = async (name, run) => {
    try {
      if (skip[name] === undefined) await run();
      told[name] = skip[name] ?? "yes";
    } catch (error) {
      told[name] = `no: ${error.message}; heard ${JSON.stringify(log.heard.slice(-3))}, errors ${JSON.stringify(log.errors.slice(-3))}`;
    }
  };
  const hears = (what, words, from = 0) => until(what, () => log.heard.slice(from).some((said) => said.includes(words)));
  await feature("connect", () => client.open());
  await feature("configure", async () => {
    await client.say("instructions");
    await hears("its instructions", "Be brief and kind.");
  });
  await feature("typed turn", async () => {
    await client.say("hello by hand");
    await hears("an answer", "Hello to you too.");
  });
  await feature("spoken turn", async () => {
    const before = log.heard.length;
    await client.speak();
    await hears("an answer", "Hello to you too.", before);
  });
  await feature("its own tool", async () => {
    await client.say('weather {"city":"Oslo"}');
    await hears("what its tool said", "It rains in Oslo.");
  });
  await feature("the fleet", async () => {
    await client.say("list_servers {}");
    await hears("the machines", "bigpc");
    if (log.calls.some((name) => name !== "weather")) throw new Error(`it was shown ${log.calls}`);
  });
  await feature("barge-in", async () => {
    const { begun, cut } = log;
    await client.say("a long story");
    await until("the story to begin", () => log.begun > begun);
    await sleep(300);
    await client.speak();
    await until("the story to be cut short", () => log.cut > cut);
  });
  await feature("a late result", async () => {
    const before = log.heard.length;
    await client.say('codex {"server":"bigpc","prompt":"run the tests"}');
    await hears("the early answer", "Working on it", before);
    await hears("the result", "bigpc is done", before);
  });
  await feature("no errors", async () => {
    if (log.errors.length) throw new Error(log.errors.join("; "));
  });
  await feature("hang up", () => client.close());
  return told;
}

module.exports = { drive, newLog, sleep, until };
