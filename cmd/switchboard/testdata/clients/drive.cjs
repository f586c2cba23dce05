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

/** How long a client may take to what it can do, and to what it is said not to be able to. */
const patience = 60000, impatience = 3000;

async function until(what, is, ms = patience) {
  for (const end = Date.now() + ms; !is(); await sleep(20)) {
    if (Date.now() > end) throw new Error(`waited in vain for ${what}`);
  }
}

const newLog = () => ({ heard: [], begun: 0, cut: 0, calls: [], errors: [] });

/**
 * Returns what worked: for each feature "yes" or what went wrong. `skip` are features that a client is not asked for, and
 * `lacks` those that it is asked for and must fail at, both with why.
 */
async function drive(client, log, skip = {}, lacks = {}) {
  const told = {};
  let ms;
  const feature = async (name, run) => {
    ms = lacks[name] ? impatience : patience;
    try {
      if (skip[name] === undefined) await run();
      told[name] = skip[name] ?? (lacks[name] ? `no: it works, and is said not to: ${lacks[name]}` : "yes");
    } catch (error) {
      told[name] = lacks[name] ?? `no: ${error.message}; heard ${JSON.stringify(log.heard.slice(-3))}, errors ${JSON.stringify(log.errors.slice(-3))}`;
    }
  };
  const hears = (what, words, from = 0) => until(what, () => log.heard.slice(from).some((said) => said.includes(words)), ms);
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
    const { begun, cut } = log, before = log.heard.length;
    await client.say("a long story");
    await until("the story to begin", () => log.begun > begun);
    await sleep(300);
    await client.speak();
    await until("the story to be cut short", () => log.cut > cut);
    await hears("an answer to what was said into it", "I stopped.", before);
  });
  await feature("a late result", async () => {
    const before = log.heard.length;
    await client.say('codex {"server":"bigpc","prompt":"run the tests"}');
    await hears("the early answer", "Working on it", before);
    await hears("the result", "bigpc is done", before);
    const after = log.heard.length; // one more turn: what is told twice would come before its answer
    await client.say("hello again");
    await hears("an answer", "Hello to you too.", after);
    for (const words of ["Working on it", "bigpc is done"]) {
      const times = log.heard.slice(before).join("\n").split(words).length - 1;
      if (times !== 1) throw new Error(`heard "${words}" ${times} times`);
    }
  });
  await feature("no errors", async () => {
    if (log.errors.length) throw new Error(log.errors.join("; "));
  });
  await feature("hang up", () => client.close());
  return told;
}

module.exports = { drive, newLog, sleep, until };
